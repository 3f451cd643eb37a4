"""Runs that choose k in a range: one plan and one budget whatever is chosen, and refusals of what cannot be asked."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pytest
from sklearn.base import clone

import cloister as package
from cloister.accounting.accountant import Accountant
from cloister.accounting.ledger.ledger import Ledger
from cloister.core.errors import InvalidInput, Refused
from cloister.core.randomness import NoiseRng, PublicRng
from cloister.core.session import Session
from cloister.core.types import Floats
from cloister.metrics import cost
from cloister.plugins.populations.arrays import Arrays
from cloister.run.account import Account
from cloister.run.fit import fit, source
from cloister.run.request import Request, prepare
from cloister.run.result import Result
from cloister.showing.profile import profile_of
from tests.in_process import ran
from tests.killed import killed_after

METHODS = "grid-means", "radius-means", "hst-means", "tree-means", "hst-median", "grid-median", "auto", "auto-median"
N = 6000


def rows(k: int) -> Floats:
    """N rows in k tight groups of [-1, 1]^2, far apart."""
    g = np.random.default_rng(0)
    angles = 2 * np.pi * np.arange(k) / k
    middles = 0.8 * np.column_stack([np.cos(angles), np.sin(angles)])
    found: Floats = np.clip(middles[g.integers(k, size=N)] + 0.03 * g.standard_normal((N, 2)), -1, 1)
    return found


request = partial(Request, k=(2, 12), epsilon=1.0, delta=1e-6, bounds=(-1, 1), rows=N, seed=1)


def fitted(data: Floats, asked: Request | None = None, **more: Any) -> Result:
    return fit(asked or request(), source(data), **more)


@pytest.mark.parametrize("method", METHODS)
def test_a_range_gives_the_number_of_groups_their_centres_and_the_errors_of_both(method: str) -> None:
    data = rows(5)
    result = fitted(data, request(method=method), noise=NoiseRng.for_tests(1))
    assert len(result.centers) == result.problem["k"] == result.details["curve"]["suggested"] == 5
    assert result.problem["k_range"] == [2, 12]
    assert result.details["curve"]["k"] == list(range(2, 13))
    assert result.weights is not None
    np.testing.assert_allclose(result.weights, N / 5, rtol=0.25)
    assert cost(data, result.centers) / N < 0.01
    clusters = profile_of(result).clusters
    assert len(clusters) == 5
    assert all(cluster.size_error is not None and cluster.center_error is not None for cluster in clusters)
    notes = " ".join(result.privacy.notes)
    assert "k = 5 was chosen among 2..12 by what the run released, at no further cost." in notes
    assert "another run, with a budget of its own" in notes


@pytest.mark.parametrize("method", METHODS)
def test_what_is_chosen_changes_nothing_that_is_paid_for(method: str) -> None:
    """Rows in 3 groups, in 8, in 8 less one row, and in one: rounds, events, buckets and bounds are the same, those of
    the forecast (which a run of the largest number has too), and the accountant takes each."""
    plan = prepare(request(method=method, zoom="off"), ["0", "1"])
    seed, chosen = PublicRng.from_seed(2), set[int]()
    forecast = plan.forecast(seed)
    for data in (rows(3), rows(8), rows(8)[1:], rows(1)):
        accountant = Accountant(plan.total, plan.budget)
        accountant.forecast([round.events for round in forecast])
        session: Session[Any] = Session(
            plan.problem, seed, Arrays(data), accountant=accountant, noise=NoiseRng.for_tests(len(data))
        )
        found = plan.composed.value.cluster(plan.problem, session, seed.child("method"))
        chosen.add(len(found.centers))
        assert _seen(session.rounds) == _seen(forecast)
    assert {3, 8} <= chosen
    largest = prepare(request(k=12, method=method, zoom="off"), ["0", "1"])
    assert largest.digest() != plan.digest()
    if not method.startswith("auto"):  # which may pick another one
        assert largest.budget == plan.budget
        assert [round.events for round in largest.forecast(seed)] == [round.events for round in forecast]


def _seen(rounds: Any) -> list[Any]:
    return [
        (part.channel.events, part.cells.space, None if part.vectors is None else part.vectors.bound)
        for round in rounds
        for part in round.parts
    ]


# resumed runs


@pytest.mark.parametrize("looks", [1, 5])
def test_a_run_that_was_cut_off_goes_on_and_its_result_can_be_had_again(ledger: Ledger, looks: int) -> None:
    data, asked = rows(5), request(rows=None, seed=None, method="hst-means")
    account = Account(ledger=ledger.path, dataset="mine")
    with killed_after(looks):
        fitted(data, asked, account=account)
    again = attrs.evolve(account, resume=ledger.runs()[-1].id)
    done, replayed = (fitted(data, asked, account=again) for _ in range(2))
    assert done.as_dict() == replayed.as_dict()
    assert (len(ledger.runs()), done.problem["k"]) == (1, 5)
    with pytest.raises(Refused):
        fitted(data, attrs.evolve(asked, k=(3, 12)), account=again)


# what is refused


def test_a_method_that_releases_nothing_to_choose_by_is_refused_by_name() -> None:
    with pytest.raises(InvalidInput, match=r"'fastlloyd' cannot choose k in 2\.\.12: .*grid-means.*radius-means"):
        prepare(request(method="fastlloyd"), ["0", "1"])


@pytest.mark.parametrize("trust", ["local", "shuffled", "aggregated"])
def test_only_a_curator_chooses_k(trust: str) -> None:
    more = {"parties": 2} if trust == "aggregated" else {}
    with pytest.raises(InvalidInput, match=f"only a curator's run chooses k, .* {trust.capitalize()}"):
        prepare(request(trust=trust, **more), ["0", "1"])


def test_auto_leaves_out_what_cannot_choose() -> None:
    choice = prepare(request(), ["0", "1"]).choice
    assert choice is not None
    assert {c.name for c in choice.candidates if c.why == "it cannot choose k"} >= {"damped-lloyd", "shrunk-lloyd"}


# commands, config files, estimators


def test_the_command_line_says_what_it_suggests_and_draws_it(tmp_path: Path) -> None:
    np.save(tmp_path / "rows.npy", rows(5))
    fitting = "fit rows.npy -k 2..12 --epsilon 1 --delta 1e-6 --bounds=-1:1 --rows 6000 --method hst-means"
    told = "Of 2 to 12 groups, 5 are suggested: rows are then nearest to their own group, against the next one"
    assert f"{told} (simplified silhouette 0." in ran(f"{fitting} --out r.json", tmp_path).stdout
    drawn = ran("plot r.json --curve -o c.svg", tmp_path).stdout
    assert "cost per row with 2 to 12 centres; k = 5 is suggested" in drawn
    assert "k = 5, suggested" in (tmp_path / "c.svg").read_text()
    assert "2 to 12 centres (planned for 12" in ran(f"{fitting} --dry-run", tmp_path).stdout


def test_an_estimator_of_a_range_is_cloned_with_it_and_loaded_with_what_was_chosen() -> None:
    made = package.KMeans((2, 12), epsilon=1.0, delta=1e-6, bounds=(-1, 1), rows=N, random_state=1)
    assert clone(made).n_clusters == (2, 12)
    loaded = made.fit(rows(5)).result_.estimator()
    assert (loaded.predict(rows(5)) == made.predict(rows(5))).all()
    assert loaded.n_clusters == 5
    assert clone(loaded).fit(rows(5)).cluster_centers_.shape == (5, 2)
