"""Runs whose promise is about users with several rows, from end to end: noise, statement, ledger, refusals."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pandas as pd
import pytest

from cloister import KMeans
from cloister.accounting.ledger.ledger import Ledger
from cloister.core.errors import InvalidInput, Refused
from cloister.core.randomness import PublicRng
from cloister.run.account import Account
from cloister.run.fit import fit, source
from cloister.run.request import prepare
from cloister.run.result import Result
from tests.asking import asking
from tests.in_process import ran, refused
from tests.killed import killed_after

MOST = 4
NAMES = ("x", "y")


def visits() -> pd.DataFrame:
    """3,000 rows of up to 500 users, some of whom have many."""
    g = np.random.default_rng(0)
    rows = np.array([[-0.5, -0.5], [0.5, 0.5]])[g.integers(0, 2, 3000)] + g.normal(0, 0.05, (3000, 2))
    return pd.DataFrame(rows, columns=list(NAMES)).assign(who=(500 * g.random(3000) ** 2).astype(int))


asked = partial(
    asking,
    k=2,
    method="fastlloyd",
    epsilon=1.0,
    delta=1e-6,
    bounds=(-1, 1),
    rows=1500,
    seed=1,
    zoom="off",
    rows_per_user=MOST,
)


def rows() -> Any:
    return source(visits(), user_column="who")


LAPLACE = {"counts": "discrete-laplace", "sums": "discrete-laplace"}


@pytest.mark.parametrize(
    "changes",
    [
        {"options": {"rounds": 4}},
        {"options": {"rounds": 4}, "components": LAPLACE, "delta": 0.0},
        {"options": {"rounds": 4}, "components": {"counts": "discrete-laplace"}},
        {"method": "hst-means"},
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
    result = fit(asked(options={"rounds": 4}), rows())
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
    one = fit(asked(options={"rounds": 4}, rows_per_user=1), rows()).privacy
    assert [s.amount for s in told.spends] == pytest.approx([s.amount for s in one.spends], rel=1e-12)
    result.save(tmp_path / "a.json")
    assert Result.load(tmp_path / "a.json").privacy == told


@pytest.mark.parametrize(
    ("changes", "population", "told"),
    [
        ({"rows_per_user": None}, rows, "rows are of users: give the most rows of one user"),
        ({}, lambda: source(visits(), columns=NAMES), "the rows do not say whose they are: give the column"),
        ({"components": {"counts": "optimised-local-hashing", "sums": "hadamard-vector"}}, rows, "need a curator"),
        ({"method": "tree-coreset", "components": {"counts": "thresholded"}}, rows, "not for users with several"),
    ],
)
def test_a_run_that_cannot_promise_it_is_refused_before_a_row_is_read(
    changes: dict[str, Any], population: Any, told: str
) -> None:
    with pytest.raises(InvalidInput, match=told):
        fit(asked(**changes), population())


# ledgers


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    book = Ledger.open(tmp_path / "budget.db", create=True)
    book.declare("mine", 3.0, 1e-5)
    book.declare("people", 3.0, 1e-5, unit="users")
    book.declare("rhos", 3.0, 1e-5, "zcdp", "users")
    return book


def test_rhos_of_users_add_up_too(ledger: Ledger) -> None:
    """A run's rho is m^2 times a row's: one that reserved and finished with a row's would leave room for m^2 runs."""
    for _ in range(2):
        fit(asked(), rows(), account=Account(ledger=ledger.path, dataset="rhos"))
    (status,) = (s for s in ledger.status() if s.dataset == "rhos")
    one = prepare(asked(rows_per_user=None), NAMES).problem.budget.amount / 2
    assert status.spent.rho == pytest.approx(2 * one, rel=1e-6)


@pytest.mark.parametrize(("dataset", "most"), [("mine", MOST), ("people", None), ("rhos", None)])
def test_runs_for_users_and_for_rows_do_not_share_a_lifetime(ledger: Ledger, dataset: str, most: int | None) -> None:
    population = rows() if most else source(visits(), columns=NAMES)
    with pytest.raises(Refused, match="do not add up"):
        fit(asked(rows_per_user=most), population, account=Account(ledger=ledger.path, dataset=dataset))
    assert ledger.runs() == ()


def test_a_run_goes_on_with_the_rows_that_it_kept(ledger: Ledger) -> None:
    """Resumed, it keeps the same rows of every user, by the seed in the ledger, and ends as if never cut off."""
    request = asked(method="su-lloyd", delta=0.0, seed=None, options={"rounds": 3}, rows=2000)
    account = Account(ledger=ledger.path, dataset="people")
    with killed_after(3):
        fit(request, rows(), account=account)
    again = attrs.evolve(account, resume=ledger.runs()[-1].id)
    resumed, other = rows(), rows()
    fit(request, resumed, account=again)
    done = again.finished_run(prepare(request, NAMES))
    assert done is not None
    other.keep(MOST, PublicRng(done.seed).child("rows of users"))
    assert (resumed._kept == other._kept).all()
    with pytest.raises(Refused, match="give it the same options"):
        fit(asked(rows_per_user=5), rows(), account=again)


# the ways in


def test_scikit_learns_way() -> None:
    table = visits()
    plain, named = table[list(NAMES)], {"users": table["who"]}
    given: dict[str, Any] = {"n_clusters": 2, "delta": 1e-6, "bounds": (-1, 1), "rows": 1500, "rows_per_user": MOST}
    fitted = KMeans(user_column="who", **given).fit(table)
    assert (fitted.predict(table) == fitted.predict(plain)).all()
    for each in (fitted, KMeans(**given).fit(plain.to_numpy(), **named)):
        assert each.privacy_.rows_per_user == MOST
    for more, fits, users, told in (
        ({"user_column": "who"}, table, named, "users are named twice"),
        ({"user_column": "who"}, plain.to_numpy(), {}, "no column 'who' that could name users"),
    ):
        with pytest.raises(ValueError, match=told):
            KMeans(**given | more).fit(fits, **users)


def test_the_command_line(tmp_path: Path) -> None:
    visits().to_csv(tmp_path / "visits.csv", index=False)
    fitting = "fit visits.csv -k 2 --epsilon 1 --delta 1e-6 --bounds=-1:1 --rows 1500 --method fastlloyd --columns"
    paid = "--ledger budget.db --dataset people"
    ran("ledger declare budget.db people --epsilon 2 --delta 1e-5 --unit users", tmp_path)
    done = json.loads(ran(f"{fitting} * --user-column who --rows-per-user 4 {paid} --json", tmp_path).stdout)
    assert (done["privacy"]["rows_per_user"], done["columns"]) == (4, ["x", "y"])
    assert "protects users" in refused(f"{fitting} x,y {paid}", tmp_path)
    assert "for each user" in ran("ledger show budget.db", tmp_path).stdout
