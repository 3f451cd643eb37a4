"""Plugins that are not installed: the folders of packages, as a fresh process finds them."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path


def environment(*packages: Path) -> dict[str, str]:
    """Of a process in which packages can be imported and have their entry points, as ``pip install -e`` would bring
    about."""
    sources = [package / "src" for package in packages]
    for package, source in zip(packages, sources, strict=True):
        project = tomllib.loads((package / "pyproject.toml").read_text())["project"]
        facts = source / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
        facts.mkdir(exist_ok=True)
        (facts / "METADATA").write_text(f"Name: {project['name']}\nVersion: {project['version']}\n")
        points = project["entry-points"]["cloister"].items()
        (facts / "entry_points.txt").write_text("[cloister]\n" + "".join(f"{name} = {at}\n" for name, at in points))
    path = [*map(str, sources), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path)}
