"""The account of a run: what a data set's lifetime still pays for, checked before any row is read."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from cloister.accounting.ledger.ledger import Ledger
from cloister.core.errors import BudgetExceeded, InvalidInput, UnknownName
from cloister.run.account import Account
from cloister.run.request import Request, prepare

REQUEST = Request(k=3, epsilon=4.0, delta=1e-6, bounds=(-1, 1), rows=3000, zoom="off", method="fastlloyd")


def test_an_account_admits_a_run_as_long_as_the_data_set_can_pay_and_reserves_nothing(ledger: Ledger) -> None:
    account, plan = Account(ledger=ledger.path, dataset="mine"), prepare(REQUEST, ["x", "y"])
    for _ in range(5):  # five times four would be more than ten
        account.admits(plan)
    ledger.reserve("mine", plan.total, plan.budget, plan.digest(), b"seed")
    account.admits(plan)
    ledger.reserve("mine", plan.total, plan.budget, plan.digest(), b"seed")
    with pytest.raises(BudgetExceeded, match=r"epsilon 2, .* left"):
        account.admits(plan)


@pytest.mark.parametrize(
    ("other", "reason"),
    [
        ({"components": {"counts": "exact", "sums": "exact"}, "not_private": True}, "NOT private"),
        ({"method": "grid-means", "trust": "Local", "epsilon": 8.0, "rows": 10**7}, "as composed is Local"),
    ],
)
def test_an_account_admits_no_run_whose_guarantee_a_ledger_cannot_add_up(
    ledger: Ledger, other: dict[str, Any], reason: str
) -> None:
    plan = prepare(attrs.evolve(REQUEST, **other), ["x", "y"])
    with pytest.raises(InvalidInput, match=reason):
        Account(ledger=ledger.path, dataset="mine").admits(plan)


def test_an_account_admits_no_run_on_a_data_set_that_the_ledger_does_not_have(ledger: Ledger) -> None:
    with pytest.raises(UnknownName, match="'others'"):
        Account(ledger=ledger.path, dataset="others").admits(prepare(REQUEST, ["x", "y"]))
