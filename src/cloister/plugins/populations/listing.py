"""Which files are meant by paths and patterns."""

from __future__ import annotations

import glob
import os
from collections.abc import Sequence
from typing import TypeAlias

from cloister.core.errors import InvalidInput

Path: TypeAlias = str | os.PathLike[str]


def listed(paths: Path | Sequence[Path]) -> list[str]:
    """Files in order; a pattern's in sorted order.

    Raises:
        InvalidInput: there is none, it is a folder, or one is given twice, so that its rows would count twice.
    """
    given = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
    found = [path for one in given for path in _matched(os.fspath(one))]
    if not found:
        raise InvalidInput("no file was given")
    seen = set[str]()
    for path in found:
        if os.path.isdir(path):
            raise InvalidInput(f"'{path}' is a folder: give its files, as in '{os.path.join(path, '*.parquet')}'")
        if os.path.realpath(path) in seen:
            raise InvalidInput(f"'{path}' was given twice: its rows would count twice")
        seen.add(os.path.realpath(path))
    return found


def _matched(path: str) -> list[str]:
    if os.path.exists(path) or not glob.has_magic(path):
        return [path]
    found = sorted(glob.glob(path, recursive=True))
    if not found:
        raise InvalidInput(f"no file matches '{path}'")
    return found
