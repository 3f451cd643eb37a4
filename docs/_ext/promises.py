"""Promises, threats, and the deliberate faults and tests that play their adversaries, of ``tests/promises.toml``."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from prose import escaped

TESTS = Path(__file__).parents[2] / "tests"
THREATS = "docs/explanation/threat_model.md"

ROW = re.compile(r"^\| (.+?) \|.*$", re.MULTILINE)
"""A row of a table, and its first cell."""


@dataclass(frozen=True)
class Promise:
    """Words by which a promise is known, or the first cell of a line of the threat model.

    Attributes: source (the file that says it), faults (what breaks it, by name, and the tests that see it), tests (that
    play its adversary), untested (why none can).
    """

    says: str
    source: str
    faults: dict[str, tuple[str, ...]]
    tests: tuple[str, ...] = ()
    untested: str = ""

    @property
    def seen(self) -> list[str]:
        """All tests, each once."""
        return list(dict.fromkeys([*self.tests, *(test for tests in self.faults.values() for test in tests)]))


def deliberate() -> dict[str, tuple[str, ...]]:
    """All deliberate faults by file and name, and the tests that see each."""
    return {
        f"{path.stem}: {fault['name']}": tuple(fault["tests"])
        for path in sorted((TESTS / "mutations").glob("*.toml"))
        for fault in tomllib.loads(path.read_text("utf-8"))["mutation"]
    }


def promises() -> list[Promise]:
    """All promises, in the order of the table, then all threats. Raises: KeyError: a fault is gone."""
    faults, table = deliberate(), tomllib.loads((TESTS / "promises.toml").read_text("utf-8"))
    threats = [{"in": THREATS, "says": says, **one} for says, one in table["threats"].items()]
    return [
        Promise(
            one["says"],
            one["in"],
            {name: faults[name] for name in one.get("faults", ())},
            tuple(one.get("tests", ())),
            one.get("untested", ""),
        )
        for one in [*table["promise"], *threats]
    ]


def page() -> Iterator[str]:
    """The table of promises as reStructuredText; threats have a page of their own."""
    yield ".. list-table::\n   :header-rows: 1\n   :widths: 34 33 33\n\n"
    yield "   * - promised\n     - broken on purpose\n     - seen by\n"
    for promise in promises():
        if promise.source == THREATS:
            continue
        words = " ".join(promise.says.replace("*", "").replace("`", "").split())
        yield f"   * - {escaped(words)} (``{promise.source}``)\n"
        yield f"     - {'; '.join(escaped(name.partition(': ')[2]) for name in promise.faults)}\n"
        yield f"     - {', '.join(f'``{_named(test)}``' for test in promise.seen)}\n"


def played(text: str) -> str:
    """The threat model's page with one column more: the tests that play each line, to unfold. Raises: KeyError: a line
    is not in the table."""
    more = {"who": "played by", "---": "---"}
    for threat in promises():
        if threat.source == THREATS:
            number = f"{len(threat.seen)} test{'s' if len(threat.seen) > 1 else ''}" if threat.seen else "no test"
            told = _sentences(threat.seen) or threat.untested
            more[threat.says] = f"<details><summary>{number}</summary>{told}</details>"
    return ROW.sub(lambda row: f"{row[0]} {more[row[1]]} |", text)


def _sentences(tests: list[str]) -> str:
    """Names of tests as what they say, those of a file together."""
    said = dict[str, list[str]]()
    for file, _, name in (_named(test).partition("::") for test in tests):
        said.setdefault(file, []).append(name.removeprefix("test_").replace("_", " "))
    return "; ".join(f"`{file}`: {', '.join(names)}" for file, names in said.items())


def _named(test: str) -> str:
    """A test by its file and name, of all cases."""
    return test.partition("[")[0].rpartition("/")[2]
