"""What built-in methods spend at other options, and with oracles that have deltas of their own: added up by the kit,
not by an accountant."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from cloister.core.budget import Budget
from cloister.core.clustering import Problem
from cloister.core.domains import Box
from cloister.core.randomness import PublicRng
from cloister.core.registry.compose import compose
from cloister.core.registry.registry import registry
from cloister.core.session import forecast
from cloister.plugins.methods.weighted_centers.candidates import Sharing, Step, groups_of, of_pair
from cloister.testing.checks.method_options import METHOD_OPTIONS, total_spent, variants
from cloister.testing.checks.methods import problems

(CHECK,) = METHOD_OPTIONS
SEED = PublicRng.from_seed(1)
SPLIT = {"counts": "split-and-mix-counts", "sums": "split-and-mix"}
AMPLIFIED = {"counts": "amplified-counts", "sums": "amplified-vectors"}


def method(name: str, components: dict[str, str] | None = None, **options: Any) -> Any:
    return compose(registry(), "Method", name, components or {}, options).value


def paid(made: Any) -> tuple[float, float]:
    """Shares of the budget and of its delta that all rounds together spend."""
    problem: Problem = attrs.evolve(next(problems(made))[0], k=3, domain=Box((0.0,) * 5, (1.0,) * 5), rows=10_000)
    events = [event for round in forecast(made, problem, SEED) for event in round.events]
    amount, delta = total_spent(events, problem.budget)
    return amount / problem.budget.amount, delta / problem.budget.delta if problem.budget.delta else delta


@pytest.mark.parametrize(("name", "passes"), [("tree-means", 1), ("tree-means", 7), ("tree-median", 2)])
def test_a_tree_method_spends_its_budget_once_however_many_passes(name: str, passes: int) -> None:
    assert paid(method(name, passes=passes)) == (pytest.approx(1, rel=1e-9), 0)


@pytest.mark.parametrize(("pairs_by", "failing_steps"), [("users", {"sums", "check", "weigh"}), ("budget", {"sums"})])
def test_steps_that_may_fail_share_the_whole_delta(failing_steps: set[Step], pairs_by: Sharing) -> None:
    """Those of one user, over all the radii and repetitions that she is asked about."""
    weights: dict[Step, float] = {"hashes": 1.0, "sums": 2.0, "check": 3.0, "weigh": 0.5}
    groups = groups_of(
        Budget("pure", 1.0, delta=1e-6),
        weights,
        3,
        2,
        radii_by=pairs_by,
        repetitions_by=pairs_by,
        steps_by="budget",
        failing=failing_steps,
        seed=SEED,
    )
    for group in groups:
        spent = [of_pair(groups, pair)[step] for step in weights for pair in group.pairs]
        assert sum(budget.amount for budget in spent) == pytest.approx(1.0, rel=1e-9)
        assert sum(budget.delta for budget in spent) == pytest.approx(1e-6, rel=1e-9)
        assert all((of_pair(groups, group.pairs[0])[s].delta > 0) == (s in failing_steps) for s in weights)


@pytest.mark.parametrize(
    ("name", "components"),
    [
        ("one-round", SPLIT),
        ("one-round", AMPLIFIED),
        pytest.param("weighted-centers", {"sums": "ldp-average"}, marks=pytest.mark.thorough),
    ],
)
def test_deltas_of_oracles_are_shared_whatever_the_options_are(name: str, components: dict[str, str]) -> None:
    CHECK(method(name, components))


def test_a_start_that_asks_has_a_share_and_one_that_does_not_has_none() -> None:
    """Else the budget would be spent twice, or part of it never: it is refused when the run is forecast."""
    for name, start, share, said in (
        ("fastlloyd", "tree-means", 0.0, "has no share of the budget"),
        ("fastlloyd", "sphere-packing", 0.5, "would be lost"),
        ("private-lloyd-median", "tree-median", 0.0, "has no share of the budget"),
        ("private-lloyd-median", "sphere-packing", 0.5, "would be lost"),
    ):
        with pytest.raises(Exception, match=said):
            paid(method(name, {"start": start}, start_share=share))
    assert paid(method("fastlloyd", {"start": "tree-means"}, start_share=0.5))[0] == pytest.approx(1, rel=1e-9)


def test_other_values_are_tried_of_every_option_also_in_slots() -> None:
    tried = [what for what, _ in variants(method("hst-means"))]
    for what in ("rounds = 7", "start.passes = 7", "start_share = 0.0", "updates = 'absolute'", "start.tree.depth = 7"):
        assert what in tried, tried
    assert any(what.startswith("radius = 'none', ") for what in tried)
    assert not any("sums." in what or "merge." in what for what in tried)
