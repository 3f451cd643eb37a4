"""How many runs a lifetime holds: as many as a ledger then admits."""

from __future__ import annotations

from pathlib import Path

import pytest

from cloister.accounting.ledger.ledger import Ledger
from cloister.core.errors import BudgetExceeded, InvalidInput, Refused
from cloister.rows.selection import Selection
from cloister.rows.words import Texts
from cloister.run.account import Account
from cloister.run.lasting import lasting
from cloister.run.request import Request, prepare

PLAN = prepare(Request(k=2, epsilon=0.2, delta=1e-7, bounds=(-1, 1), rows=5000, method="fastlloyd"), ("x", "y"))


@pytest.mark.parametrize("composition", ["basic", "zcdp"])
def test_a_ledger_admits_as_many_as_it_is_said_to_hold_and_no_more(tmp_path: Path, composition: str) -> None:
    ledger = Ledger.open(tmp_path / "b.db", create=True)
    ledger.declare("mine", 1.0, 1e-5, composition)  # type: ignore[arg-type]  # parametrised
    ledger.reserve("mine", PLAN.total, PLAN.budget, "plan", b"seed")
    found = lasting(PLAN, 12, Account(ledger=tmp_path / "b.db", dataset="mine"), None, 0.0)
    for _ in range(found.runs[composition]):
        ledger.reserve("mine", PLAN.total, PLAN.budget, "plan", b"seed")
    with pytest.raises(BudgetExceeded):
        ledger.reserve("mine", PLAN.total, PLAN.budget, "plan", b"seed")


def test_a_ledger_that_admits_no_words_is_not_said_to_hold_runs_with_some(tmp_path: Path) -> None:
    table = Selection(("x", "y")).describing([Texts("notes")])
    request = Request(k=2, epsilon=0.2, delta=1e-7, bounds=(-1, 1), rows=5000, describe_words="notes")
    plan = prepare(request, table.features, chosen_columns=table)
    account = Account(ledger=tmp_path / "b.db", dataset="mine")
    ledger = Ledger.open(tmp_path / "b.db", create=True)
    ledger.declare("mine", 1.0, 1e-5, "zcdp")
    for asked in (
        lambda: lasting(plan, 12, account, None, 0.0),
        lambda: ledger.reserve("mine", plan.total, plan.budget, "plan", b"seed"),
    ):
        with pytest.raises(Refused, match="no delta left for thresholds"):
            asked()


def test_a_lifetime_without_a_ledger_has_both_compositions() -> None:
    found = lasting(PLAN, 12, None, 1.0, 1e-5)
    assert found.runs["basic"] == 5 < found.runs["zcdp"]
    assert f"5 (basic composition): {5 / 12:.3g} years" in found.text
    pure = prepare(Request(k=2, epsilon=0.2, bounds=(-1, 1), rows=5000), ("x", "y"))
    assert lasting(pure, 12, None, 1.0, 0.0).runs == {"basic": 5}
    with pytest.raises(InvalidInput, match="may cost delta = 1e-07, and the lifetime has none: give --lifetime-delta"):
        lasting(PLAN, 12, None, 1.0, 0.0)
