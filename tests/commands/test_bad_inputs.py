"""Bad inputs of all commands: one line, exit code 2, nothing written, nothing spent.

The inputs are in ``bad_inputs``, a file per command and a line per input: ``words => what the line must say``. Add
lines there; ``{fit}`` and its like stand for good options, which later ones override. The files that they name are
made by ``bad_inputs_folder``.
"""

from __future__ import annotations

import hashlib
import shlex
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.commands.bad_inputs_folder import GOOD, made
from tests.in_process import cloister, program

pytest.importorskip("grpc")
pytest.importorskip("pyarrow")


class Bad(NamedTuple):
    """A command line, and what it must be told."""

    words: str
    says: str

    @property
    def command(self) -> list[str]:
        """Its words, with good options for those in braces."""
        text = self.words
        for name, options in GOOD.items():
            text = text.replace(f"{{{name}}}", options)
        return shlex.split(text)


def read() -> list[Bad]:
    """All inputs."""
    lines = [
        line.partition(" => ")
        for path in sorted(Path(__file__).with_name("bad_inputs").glob("*.txt"))
        for line in path.read_text("utf-8").splitlines()
        if line and not line.startswith("#")
    ]
    return [Bad(words.strip(), says.strip()) for words, _, says in lines]


INPUTS = read()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made(tmp_path_factory.mktemp("bad"))


@pytest.fixture(scope="module")
def content(folder: Path) -> dict[str, str]:
    """What is in the folder before any command."""
    return holds(folder)


def holds(folder: Path) -> dict[str, str]:
    """Every file and folder in it, ledgers and states too, with the hash of its content."""
    found = {}
    for path in folder.rglob("*"):
        content = path.read_bytes() if path.is_file() and not path.is_symlink() else b""
        found[str(path.relative_to(folder))] = hashlib.sha256(content).hexdigest()
    return found


@pytest.mark.parametrize("bad", INPUTS, ids=[bad.words for bad in INPUTS])
def test_a_bad_input_is_one_line_and_nothing_is_written_or_spent(
    bad: Bad, folder: Path, content: dict[str, str]
) -> None:
    done = cloister(*bad.command, folder=folder)
    assert (done.returncode, done.stdout) == (2, ""), done
    assert done.stderr.startswith("cloister: "), done.stderr
    assert done.stderr.count("\n") == 1, done.stderr
    assert done.stderr.endswith("\n")
    assert len(done.stderr.removeprefix("cloister: ")) > 10
    assert bad.says in done.stderr
    assert_same(folder, content)


@pytest.mark.slow
@pytest.mark.parametrize("bad", INPUTS[::25], ids=[bad.words for bad in INPUTS[::25]])
def test_a_process_of_its_own_says_the_same(bad: Bad, folder: Path, content: dict[str, str]) -> None:
    done = program(*bad.command, folder=folder)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), done
    assert done.stderr.startswith("cloister: ")
    assert bad.says in done.stderr
    assert_same(folder, content)


def assert_same(folder: Path, content: dict[str, str]) -> None:
    """Nothing was written; a failure is this command's alone."""
    now = holds(folder)
    changed = {name for name, _ in now.items() ^ content.items()}
    content.clear()
    content.update(now)
    assert changed == set()


def test_there_are_many_and_no_two_are_the_same() -> None:
    assert len({bad.words for bad in INPUTS}) == len(INPUTS) >= 174
