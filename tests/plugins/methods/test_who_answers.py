"""Who answers what, and what that costs: under Local trust every user one question, elsewhere everybody all of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cloister.accounting import Total
from cloister.accounting.total import afforded
from cloister.core.budget import Budget
from cloister.core.clustering import Problem
from cloister.core.domains import Ball, Box, Domain
from cloister.core.encoding import encode_lattice
from cloister.core.randomness import NoiseRng, PublicRng
from cloister.core.registry.compose import compose
from cloister.core.registry.registry import built_in
from cloister.core.session import Session, forecast
from cloister.core.trust import Aggregated, Local, Shuffled
from cloister.core.types import Floats, Ints
from cloister.plugins.populations.arrays import Arrays
from cloister.testing.checks.methods import currencies_of

SEED = PublicRng.from_seed(80)
BOX = Box((-1.0,) * 6, (1.0,) * 6)
LOCAL = {"counts": "optimised-local-hashing", "sums": "hadamard-vector"}
PAIRS: dict[str, Any] = {"radii": 2, "repetitions": 2}


def made(name: str, components: dict[str, str], **options: Any) -> Any:
    return compose(built_in(), "Method", name, components, options).value


@pytest.mark.parametrize(
    ("name", "components", "options"),
    [
        ("evolution", {"counts": "optimised-local-hashing"}, {}),
        ("grid-means", LOCAL, {}),
        ("radius-means", LOCAL, {}),
        *(("one-round", {}, {"partitions": partitions}) for partitions in (1, 2, 3)),
        ("weighted-centers", {}, PAIRS),
        ("weighted-centers", {"sums": "ldp-average"}, PAIRS),
    ],
    ids=str,
)
def test_under_local_trust_every_user_answers_one_question_with_all_of_her_epsilon(
    name: str, components: dict[str, str], options: dict[str, Any]
) -> None:
    problem = Problem(3, BOX, 3000, Budget("pure", 1.0, delta=1e-6))
    rounds = forecast(made(name, components, **options), problem, SEED)
    users, rows = np.arange(3000, dtype=np.uint64), np.zeros((3000, 6), np.int64)
    answered = [
        report.users for asked in rounds for report in encode_lattice(asked, rows, users, NoiseRng.for_tests(0))
    ]
    assert sorted(np.concatenate(answered).tolist()) == users.tolist()
    assert {event.spent.epsilon for asked in rounds for event in asked.events} == {1.0}
    assert {asked.trust for asked in rounds} == {Local}


@pytest.mark.parametrize(
    ("name", "components", "trust"),
    [
        ("evolution", {"counts": "skellam"}, Aggregated),
        ("evolution", {"counts": "split-and-mix-counts"}, Shuffled),
        ("radius-means", {"counts": "skellam", "sums": "skellam"}, Aggregated),
        ("radius-means", {"counts": "split-and-mix-counts", "sums": "split-and-mix"}, Shuffled),
    ],
    ids=str,
)
def test_where_noise_is_shared_or_messages_hide_each_other_everybody_answers_every_round(
    name: str, components: dict[str, str], trust: type
) -> None:
    method = made(name, components)
    problem = afforded(method, currencies_of(method), Total(1.0, 1e-6), 5, BOX, 100_000)
    rounds = forecast(method, problem, SEED)
    assert {round.trust for round in rounds} == {trust}
    assert all(part.user_share is None for round in rounds for part in round.parts)
    spent = sum(event.spent.amount for round in rounds for event in round.events)
    assert spent == pytest.approx(problem.budget.amount)


def contributions(session: Any, row: Floats) -> list[float]:
    """What this row adds to each answer, in standard deviations of its noise: the exact privacy loss of the run, since
    centres and radii of every round are those that this run released."""
    found = []
    for round in session.rounds:
        rows: Ints = round.domain.snap(row[None])
        for part in round.parts:
            buckets = part.cells.locate(rows)
            assert buckets.shape == (1, 1)
            assert -1 <= buckets[0, 0] < part.cells.space.sizes[0]
            size = float(buckets[0, 0] >= 0)
            if part.vectors is not None and size:
                size = float(np.linalg.norm(part.vectors.values(rows, buckets))) * round.domain.unit
            found.append(size / part.channel.deviation)
    return found


@pytest.mark.parametrize("domain", [BOX, Ball((0.5,) * 6, 2.0)], ids=["box", "ball"])
@pytest.mark.parametrize("name", ["evolution", "radius-means", "gauss-lloyd", "fastlloyd"])
def test_the_row_that_is_farthest_from_all_others_costs_the_whole_budget_and_no_row_more(
    name: str, domain: Domain
) -> None:
    """Gaussian releases add up in squares, whatever the later ones are made of. The adversary's row is at the border,
    all others near the middle. Noise too small by a factor of 1.2 would cost 1.44 budgets."""
    g = np.random.default_rng(5)
    rows = domain.middle + 0.05 * g.standard_normal((2000, 6))
    border = domain.middle + domain.diameter / 2 / np.sqrt(6)
    problem = Problem(3, domain, 2001, Budget("gaussian", 0.5))
    for seed in range(3):
        population = Arrays(np.vstack([rows, border[None]]))
        session: Any = Session(problem, SEED.child(seed), population, noise=NoiseRng.for_tests(seed))
        made(name, {}).cluster(problem, session, SEED.child("method", seed))
        if name != "fastlloyd":  # which leaves it out, beyond its radius
            assert sum(c**2 for c in contributions(session, border)) == pytest.approx(0.5, rel=1e-3)
        for row in (*rows[:20], *domain.sample(g, 20, 0.0)):
            assert sum(c**2 for c in contributions(session, row)) <= 0.5 * (1 + 1e-9)
