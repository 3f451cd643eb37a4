"""Finds files of reports, and tells whether one changed while it was read."""

from __future__ import annotations

import glob
import os
from collections.abc import Sequence
from typing import TypeAlias

from cloister.core.errors import InvalidInput

Path: TypeAlias = str | os.PathLike[str]
EXTENSIONS = (".reports", ".messages")
"""Of what people send, and of what a shuffler releases."""


def listed(paths: Path | Sequence[Path]) -> tuple[list[str], int]:
    """Find files. Returns: their paths sorted by file name, each once, and the number of other files in the folders.

    Args: paths (files, patterns, or folders: their files with these ``EXTENSIONS``, without hidden ones and *.tmp,
        which are unfinished).
    Raises: InvalidInput: there is no file, or a named one cannot be opened.
    """
    given = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
    found, others = list[str](), 0
    for path in [os.fspath(one) for one in given]:
        if os.path.isdir(path):
            inside = [os.path.join(path, name) for name in os.listdir(path) if _finished(name)]
            mine = [one for one in inside if one.lower().endswith(EXTENSIONS) and os.path.isfile(one)]
            found, others = found + mine, others + len(inside) - len(mine)
        elif os.path.exists(path) or not glob.has_magic(path):
            found.append(path)
        else:
            found += [one for one in glob.glob(path, recursive=True) if _finished(os.path.basename(one))]
    if not found:
        raise InvalidInput(f"there are no files of reports ({' or '.join(EXTENSIONS)}) in {_few(given)}")
    for path in found:
        _openable(path)
    once = {os.path.realpath(path): path for path in sorted(found, reverse=True)}
    return sorted(once.values(), key=lambda path: (os.path.basename(path), path)), others


def _finished(name: str) -> bool:
    return not name.startswith(".") and not name.endswith(".tmp")


def _openable(path: str) -> None:
    """Raises: InvalidInput: the file is missing or not ours to read, which is no fault of any report."""
    if os.path.exists(path) and not (os.path.isfile(path) or os.path.isdir(path)):
        raise InvalidInput(f"'{path}' is no file: give - and send the reports to this program's standard input")
    try:
        with open(path, "rb"):
            pass
    except IsADirectoryError:
        raise InvalidInput(f"'{path}' is a folder: give it by itself, or a pattern of its files") from None
    except OSError as error:
        raise InvalidInput(f"'{path}' cannot be opened: {error.strerror}") from None


def identity(path: str) -> tuple[int, int, int]:
    """Size, time of the last change and number of a file, which another one does not have. Raises: InvalidInput: it is
    gone."""
    try:
        facts = os.stat(path)
    except OSError:
        raise InvalidInput(changed(path)) from None
    return facts.st_size, facts.st_mtime_ns, facts.st_ino


def changed(path: str) -> str:
    """What to say of a file that is not what it was."""
    return (
        f"'{path}' changed while it was read: nothing was counted. Leave files alone while they are decoded, and start "
        f"again"
    )


def _few(paths: Sequence[Path]) -> str:
    return ", ".join(f"'{os.fspath(p)}'" for p in paths[:3]) + (", ..." if len(paths) > 3 else "")
