"""Bad inputs of all commands: one line, exit code 2, nothing written, nothing spent.

The inputs are in ``bad_inputs``, a file per command and a line per input: ``words => what the line must say``. Add
lines there; ``{fit}`` and its like stand for good options, which later ones override. The files that they name are
made by ``bad_inputs_folder``. A file of inputs is one test, which tells of each line that is not refused so: all are
given to one parser in one process, and most take a millisecond.
"""

from __future__ import annotations

import os
import shlex
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.commands.bad_inputs_folder import GOOD, made
from tests.in_process import cloister, program

pytest.importorskip("grpc")
pytest.importorskip("pyarrow")

FILES = sorted(Path(__file__).with_name("bad_inputs").glob("*.txt"))


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


def read(path: Path) -> list[Bad]:
    """The inputs of a file."""
    lines = [line.partition(" => ") for line in path.read_text("utf-8").splitlines()]
    return [Bad(words.strip(), says.strip()) for words, _, says in lines if words and not words.startswith("#")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made(tmp_path_factory.mktemp("bad"))


def held(folder: Path) -> dict[str, tuple[int, ...]]:
    """Every file and folder in it, ledgers and states too: of files identity, size and time of the last change."""
    found = dict[str, tuple[int, ...]]()
    for where, folders, files in os.walk(folder):
        for path in (f"{where}/{name}" for name in (*folders, *files)):
            facts = os.lstat(path)
            found[path] = (facts.st_ino, facts.st_size, facts.st_mtime_ns) if stat.S_ISREG(facts.st_mode) else ()
    return found


def content(path: str) -> bytes | None:
    """That of a file, if it is one."""
    return Path(path).read_bytes() if Path(path).is_file() else None


def wrong(inputs: list[Bad], folder: Path, given_to: Callable[..., Any]) -> Iterator[str]:
    """What is wrong with how inputs are refused, by their words."""
    before = held(folder)
    contents = {path: content(path) for path in before}
    for bad in inputs:
        try:
            done = given_to(*bad.command, folder=folder)
        except Exception as error:
            yield f"{bad.words}: {error!r}"
            continue
        line = done.stderr.removeprefix("cloister: ")
        if (done.returncode, done.stdout) != (2, "") or line == done.stderr or len(line) < 12:
            yield f"{bad.words}: {done}"
        if line.find("\n") != len(line) - 1 or bad.says not in line:
            yield f"{bad.words}: not one line that says {bad.says!r}, but {line!r}"
        after = held(folder)
        changed = before.keys() ^ after.keys()
        for path in before.keys() & after.keys():
            if before[path] != after[path] and content(path) != contents[path]:
                changed.add(path)
        if changed:
            yield f"{bad.words}: changed {changed}"
            contents |= {path: content(path) for path in changed}
        before = after


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_bad_inputs_are_one_line_each_and_nothing_is_written_or_spent(path: Path, folder: Path) -> None:
    assert list(wrong(read(path), folder, cloister)) == []


@pytest.mark.thorough
def test_a_process_of_its_own_says_the_same(folder: Path) -> None:
    some = [bad for path in FILES for bad in read(path)][100::300]
    assert list(wrong(some, folder, program)) == []


@pytest.mark.thorough
def test_a_scheduler_that_does_not_answer_is_a_bad_input_too(folder: Path) -> None:
    asked = "fit rows.npy {fit} --engine dask --scheduler tcp://127.0.0.1:9"
    assert list(wrong([Bad(asked, "no Dask scheduler answers")], folder, cloister)) == []
