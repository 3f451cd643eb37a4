"""What several tests of runs take."""

from __future__ import annotations

from pathlib import Path

import pytest

from cloister.accounting.ledger.ledger import Ledger


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    """A ledger with room for several runs on a data set."""
    book = Ledger.open(tmp_path / "budget.db", create=True)
    book.declare("mine", 10.0, 1e-3)
    return book
