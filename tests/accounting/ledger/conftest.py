"""The ledger that most tests here use."""

from __future__ import annotations

from pathlib import Path

import pytest

from cloister.accounting import Ledger


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    book = Ledger.open(tmp_path / "a ledger? #1.db", create=True)
    book.declare("people", 1.0, 1e-6)
    return book
