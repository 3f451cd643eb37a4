"""Deliberate faults, each with the tests that see it: what a promise rests on is broken on purpose, and a test must
fail.

A fault is an entry in a ``.toml`` file beside this one::

    [[mutation]]
    name = "the tag tells the value"            # what goes wrong, in a few words
    file = "src/cloister/plugins/oracles/shuffled/blanket_histogram.py"
    old = "words[:, 1]"                         # occurs exactly once in the file
    new = "words[:, 0]"
    tests = ["tests/plugins/oracles/shuffled/test_blanket_histogram.py::test_a_tag_does_not_tell_its_value"]

``pytest -m mutations`` applies each to a copy of the source and runs its tests, which must fail within a minute. That
every entry still applies, and names tests that exist, is tested always.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
LIMIT = 60
"""Seconds in which a fault must be seen."""


def _all() -> list[Any]:
    entries = [
        (path.stem, entry)
        for path in sorted(HERE.glob("*.toml"))
        for entry in tomllib.loads(path.read_text())["mutation"]
    ]
    return [pytest.param(entry, id=f"{stem}: {entry['name']}") for stem, entry in entries]


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


@cache
def _pass(tests: tuple[str, ...]) -> bool:
    """Whether these tests pass without any fault. One that needs a program which is not here skips the fault too."""
    done = _ran(ROOT, tests, 10 * LIMIT)
    if " skipped" in done.stdout.splitlines()[-1]:
        pytest.skip("its tests cannot run here")
    return done.returncode == 0


def _ran(root: Path, tests: tuple[str, ...], limit: float) -> subprocess.CompletedProcess[str]:
    command = [
        sys.executable,
        "-B",
        "-m",
        "pytest",
        "-q",
        "-x",
        "-p",
        "no:cacheprovider",
        "-m",
        "thorough or not thorough",
        "-n",
        "0",
        *tests,
    ]
    environment = {**os.environ, "PYTHONPATH": str(root / "src")}
    return subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=limit, check=False
    )


@pytest.mark.mutations
@pytest.mark.parametrize("entry", MUTATIONS)
def test_a_fault_fails_a_test_within_a_minute(entry: dict[str, Any], tmp_path: Path) -> None:
    tests = tuple(entry["tests"])
    assert _pass(tests), "its tests fail without it"
    for folder in ("src", "clients"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__", "node_modules"))
    (tmp_path / Path(entry["file"])).write_text(_mutated(entry))
    faulty = _ran(tmp_path, tests, LIMIT)
    assert faulty.returncode == 1, f"no test saw it:\n{faulty.stdout[-3000:]}{faulty.stderr[-1000:]}"
