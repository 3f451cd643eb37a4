"""Runs that choose k in a range: one plan and one budget whatever is chosen, and refusals of what cannot be asked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

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


def rows(k: int, d: int = 2, seed: int = 0) -> Floats:
    """N rows in k tight groups of [-1, 1]^d, far apart."""
    g = np.random.default_rng(seed)
    angles = 2 * np.pi * np.arange(k) / k
    middles = np.zeros((k, d))
    middles[:, :2] = 0.8 * np.column_stack([np.cos(angles), np.sin(angles)])
    found: Floats = np.clip(middles[g.integers(k, size=N)] + 0.03 * g.standard_normal((N, d)), -1, 1)
    return found


def request(k: Any = (2, 12), **more: Any) -> Request:
    return Request(**({"k": k, "epsilon": 1.0, "delta": 1e-6, "bounds": (-1, 1), "rows": N, "seed": 1} | more))


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
    assert result.details["weights_error"].shape == (5,)
    assert result.details["centers_error"].shape == (5, 2)
    clusters = profile_of(result).clusters
    assert len(clusters) == 5
    assert all(cluster.size_error is not None and cluster.center_error is not None for cluster in clusters)


@pytest.mark.parametrize("method", METHODS)
def test_what_is_chosen_changes_nothing_that_is_paid_for(method: str) -> None:
    """Rows in 3 groups, in 8, in 8 less one row, and in one: rounds, events, buckets and bounds are the same, those of
    the forecast, and the accountant takes each."""
    plan = prepare(request(method=method, zoom="off"), ["0", "1"])
    seed, schedules, chosen = PublicRng.from_seed(2), [], set[int]()
    forecast = plan.forecast(seed)
    for data in (rows(3), rows(8), rows(8)[1:], rows(1)):
        accountant = Accountant(plan.total, plan.budget)
        accountant.forecast([round.events for round in forecast])
        session: Session[Any] = Session(
            plan.problem, seed, Arrays(data), accountant=accountant, noise=NoiseRng.for_tests(len(data))
        )
        found = plan.composed.value.cluster(plan.problem, session, seed.child("method"))
        chosen.add(len(found.centers))
        schedules.append([[_seen(part) for part in round.parts] for round in session.rounds])
    assert {3, 8} <= chosen
    assert all(schedule == [[_seen(part) for part in round.parts] for round in forecast] for schedule in schedules)


def _seen(part: Any) -> Any:
    return part.channel.events, part.cells.space, None if part.vectors is None else part.vectors.bound


@pytest.mark.parametrize("method", ["grid-means", "radius-means", "hst-means"])
def test_a_range_costs_what_its_largest_number_does(method: str) -> None:
    ranged, plain = (prepare(request(k, method=method), ["0", "1"]) for k in ((2, 12), 12))
    seed = PublicRng.from_seed(3)
    assert [r.events for r in ranged.forecast(seed)] == [r.events for r in plain.forecast(seed)]
    assert ranged.budget == plain.budget
    assert ranged.digest() != plain.digest()


def test_the_statement_says_that_another_k_is_another_run() -> None:
    notes = " ".join(fitted(rows(5)).privacy.notes)
    assert "k = 5 was chosen among 2..12 by what the run released, at no further cost." in notes
    assert "another run, with a budget of its own" in notes


def test_rows_may_be_counted_first() -> None:
    assert fitted(rows(4), request(rows=None)).problem["k"] == 4


# resumed runs


@pytest.mark.parametrize("looks", [1, 5])
def test_a_run_that_was_cut_off_goes_on_and_its_result_can_be_had_again(ledger: Ledger, looks: int) -> None:
    data, asked = rows(5), request(seed=None, method="hst-means")
    with killed_after(looks):
        fitted(data, asked, account=Account(ledger=ledger.path, dataset="mine"))
    name = ledger.runs()[-1].id
    again = Account(ledger=ledger.path, dataset="mine", resume=name)
    done, replayed = (fitted(data, asked, account=again) for _ in range(2))
    assert done.as_dict() == replayed.as_dict()
    assert len(ledger.runs()) == 1
    with pytest.raises(Refused):
        fitted(data, request((3, 12), seed=None, method="hst-means"), account=again)


# what is refused


def test_what_is_no_range_is_refused() -> None:
    """In Python; ``bad_inputs`` has the command line's."""
    for pair in ((2,), (2.0, 5), (True, 5), ("2", "5"), [9, 2]):
        with pytest.raises(InvalidInput, match="k is"):
            request(pair)


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
    assert {c.name for c in choice.candidates if c.why == "it cannot choose k"} >= {"fastlloyd", "shrunk-lloyd"}
    assert choice.as_dict()["picked"] in ("grid-means", "radius-means", "hst-means")


# commands, config files, estimators


def test_the_command_line_says_what_it_suggests_and_draws_it(tmp_path: Path) -> None:
    np.save(tmp_path / "rows.npy", rows(5))
    fitting = "fit rows.npy -k 2..12 --epsilon 1 --delta 1e-6 --bounds=-1:1 --rows 6000 --method hst-means"
    done = ran(f"{fitting} --out r.json", tmp_path)
    told = "Of 2 to 12 groups, 5 are suggested: rows are then nearest to their own group, against the next one"
    assert f"{told} (silhouette 0." in done.stdout
    assert "round 1, question 1" not in done.stdout
    assert "round 1, question 1" in ran(f"{fitting} --verbose", tmp_path).stdout
    drawn = ran("plot r.json --curve -o c.svg", tmp_path)
    assert "cost per row with 2 to 12 centres; 5 are suggested" in drawn.stdout
    assert "k = 5, as suggested" in (tmp_path / "c.svg").read_text()
    assert "2 to 12 centres (planned for 12" in ran(f"{fitting} --dry-run", tmp_path).stdout


def test_an_estimator_of_a_range_is_cloned_with_it_and_loaded_with_what_was_chosen(tmp_path: Path) -> None:
    made = package.KMeans((2, 12), epsilon=1.0, delta=1e-6, bounds=(-1, 1), rows=N, random_state=1)
    assert clone(made).n_clusters == (2, 12)
    made.fit(rows(5)).result_.save(tmp_path / "r.json")
    loaded = package.KMeans.load(tmp_path / "r.json")
    np.testing.assert_array_equal(loaded.predict(rows(5)), made.predict(rows(5)))
    assert loaded.n_clusters == made.result_.estimator().n_clusters == 5
    assert clone(loaded).fit(rows(5)).cluster_centers_.shape == (5, 2)
