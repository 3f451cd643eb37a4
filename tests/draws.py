"""Tests that draw fresh randomness, each run many times: ``python -m tests.draws --times 200 tests/core``.

Seeds make most tests end the same way every time. One that draws from the system's entropy may fail though nothing is
wrong, and then says how often, by ``@pytest.mark.alarm``; this finds those that fail more often than that. It watches
the calls that draw, in fixtures too, which are set up afresh for every test; repeats the tests that made one; and
prints which of them failed, and how often. Names, such as those of temporary files and of runs, have 48 bits and more,
and do not count as draws. Draws of a test's other processes are not seen: ``--all`` repeats every test. Options that it
does not know go to pytest.
"""

from __future__ import annotations

import argparse
import os
import random
import secrets
import sys
from collections.abc import Callable
from typing import Any

import numpy.random.bit_generator
import pytest
from _pytest.runner import runtestprotocol

NAMES = ("token_hex", "token_urlsafe")
"""Functions of ``secrets`` that draw names."""


class Draws:
    """A plugin of pytest that runs a test again if it draws. Attributes: failed (by node id, how often), drew (node
    ids of the tests that were repeated)."""

    def __init__(self, times: int, every: bool) -> None:
        self.times, self.every = times, every
        self.failed = dict[str, int]()
        self.drew = list[str]()
        self._drawn = 0

    def watch(self) -> None:
        """Count the calls that draw, from now on."""
        for where, name in (
            (os, "urandom"),
            (random, "_urandom"),
            (secrets, "token_bytes"),
            (secrets, "randbits"),
            (numpy.random.bit_generator, "randbits"),
        ):
            setattr(where, name, self._watched(getattr(where, name)))

    def _watched(self, draw: Callable[..., Any]) -> Callable[..., Any]:
        def watched(*arguments: Any) -> Any:
            self._drawn += sys._getframe(1).f_code.co_name not in NAMES
            return draw(*arguments)

        return watched

    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool:
        before = self._drawn
        reports = runtestprotocol(
            item, log=True, nextitem=None
        )  # tears down what its module and session share, which may draw
        drew = self._drawn > before
        self._count(item, reports)
        if (drew or self.every) and not any(report.skipped for report in reports):
            self.drew.append(item.nodeid)
            for _ in range(self.times - 1):
                self._count(item, runtestprotocol(item, log=False, nextitem=None))
        return True

    def _count(self, item: pytest.Item, reports: list[pytest.TestReport]) -> None:
        if any(report.failed for report in reports):
            self.failed[item.nodeid] = self.failed.get(item.nodeid, 0) + 1

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        terminalreporter.write_line(f"{len(self.drew)} tests draw; each ran {self.times} times")
        for name, failures in sorted(self.failed.items(), key=lambda pair: -pair[1]):
            terminalreporter.write_line(f"failed {failures} times of {self.times if name in self.drew else 1}: {name}")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.draws", description=__doc__)
    parser.add_argument("--times", type=int, default=200)
    parser.add_argument("--all", action="store_true", help="repeat tests that draw nothing in this process, too")
    known, others = parser.parse_known_args()
    draws = Draws(known.times, known.all)
    draws.watch()
    code = pytest.main(["-q", "-n", "0", "-p", "no:cacheprovider", *others], plugins=[draws])
    return int(code) or int(bool(draws.failed))


if __name__ == "__main__":
    sys.exit(main())
