"""What several tests of estimators take."""

from __future__ import annotations

from pathlib import Path

import pytest

from cloister.accounting.ledger.ledger import Ledger


@pytest.fixture
def ledger(tmp_path: Path) -> dict[str, str]:
    """Parameters that name a ledger with room for several runs."""
    Ledger.open(tmp_path / "budget.db", create=True).declare("mine", 100.0, 1e-2)
    return {"ledger": str(tmp_path / "budget.db"), "dataset": "mine"}
