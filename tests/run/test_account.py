"""The account of a run: what a data set's lifetime still pays for, checked before any row is read."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import attrs
import pytest

from cloister.accounting.ledger.ledger import Ledger
from cloister.core.errors import BudgetExceeded, InvalidInput, Refused, UnknownName
from cloister.core.registry.making import drafted
from cloister.run.account import Account, resuming_payer
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


def test_a_session_that_a_run_pays_for_goes_on_with_that_run_alone(ledger: Ledger) -> None:
    """The same data set and no other run: else it is refused once all have joined, and a new run before."""
    plan, account = prepare(REQUEST, ["x", "y"]), Account(ledger=ledger.path, dataset="mine")
    run = ledger.reserve("mine", plan.total, plan.budget, plan.digest(), b"seed")
    for opened in (False, True):
        session: Any = SimpleNamespace(opened=opened, payer=("mine", run.id), paid_by=print, join=print, agree=print)
        for given in (account, attrs.evolve(account, resume=run.id)):
            assert resuming_payer(given, session) == attrs.evolve(account, resume=run.id)
        for other in (None, attrs.evolve(account, dataset="others"), attrs.evolve(account, resume="another")):
            if not opened:
                assert resuming_payer(other, session) is other
                continue
            with pytest.raises(Refused, match=f"paid for by run {run.id} of the data set 'mine'"):
                resuming_payer(other, session)


@pytest.mark.parametrize(
    ("other", "reason"),
    [
        ({"method": drafted("fastlloyd", {"counts": "exact", "sums": "exact"}), "not_private": True}, "NOT private"),
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
