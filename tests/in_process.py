"""The command line: in the process of the tests, which is quick, and as a program of its own."""

from __future__ import annotations

import contextlib
import io
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from cloister.cli import main

PROGRAM = shutil.which("cloister", path=str(Path(sys.executable).parent)) or "cloister"
HERE = Path()


def cloister(*arguments: Any, folder: Path = HERE, given: bytes = b"") -> subprocess.CompletedProcess[str]:
    """What ``main`` makes of a command that is run in a folder. A traceback fails the test. Args: given (on standard
    input)."""
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8") for _ in range(2))
    with (
        contextlib.chdir(folder),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        patch("sys.argv", ["cloister", *map(str, arguments)]),
        patch("sys.stdin", io.TextIOWrapper(io.BytesIO(given))),
        pytest.raises(SystemExit) as end,
    ):
        main()
    texts = []
    for stream in (out, err):
        stream.seek(0)
        texts.append(stream.read())
    code = end.value.code
    assert code is None or isinstance(code, int), code
    return subprocess.CompletedProcess(arguments, code or 0, *texts)


def ran(line: str, folder: Path = HERE) -> subprocess.CompletedProcess[str]:
    """What is made of a line, written as a person types it, that succeeds."""
    done = cloister(*shlex.split(line), folder=folder)
    assert done.returncode == 0, done.stderr
    return done


def refused(line: str, folder: Path = HERE) -> str:
    """What a person is told of a line that is refused: its last line, on stderr alone, says why."""
    done = cloister(*shlex.split(line), folder=folder)
    assert (done.returncode, done.stdout) == (2, ""), done
    assert done.stderr.splitlines()[-1].startswith("cloister: ")
    return done.stderr


def program(*arguments: Any, folder: Path = HERE, **settings: Any) -> subprocess.CompletedProcess[str]:
    """The same in a process of its own, which takes a second to start."""
    command = [PROGRAM, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder, **settings)
