"""The threat model: each of its lines is played by tests that there are, or says why none can."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from tests.docs.pages import PAGES, ROOT

CELL = re.compile(r"(?<!\\)\|")


@pytest.fixture
def table(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """``docs/_ext/promises.py``, which reads ``tests/promises.toml``."""
    monkeypatch.syspath_prepend(str(ROOT / "docs" / "_ext"))
    import promises

    yield promises
    for name in ("promises", "prose"):
        sys.modules.pop(name, None)


def rows(text: str) -> list[list[str]]:
    """Cells of all tables, without heads."""
    found = [[cell.strip() for cell in CELL.split(line)[1:-1]] for line in text.splitlines() if line.startswith("|")]
    return [row for row in found if row[0] not in ("who", "---")]


def test_each_line_has_its_tests_and_all_tests_are_of_a_line(table: Any) -> None:
    written = rows(PAGES[table.THREATS].read_text("utf-8"))
    assert all(len(row) == 3 and any(row[1:]) for row in written)
    threats = [promise for promise in table.promises() if promise.source == table.THREATS]
    assert [row[0] for row in written] == [threat.says for threat in threats]
    assert [threat.says for threat in threats if bool(threat.seen) == bool(threat.untested)] == []


def test_the_site_names_them_at_the_line(table: Any) -> None:
    (row,) = (
        row for row in rows(table.played(PAGES[table.THREATS].read_text("utf-8"))) if row[0] == "one party, or several"
    )
    assert len(row) == 4
    assert "`test_adversaries.py`: parties that know all rows but ones are left with the noise" in row[3]
    with pytest.raises(KeyError, match="somebody new"):
        table.played("| somebody new | nothing | nothing |")


@pytest.mark.thorough
def test_pytest_collects_each_test_that_is_named(table: Any) -> None:
    """Some need a browser, or what this machine lacks, and are skipped there: they are collected all the same."""
    tests = dict.fromkeys(test for promise in table.promises() for test in promise.tests)
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", *tests]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    found = {line.partition("[")[0] for line in done.stdout.splitlines()}
    assert {test.partition("[")[0] for test in tests} <= found


def test_whoever_reports_a_gap_and_whoever_reads_a_promise_is_led_there(table: Any) -> None:
    for page in ("SECURITY.md", "README.md", "docs/explanation/trust_models.md", "docs/reference/promises.md"):
        assert "threat_model.md)" in PAGES[page].read_text("utf-8"), page
