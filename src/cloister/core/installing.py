"""How whoever runs this cloister can install more of it: from where it was installed itself."""

from __future__ import annotations

import json
import os
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any
from urllib.parse import urlparse
from urllib.request import url2pathname

SOURCE = Path(__file__).parents[3]
"""The clone that this file is in, unless it was copied out of one."""


def command(library: str, extra: str) -> str:
    """Command to get a library that belongs to an extra.

    A name that a package index knows is named only if cloister came from one. From a clone or an archive on this
    machine it is that path; where that is gone, the library alone.
    """
    where = _where()
    if where is None:
        return f"pip install {library}"
    return f"pip install '{where.format(extra=f'[{extra}]')}'"


def _where() -> str | None:
    """Pip's argument, with a place for the extra; None if it is no longer there."""
    try:
        said = distribution("cloister").read_text("direct_url.json")
    except PackageNotFoundError:
        return _path(SOURCE) if (SOURCE / "pyproject.toml").is_file() else None
    if said is None:
        return "cloister{extra}"
    origin: dict[str, Any] = json.loads(said)
    url = str(origin["url"])
    if url.startswith("file:"):
        path = Path(url2pathname(urlparse(url).path))
        return _path(path) if path.exists() else None
    kind = f"{origin['vcs_info']['vcs']}+" if "vcs_info" in origin else ""
    return f"cloister{{extra}} @ {kind}{url}"


def _path(path: Path) -> str:
    here = path.is_dir() and path.samefile(os.curdir)
    return ("." if here else str(path).replace("{", "{{").replace("}", "}}")) + "{extra}"
