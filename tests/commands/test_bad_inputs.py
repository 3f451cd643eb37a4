"""Bad inputs of all commands: one line, exit code 2, nothing written, nothing spent.

The inputs are in ``bad_inputs``, a file per command and a line per input: ``words => what the line must say``. Add
lines there; ``{fit}`` and its like stand for good options, which later ones override. The files that they name are
made by ``bad_inputs_folder``.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import stat
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
SOME = INPUTS[::100]
"""Those that a process of its own is given too."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made(tmp_path_factory.mktemp("bad"))


class Held(NamedTuple):
    """What is known of a file. Args: facts (size, time of the last change and identity), digest (of its content)."""

    facts: tuple[int, ...]
    digest: str


@pytest.fixture(scope="module")
def content(folder: Path) -> dict[str, Held]:
    """What is in the folder before any command."""
    return holds(folder, {})


def holds(folder: Path, before: dict[str, Held]) -> dict[str, Held]:
    """Every file and folder in it, ledgers and states too. A file that has not been touched is not read again."""
    found = {}
    for where, folders, files in os.walk(folder):
        for path in (os.path.join(where, name) for name in (*folders, *files)):
            facts = os.lstat(path)
            if not stat.S_ISREG(facts.st_mode):
                found[path] = Held((facts.st_mode,), "")
                continue
            known, now = before.get(path), (facts.st_size, facts.st_mtime_ns, facts.st_ino)
            if known is None or known.facts != now:
                known = Held(now, hashlib.sha256(Path(path).read_bytes()).hexdigest())
            found[path] = known
    return found


@pytest.mark.parametrize("bad", INPUTS, ids=[bad.words for bad in INPUTS])
def test_a_bad_input_is_one_line_and_nothing_is_written_or_spent(
    bad: Bad, folder: Path, content: dict[str, Held]
) -> None:
    done = cloister(*bad.command, folder=folder)
    assert (done.returncode, done.stdout) == (2, ""), done
    assert done.stderr.startswith("cloister: "), done.stderr
    assert done.stderr.count("\n") == 1, done.stderr
    assert done.stderr.endswith("\n")
    assert len(done.stderr.removeprefix("cloister: ")) > 10
    assert bad.says in done.stderr
    assert_same(folder, content)


@pytest.mark.thorough
@pytest.mark.parametrize("bad", SOME, ids=[bad.words for bad in SOME])
def test_a_process_of_its_own_says_the_same(bad: Bad, folder: Path, content: dict[str, Held]) -> None:
    done = program(*bad.command, folder=folder)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), done
    assert done.stderr.startswith("cloister: ")
    assert bad.says in done.stderr
    assert_same(folder, content)


def assert_same(folder: Path, content: dict[str, Held]) -> None:
    """Nothing was written; a failure is this command's alone."""
    now = holds(folder, content)
    changed = {name for name in now.keys() | content.keys() if _digest(now, name) != _digest(content, name)}
    content.clear()
    content.update(now)
    assert changed == set()


def _digest(held: dict[str, Held], name: str) -> str | None:
    return held[name].digest if name in held else None


def test_there_are_many_and_no_two_are_the_same() -> None:
    assert len({bad.words for bad in INPUTS}) == len(INPUTS) >= 174
