"""The threat model: each of its lines is played by tests that there are, or says why none can."""

from __future__ import annotations

import re

import pytest

from tests.docs.pages import PAGES, ROOT, extension

CELL = re.compile(r"(?<!\\)\|")


TABLE = extension("promises")
"""``docs/_ext/promises.py``, which reads ``tests/promises.toml``."""


def rows(text: str) -> list[list[str]]:
    """Cells of all tables, without heads."""
    found = [[cell.strip() for cell in CELL.split(line)[1:-1]] for line in text.splitlines() if line.startswith("|")]
    return [row for row in found if row[0] not in ("who", "---")]


def test_each_line_has_its_tests_and_all_tests_are_of_a_line() -> None:
    written = rows(PAGES[TABLE.THREATS].read_text("utf-8"))
    assert all(len(row) == 3 and any(row[1:]) for row in written)
    threats = [promise for promise in TABLE.promises() if promise.source == TABLE.THREATS]
    assert [row[0] for row in written] == [threat.says for threat in threats]
    assert [threat.says for threat in threats if bool(threat.seen) == bool(threat.untested)] == []


def test_the_site_names_them_at_the_line() -> None:
    (row,) = (
        row for row in rows(TABLE.played(PAGES[TABLE.THREATS].read_text("utf-8"))) if row[0] == "one party, or several"
    )
    assert len(row) == 4
    assert "`test_adversaries.py`: parties that know all rows but ones are left with the noise" in row[3]
    with pytest.raises(KeyError, match="somebody new"):
        TABLE.played("| somebody new | nothing | nothing |")


def test_each_test_that_is_named_is_there() -> None:
    for test in {test for promise in TABLE.promises() for test in promise.tests}:
        path, _, name = test.partition("::")
        assert f"def {name.partition('[')[0]}(" in (ROOT / path).read_text("utf-8"), test


def test_whoever_reports_a_gap_and_whoever_reads_a_promise_is_led_there() -> None:
    for page in ("SECURITY.md", "README.md", "docs/explanation/trust_models.md", "docs/reference/promises.md"):
        assert "threat_model.md)" in PAGES[page].read_text("utf-8"), page
