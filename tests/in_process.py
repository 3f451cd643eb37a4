"""The command line: in the process of the tests, which is quick, and as a program of its own."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from cloister.cli import app
from cloister.core.errors import CloisterError

PROGRAM = shutil.which("cloister", path=str(Path(sys.executable).parent)) or "cloister"
HERE = Path()


def cloister(*arguments: Any, folder: Path = HERE) -> subprocess.CompletedProcess[str]:
    """What ``main`` makes of a command that is run in a folder: a refusal is one line and exit code 2, a traceback fails the test."""
    with contextlib.chdir(folder):
        done = CliRunner().invoke(app, list(map(str, arguments)))
    if isinstance(done.exception, CloisterError):
        return subprocess.CompletedProcess(arguments, 2, done.stdout, f"{done.stderr}cloister: {done.exception}\n")
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return subprocess.CompletedProcess(arguments, done.exit_code, done.stdout, done.stderr)


def program(*arguments: Any, folder: Path = HERE, **settings: Any) -> subprocess.CompletedProcess[str]:
    """The same in a process of its own, which takes a second to start."""
    command = [PROGRAM, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder, **settings)
