"""Promises, and the deliberate faults and tests that play their adversaries: ``tests/promises.toml`` read."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from prose import escaped

TESTS = Path(__file__).parents[2] / "tests"


@dataclass(frozen=True)
class Promise:
    """Words by which a promise is known. Attributes: source (the file that says it), faults (what breaks it, by name,
    and the tests that see it)."""

    says: str
    source: str
    faults: dict[str, tuple[str, ...]]


def deliberate() -> dict[str, tuple[str, ...]]:
    """All deliberate faults by file and name, and the tests that see each."""
    return {
        f"{path.stem}: {fault['name']}": tuple(fault["tests"])
        for path in sorted((TESTS / "mutations").glob("*.toml"))
        for fault in tomllib.loads(path.read_text("utf-8"))["mutation"]
    }


def promises() -> list[Promise]:
    """All promises, in the order of the table. Raises: KeyError: a fault is gone."""
    faults = deliberate()
    table = tomllib.loads((TESTS / "promises.toml").read_text("utf-8"))["promise"]
    return [Promise(one["says"], one["in"], {name: faults[name] for name in one["faults"]}) for one in table]


def page() -> Iterator[str]:
    """The table as reStructuredText."""
    yield ".. list-table::\n   :header-rows: 1\n   :widths: 34 33 33\n\n"
    yield "   * - promised\n     - broken on purpose\n     - seen by\n"
    for promise in promises():
        words = " ".join(promise.says.replace("*", "").replace("`", "").split())
        seen = dict.fromkeys(test for tests in promise.faults.values() for test in tests)
        yield f"   * - {escaped(words)} (``{promise.source}``)\n"
        yield f"     - {'; '.join(escaped(name.partition(': ')[2]) for name in promise.faults)}\n"
        yield f"     - {', '.join(_named(test) for test in seen)}\n"


def _named(test: str) -> str:
    """A test by its file and name, of all cases."""
    return f"``{test.rpartition('/')[2].partition('[')[0]}``"
