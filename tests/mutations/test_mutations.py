"""Deliberate faults, each with the tests that see it: what a promise rests on is broken on purpose, and a test must
fail.

A fault is an entry in a ``.toml`` file beside this one::

    [[mutation]]
    name = "the tag tells the value"            # what goes wrong, in a few words
    file = "src/cloister/plugins/oracles/shuffled/blanket_histogram.py"
    old = "words[:, 1]"                         # occurs exactly once in the file
    new = "words[:, 0]"
    tests = ["tests/plugins/oracles/shuffled/test_blanket_histogram.py::test_a_tag_does_not_tell_its_value"]

``pytest -m mutations tests/mutations`` puts each into a copy of the source and runs its tests, which pass without it
and must fail with it within a minute; ``--faults-of PATH`` those in a file or folder, or seen by a test of it. With
``-n 2`` say ``--dist loadgroup``: faults that tests of one file see go to one process. That every entry still applies,
and names tests that exist, is tested always.
"""

from __future__ import annotations

import compileall
import shutil
import tomllib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.mutations.forked import ROOT, TREE, Outcome, run

HERE = Path(__file__).parent
LIMIT = 60
"""Seconds in which a fault must be seen."""

Faultless = Callable[[str], set[str]]


def _all() -> list[Any]:
    entries = [
        (path.stem, entry)
        for path in sorted(HERE.glob("*.toml"))
        for entry in tomllib.loads(path.read_text())["mutation"]
    ]
    return [
        pytest.param(entry, id=f"{stem}: {entry['name']}", marks=pytest.mark.xdist_group(str(_file(entry["tests"][0]))))
        for stem, entry in entries
    ]


def _file(test: str) -> Path:
    return Path(test.partition("::")[0])


MUTATIONS = _all()


def _mutated(entry: dict[str, Any]) -> str:
    text = (ROOT / entry["file"]).read_text()
    assert text.count(entry["old"]) == 1, f"{entry['old']!r} occurs {text.count(entry['old'])} times in {entry['file']}"
    assert entry["new"] != entry["old"]
    return text.replace(entry["old"], entry["new"])


@pytest.mark.parametrize("entry", MUTATIONS)
def test_a_fault_still_applies_and_names_tests_that_exist(entry: dict[str, Any]) -> None:
    assert set(entry) == {"name", "file", "old", "new", "tests"}
    text = _mutated(entry)
    if entry["file"].endswith(".py"):
        compile(text, entry["file"], "exec")
    assert entry["tests"]
    for test in entry["tests"]:
        path, apart, name = test.partition("::")  # or all of a file
        assert not apart or f"def {name.partition('[')[0]}(" in (ROOT / path).read_text()
        assert (ROOT / path).is_file()


@pytest.fixture(scope="session")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the source, compiled: in turn each fault is put into it, and taken out again."""
    copy = tmp_path_factory.mktemp("tree")
    for folder in TREE:
        shutil.copytree(ROOT / folder, copy / folder, ignore=shutil.ignore_patterns("node_modules"))
    compileall.compile_dir(copy / "src", quiet=2)
    return copy


@contextmanager
def _broken(tree: Path, entry: dict[str, Any]) -> Iterator[None]:
    """In this block the tree has a fault."""
    file, whole = tree / entry["file"], ROOT / entry["file"]
    for compiled in (file.parent / "__pycache__").glob(f"{file.stem}.*.pyc"):
        compiled.unlink()
    file.write_text(_mutated(entry))
    try:
        yield
    finally:
        shutil.copy2(whole, file)
        compileall.compile_file(file, quiet=2)


@pytest.fixture(scope="session")
def faultless(request: pytest.FixtureRequest, tree: Path, tmp_path_factory: pytest.TempPathFactory) -> Faultless:
    """How tests end on the same copy without a fault: of a file all at once that faults of this session name."""
    names = defaultdict[Path, set[str]](set)
    for item in request.session.items:
        if isinstance(item, pytest.Function) and hasattr(item, "callspec"):
            entry: Any = item.callspec.params.get("entry", {"tests": ()})
            for test in entry["tests"]:
                names[_file(test)].add(test)

    @cache
    def outcomes(file: Path) -> Outcome:
        return run(tree, sorted(names[file]), 20 * LIMIT, tmp_path_factory.mktemp("whole"), compiled=True)

    def ended(test: str) -> set[str]:
        tests = outcomes(_file(test)).tests
        return {tests[name] for name in cases(tests, test)}

    return ended


def cases(names: Iterable[str], test: str) -> list[str]:
    """Of tests by their node ids the cases of one, or all tests of a file."""
    return [name for name in names if name == test or name.startswith((test + "[", test + "::"))]


@pytest.mark.mutations
@pytest.mark.parametrize("entry", MUTATIONS)
def test_a_fault_fails_a_test_within_a_minute(
    entry: dict[str, Any], tree: Path, faultless: Faultless, tmp_path: Path
) -> None:
    for test in entry["tests"]:
        ended = faultless(test)
        if "skipped" in ended:
            pytest.skip("its tests cannot run here")
        assert ended == {"passed"}, f"{test} does not pass without it"
    with _broken(tree, entry):
        faulty = run(tree, entry["tests"], LIMIT, tmp_path, "-x")
    assert faulty.code == 1, f"no test saw it:\n{faulty.said[-3000:]}"
    assert "failed" in faulty.tests.values(), f"it broke something else:\n{faulty.said[-3000:]}"
