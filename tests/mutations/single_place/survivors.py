"""Which single-place faults no test of the first ring sees.

    python -m tests.mutations.single_place.survivors --sample 150 --seed 1

A sample of the faults of ``faults.py`` is planted one at a time in a copy of the source. Of each, two groups of
tests run until one fails: the file that mirrors the module and the tests that reach the fault's line and little else,
then the others that reach the line, up to ``MOST``. What reaches a line is in a map of the coverage of every test,
which takes some minutes and is made once (``--remap`` makes it again: after a change, lines that moved are tested by
the tests that reach any line of the file). A fault by which tests do not end is seen too.

Faults that change nothing that a test could see are in ``equivalent.toml``, each with the reason, and in no sample::

    [[equivalent]]
    file = "src/cloister/core/budget.py"
    where = "Budget.split"                      # the function
    source = "if a <= b:"                       # the line on which the place begins
    before = "a <= b"                           # the place, as the program prints it
    after = "(a < b)"
    why = "both branches return the same where a equals b"

The program prints the share of survivors per room, and every survivor.
"""

from __future__ import annotations

import argparse
import compileall
import os
import random
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from queue import SimpleQueue

import attrs
import coverage

from tests.mutations.forked import ROOT, TREE, run
from tests.mutations.single_place.faults import Fault, faults

ROOMS = ("core", "accounting", "accounting/ledger", "noise", "plugins/oracles", "run")
"""Folders of ``src/cloister`` whose faults are planted; one inside another is a room of its own."""

OMITTED = {"src/cloister/plugins/oracles/local/fast_kernels.py"}
"""Compiled code, whose lines no map has; its tests compare it with NumPy's to the byte."""

MAP = ROOT / ".pytest_cache" / "reached"
MOST = 150
"""Tests of the second group at most, those first that reach little else."""

NEAR = 30
"""Tests of the first group, beside the file that mirrors the module."""

LIMIT = 40
"""Seconds that a group of tests may take, on a machine that does little else."""

KEY = ("file", "where", "source", "before", "after")
"""What tells the faults of ``equivalent.toml`` apart."""

FIRST_RING = ("-m", "not thorough and not long and not mutations")


@cache
def all_faults(room: str) -> tuple[Fault, ...]:
    """Return the faults of a room, but for those that are known to change nothing."""
    known = {tuple(entry[name] for name in KEY) for entry in equivalent()}
    inner = tuple(f"src/cloister/{other}/" for other in ROOMS if other.startswith(f"{room}/"))
    found = list[Fault]()
    for path in sorted((ROOT / "src/cloister" / room).rglob("*.py")):
        file = path.relative_to(ROOT).as_posix()
        if file not in OMITTED and not file.startswith(inner or "none"):
            found += faults(file, path.read_text("utf-8"))
    return tuple(fault for fault in found if fault.key not in known)


@cache
def equivalent() -> list[dict[str, str]]:
    """Entries of ``equivalent.toml``."""
    entries: list[dict[str, str]] = tomllib.loads((Path(__file__).parent / "equivalent.toml").read_text())["equivalent"]
    return entries


def sample(size: int, seed: int, rooms: Sequence[str] = ROOMS) -> dict[str, list[Fault]]:
    """Draw faults, about as many of each room."""
    drawn = dict[str, list[Fault]]()
    for i, room in enumerate(rooms):
        known = all_faults(room)
        share = (size + i) // len(rooms)
        drawn[room] = random.Random(f"{seed} {room}").sample(known, min(share, len(known)))
    return drawn


class Reached:
    """Which tests reach a line. Args: path (of the map, made if there is none)."""

    def __init__(self, path: Path) -> None:
        if not path.exists():
            _make(path)
        self._data = coverage.CoverageData(str(path))
        self._data.read()
        # an installed copy is measured where the tests ran on one
        self._files = {name: f"src/cloister/{name.rpartition('/cloister/')[2]}" for name in self._data.measured_files()}
        self._lines = {short: self._by_line(name) for name, short in self._files.items()}
        self._width = Counter(
            test for lines in self._lines.values() for tests in lines.values() for test in tests
        )  # lines that a test reaches

    def _by_line(self, name: str) -> dict[int, set[str]]:
        return {
            line: {context.rpartition("|")[0] for context in contexts if context}
            for line, contexts in self._data.contexts_by_lineno(name).items()
        }

    def tests(self, fault: Fault) -> list[str]:
        """Return the tests that reach a fault, those first that reach little else; of a line that is run when it is
        imported, or is not in the map, those that reach any line of its file."""
        lines = self._lines.get(fault.file, {})
        tests = set[str]().union(*(lines.get(line, ()) for line in range(fault.line, fault.last + 1)))
        if not tests:
            tests = set[str]().union(*lines.values())
        return sorted(tests, key=lambda test: (self._width[test], test))


def _make(path: Path) -> None:
    """Run the first ring, and write down which test reaches which line."""
    path.parent.mkdir(exist_ok=True)
    how = ["-q", "-n", "2", "-p", "no:cacheprovider", "--cov=cloister", "--cov-context=test", "--cov-report="]
    environment = {**os.environ, "COVERAGE_FILE": str(path)}
    subprocess.run([sys.executable, "-m", "pytest", *how], cwd=ROOT, env=environment, check=True)


def mirror(file: str) -> list[str]:
    """Return the files of tests that mirror a module, by their names."""
    path = ROOT / "tests" / Path(file).relative_to("src/cloister")
    return [found.relative_to(ROOT).as_posix() for found in sorted(path.parent.glob(f"test_*{path.stem}*.py"))]


@attrs.frozen
class Verdict:
    """What became of a fault. Attributes: fault, seen (how: "failed", "did not end", "broke the collection"; None: it
    survived), tests (so many were run at most)."""

    fault: Fault
    seen: str | None
    tests: int


class Planter:
    """Plants faults in copies of the source. Args: reached, copies (so many faults are tried at once)."""

    def __init__(self, reached: Reached, copies: int) -> None:
        self._reached, self._copies = reached, copies
        self._trees = SimpleQueue[Path]()

    def verdicts(self, planted: Iterable[Fault]) -> Iterator[Verdict]:
        """Try each fault, and yield what became of it, those first that are tested soonest."""
        with tempfile.TemporaryDirectory() as scratch, ThreadPoolExecutor(self._copies) as pool:
            for i in range(self._copies):
                tree = Path(scratch, str(i))
                for folder in TREE:
                    shutil.copytree(ROOT / folder, tree / folder, ignore=shutil.ignore_patterns("node_modules"))
                compileall.compile_dir(tree / "src", quiet=2)
                self._trees.put(tree)
            for future in as_completed([pool.submit(self._verdict, fault) for fault in planted]):
                yield future.result()

    def _verdict(self, fault: Fault) -> Verdict:
        tree = self._trees.get()
        tests, near = self._reached.tests(fault), mirror(fault.file)
        rest = [test for test in tests[NEAR:] if test.partition("::")[0] not in near][:MOST]
        try:
            with _planted(tree, fault):
                for group in ([*tests[:NEAR], *near], rest):
                    if group and (seen := _seen(tree, group)):
                        return Verdict(fault, seen, len(tests))
        finally:
            self._trees.put(tree)
        return Verdict(fault, None, len(tests))


@contextmanager
def _planted(tree: Path, fault: Fault) -> Iterator[None]:
    """In this block the tree has a fault."""
    file, whole = tree / fault.file, ROOT / fault.file
    for compiled in (file.parent / "__pycache__").glob(f"{file.stem}.*.pyc"):
        compiled.unlink()
    file.write_text(fault.planted(whole.read_text("utf-8")), "utf-8")
    try:
        yield
    finally:
        shutil.copy2(whole, file)
        compileall.compile_file(file, quiet=2)


def _seen(tree: Path, group: Sequence[str]) -> str | None:
    """How the tests of a group see what is planted; None if they all pass."""
    with tempfile.TemporaryDirectory() as folder:
        chosen = Path(folder, "chosen")
        chosen.write_text("\n".join(group))
        files = sorted({test.partition("::")[0] for test in group})
        options = ("-x", "-p", "tests.mutations.single_place.chosen", f"--chosen={chosen}", *FIRST_RING)
        outcome = run(tree, files, LIMIT, Path(folder), *options)
    if outcome.code is None:
        return "did not end"
    if outcome.code in (0, 5):  # 5: none of these tests is in the first ring
        return None
    return "failed" if "failed" in outcome.tests.values() else "broke the collection"


def report(verdicts: dict[str, list[Verdict]]) -> str:
    """Return the table of survivors per room, and each of them."""
    lines = [f"{'room':20}{'faults':>8}{'survive':>9}{'share':>8}"]
    for room, those in verdicts.items():
        left = sum(verdict.seen is None for verdict in those)
        lines.append(f"{room:20}{len(those):8}{left:9}{left / max(1, len(those)):8.1%}")
    for those in verdicts.values():
        lines += [f"{verdict.fault} ({verdict.tests} tests reach it)" for verdict in those if verdict.seen is None]
    return "\n".join(lines)


def tried(drawn: dict[str, list[Fault]], map: Path, copies: int, loud: bool = False) -> dict[str, list[Verdict]]:
    """Try a sample. Args: drawn (faults of each room), map (which test reaches which line), copies (faults at once),
    loud (print each verdict at once)."""
    rooms = {fault: room for room, those in drawn.items() for fault in those}
    planted = sorted(
        rooms, key=lambda fault: random.Random(str(fault)).random()
    )  # a little of each room from the start
    verdicts: dict[str, list[Verdict]] = {room: [] for room in drawn}
    for verdict in Planter(Reached(map), copies).verdicts(planted):
        verdicts[rooms[verdict.fault]].append(verdict)
        if loud:
            print(f"{verdict.seen or 'SURVIVED'}: {verdict.fault}", flush=True)
    return verdicts


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.mutations.single_place.survivors", description=__doc__)
    parser.add_argument("--sample", type=int, default=150, help="faults that are planted, about as many of each room")
    parser.add_argument("--seed", type=int, default=1, help="other seeds plant other faults")
    parser.add_argument("--room", action="append", choices=ROOMS, help="this room alone; may be repeated")
    parser.add_argument("--copies", type=int, default=2, help="faults that are tried at once")
    parser.add_argument("--map", type=Path, default=MAP, help="which test reaches which line; made if there is none")
    parser.add_argument("--remap", action="store_true", help="make the map again")
    known = parser.parse_args()
    if known.remap:
        known.map.unlink(missing_ok=True)
    drawn = sample(known.sample, known.seed, known.room or ROOMS)
    print(report(tried(drawn, known.map, known.copies, loud=True)))


if __name__ == "__main__":
    main()
