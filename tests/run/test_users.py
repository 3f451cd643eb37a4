"""Runs whose promise is about users with several rows, from end to end: noise, statement, ledger, refusals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pandas as pd
import pytest

from cloister import KMeans
from cloister.accounting.ledger.ledger import Ledger
from cloister.core.errors import BudgetExceeded, InvalidInput, Refused
from cloister.core.randomness import PublicRng
from cloister.run.account import Account
from cloister.run.fit import fit, source
from cloister.run.request import Request, prepare
from cloister.run.result import Result
from tests.killed import killed_after

MOST = 4
NAMES = ("x", "y")


def visits(n: int = 3000, users: int = 500) -> pd.DataFrame:
    g = np.random.default_rng(0)
    rows = np.array([[-0.5, -0.5], [0.5, 0.5]])[g.integers(0, 2, n)] + g.normal(0, 0.05, (n, 2))
    return pd.DataFrame(rows, columns=list(NAMES)).assign(who=(users * g.random(n) ** 2).astype(int))


def asked(**more: Any) -> Request:
    base = Request(k=2, method="fastlloyd", epsilon=1.0, delta=1e-6, bounds=(-1, 1), rows=1500, seed=1, zoom="off")
    return attrs.evolve(base, **{"rows_per_user": MOST} | more)


def rows(**more: Any) -> Any:
    return source(visits(), users="who", **more)


LAPLACE = {"counts": "discrete-laplace", "sums": "discrete-laplace"}


@pytest.mark.parametrize(
    "changes",
    [
        {"options": {"rounds": 4}},
        {"options": {"rounds": 4}, "components": LAPLACE, "delta": 0.0},
        {"options": {"rounds": 4}, "components": {"counts": "discrete-laplace"}},
        {"method": "hst-means"},
        {"method": "hst-median"},
        {"method": "tree-coreset"},
    ],
)
def test_every_question_has_noise_for_all_rows_of_a_user(changes: dict[str, Any]) -> None:
    """m times as wide as for one row: the forecast has the same questions, each with an m-th of the epsilon or mu."""
    plans = [prepare(asked(**changes, rows_per_user=m), NAMES) for m in (None, 1, MOST)]
    alone, one, many = (
        [part.channel for r in plan.forecast(PublicRng.from_seed(1)) for part in r.parts] for plan in plans
    )
    assert [c.events for c in alone] == [c.events for c in one]
    assert [c.mechanism for c in many] == [c.mechanism for c in one]
    assert [c.deviation for c in many] == pytest.approx([MOST * c.deviation for c in one], rel=0.2 / one[0].deviation)


def test_the_promise_is_about_users_and_says_what_was_kept(tmp_path: Path) -> None:
    result = fit(asked(), rows())
    told, text = result.privacy, result.privacy.text()
    assert told.relation == "add-or-remove one user with all rows of theirs"
    assert told.headline == f"({told.relation}) epsilon = 1, delta = 1e-06, Central trust"
    assert "does not learn whether any one user was there, with all rows of theirs." in text
    assert (
        "At most 4 rows of each user were kept, chosen by public coins and by nothing but that user's own rows" in text
    )
    assert "values" not in " ".join(told.promised())  # which do decide over a database
    assert "the public number of rows is of those kept" in text
    assert "One row is one person" not in text
    assert result.problem["rows per user"] == MOST
    result.save(tmp_path / "a.json")
    assert Result.load(tmp_path / "a.json").privacy == told


def test_exact_answers_are_those_of_the_kept_rows() -> None:
    """What a run reads, and not only what a population would: the same rows in every round, by the run's seed."""
    exact = {"counts": "exact", "sums": "exact"}
    one, two = (asked(components=exact, not_private=True, rows=10**6, seed=seed) for seed in (1, 2))
    found, again, other = (fit(request, rows()) for request in (one, one, two))
    assert found.weights is not None
    assert found.weights.sum() == np.minimum(visits()["who"].value_counts(), MOST).sum()
    assert (again.centers == found.centers).all()
    assert (other.centers != found.centers).any()


@pytest.mark.parametrize(
    ("changes", "population", "told"),
    [
        ({"rows_per_user": None}, rows, "rows are of users: give the most rows of one user"),
        ({}, lambda: source(visits(), NAMES), "the rows do not say whose they are: give the column"),
        ({"components": {"counts": "optimised-local-hashing", "sums": "hadamard-vector"}}, rows, "need a curator"),
        ({"method": "tree-coreset", "components": {"counts": "thresholded"}}, rows, "not for users with several"),
        ({"rows_per_user": 2.5}, rows, "rows_per_user is 2.5: give a whole number"),
    ],
)
def test_a_run_that_cannot_promise_it_is_refused_before_a_row_is_read(
    changes: dict[str, Any], population: Any, told: str
) -> None:
    with pytest.raises(InvalidInput, match=told):
        fit(asked(**changes), population())


def test_thresholds_may_count_users_of_one_row() -> None:
    request = asked(method="tree-coreset", components={"counts": "thresholded"}, rows_per_user=1)
    assert fit(request, rows()).privacy.rows_per_user == 1


# ledgers


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    book = Ledger.open(tmp_path / "budget.db", create=True)
    book.declare("people", 3.0, 1e-5, unit="users")
    book.declare("mine", 3.0, 1e-5)
    book.declare("rhos", 3.0, 1e-5, "zcdp", "users")
    return book


def test_a_ledger_adds_up_what_users_pay(ledger: Ledger) -> None:
    account = Account(ledger=ledger.path, dataset="people")
    fit(asked(), rows(), account=account)
    fit(asked(rows_per_user=2, epsilon=2.0), rows(), account=account)
    (status,) = (s for s in ledger.status() if s.dataset == "people")
    assert status.unit == "users"
    assert status.spent.epsilon == pytest.approx(3.0, rel=1e-3)
    with pytest.raises(BudgetExceeded):
        fit(asked(), rows(), account=account)


def test_rhos_of_users_add_up_too(ledger: Ledger) -> None:
    """A run's rho is m^2 times a row's: one that reserved and finished with a row's would leave room for m^2 runs."""
    for _ in range(2):
        fit(asked(), rows(), account=Account(ledger=ledger.path, dataset="rhos"))
    (status,) = (s for s in ledger.status() if s.dataset == "rhos")
    one = prepare(asked(rows_per_user=None), NAMES).problem.budget.amount / 2
    assert status.spent.rho == pytest.approx(2 * one, rel=1e-6)


@pytest.mark.parametrize(("dataset", "most"), [("mine", MOST), ("people", None), ("rhos", None)])
def test_runs_for_users_and_for_rows_do_not_share_a_lifetime(ledger: Ledger, dataset: str, most: int | None) -> None:
    population = rows() if most else source(visits(), NAMES)
    with pytest.raises(Refused, match="which does not add up"):
        fit(asked(rows_per_user=most), population, account=Account(ledger=ledger.path, dataset=dataset))
    assert ledger.runs() == ()


def test_a_lifetime_is_of_rows_or_of_users(ledger: Ledger) -> None:
    with pytest.raises(InvalidInput, match="expected 'rows' or 'users'"):
        ledger.declare("others", 1.0, unit="persons")  # type: ignore[arg-type]


def test_a_run_goes_on_with_the_rows_that_it_kept(ledger: Ledger) -> None:
    """Resumed, it keeps the same rows of every user, by the seed in the ledger, and ends as if never cut off."""
    request = asked(method="su-lloyd", delta=0.0, seed=None, options={"rounds": 3}, rows=2000)
    account = Account(ledger=ledger.path, dataset="people")
    with killed_after(3):
        fit(request, rows(), account=account)
    again = attrs.evolve(account, resume=ledger.runs()[-1].id)
    resumed, other = rows(), rows()
    fit(request, resumed, account=again)
    done = again.finished(prepare(request, NAMES))
    assert done is not None
    other.keep(MOST, PublicRng(done.seed).child("rows of users"))
    assert (resumed._kept == other._kept).all()
    with pytest.raises(Refused, match="give it the same options"):
        fit(asked(rows_per_user=5), rows(), account=again)


# the ways in


def test_scikit_learns_way() -> None:
    table = visits()
    given: dict[str, Any] = {"n_clusters": 2, "delta": 1e-6, "bounds": (-1, 1), "rows": 1500, "rows_per_user": MOST}
    fitted = KMeans(user_column="who", **given).fit(table)
    assert fitted.privacy_.rows_per_user == MOST
    assert fitted.feature_names_in_.tolist() == ["x", "y"]
    by_array = KMeans(**given).fit(table[list(NAMES)].to_numpy(), users=table["who"])
    assert by_array.privacy_.rows_per_user == MOST
    with pytest.raises(ValueError, match="users are named twice"):
        KMeans(user_column="who", **given).fit(table, users=table["who"])
