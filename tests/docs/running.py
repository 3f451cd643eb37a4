"""Runs the code of a page, block by block, in one folder and one namespace."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any, Self

import pytest

from cloister.accounting.ledger.ledger import Ledger
from tests.docs.pages import Block, commands
from tests.docs.prepared import prepare
from tests.in_process import cloister

HAS = re.compile(r"<!-- has: (.+?) -->")
STAYS_UP = "stays up"
"""What stands behind ``sh`` where a block's one command is a server that the rest of the page talks to."""

FOR_SHELL = re.compile(r"[|&;<>$`*?~(]")


class Runner:
    """One page's, until it is closed. Args: folder (empty), text (of the page; names the files that it has)."""

    def __init__(self, folder: Path, text: str) -> None:
        self.folder = folder / "page"
        self.folder.mkdir()
        self.namespace: dict[str, Any] = {"__name__": "__main__"}
        for names in HAS.findall(text):
            for name in names.split():
                prepare(self.folder, name)
        self.environment = {**os.environ, "PATH": f"{programs(folder)}{os.pathsep}{os.environ['PATH']}"}
        self._up = list[subprocess.Popen[str]]()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        """Stop what stays up: by Ctrl-C, as a reader does."""
        for shell in reversed(self._up):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(shell.pid, signal.SIGINT)
            try:
                shell.communicate(timeout=30)
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(shell.pid, signal.SIGKILL)

    def run(self, block: Block) -> None:
        """Raises: AssertionError, with the line and what was said, where it ends otherwise than the page has it."""
        if block.file is not None:
            (self.folder / block.file).write_text(block.text, "utf-8")
        elif block.language == "sh" and block.info == STAYS_UP:
            self._start(block)
        elif block.language == "sh":
            self._shell(block)
        elif block.language in ("python", "{code-cell}"):
            self._python(block)

    def _shell(self, block: Block) -> None:
        lines = commands(block.text)
        if any(re.search(r"(?<!&)&( *#.*)?$", line) for line in lines):
            self._bash(block.text, 0)
            return
        for line in map(self._named, lines):
            code = 2 if re.search(r"# refused\b", line) else 0
            words = shlex.split(line, comments=True)
            bare = re.sub(r"'[^']*'|\"[^\"]*\"|#.*", "", line)
            if words[0] == "cd":
                self.folder = (self.folder / words[1]).resolve()
            elif words[0] == "cloister" and not FOR_SHELL.search(bare):
                done = cloister(*words[1:], folder=self.folder)
                assert done.returncode == code, f"{line}\nended with {done.returncode}\n{done.stdout}{done.stderr}"
            else:
                self._bash(line, code)

    def _named(self, line: str) -> str:
        """A command in which RUN is the last run in the ledger that it names."""
        ledger = re.search(r"(?<=--ledger )\S+", line) or re.search(r"\S+\.db\b", line)
        if ledger is None or not re.search(r"\bRUN\b", line):
            return line
        return re.sub(r"\bRUN\b", Ledger.open(self.folder / ledger[0]).runs()[-1].id, line)

    def _started(self, *command: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            command,
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def _bash(self, text: str, code: int) -> None:
        with self._started("bash", "-euo", "pipefail", "-c", text) as shell:
            try:
                said, _ = shell.communicate(timeout=120)
            finally:
                with contextlib.suppress(ProcessLookupError):  # what it has left in the background
                    os.killpg(shell.pid, signal.SIGKILL)
        assert shell.returncode == code, f"{text}\nended with {shell.returncode}\n{said}"

    def _start(self, block: Block) -> None:
        """A server, which is there for the rest of the page. It is up once it says something."""
        (command,) = commands(block.text)
        shell = self._started("bash", "-c", f"PYTHONUNBUFFERED=1 exec {command}")
        self._up.append(shell)
        assert shell.stdout is not None
        said = shell.stdout.readline()
        assert said, f"{command}\nended with {shell.wait()}"
        time.sleep(0.2)
        assert shell.poll() is None, f"{command}\nended with {shell.returncode}\n{said}{shell.stdout.read()}"

    def _python(self, block: Block) -> None:
        code = compile("\n" * (block.line - 1) + block.text, block.page, "exec")
        expected = re.search(r"raises: (\w+)", block.info)
        with contextlib.chdir(self.folder), warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # what noise brings about is not the page's
            if expected is None:
                exec(code, self.namespace)
                return
            with pytest.raises(Exception) as raised:  # noqa: PT011  # by its name
                exec(code, self.namespace)
            assert type(raised.value).__name__ == expected[1]


def programs(folder: Path) -> Path:
    """A folder of ``cloister`` and ``python`` as these tests have them, for bash."""
    programs = folder / "programs"
    programs.mkdir()
    for name, arguments in (("cloister", " -m cloister.cli"), ("python", "")):
        program = programs / name
        program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)}{arguments} "$@"\n')
        program.chmod(0o755)
    return programs
