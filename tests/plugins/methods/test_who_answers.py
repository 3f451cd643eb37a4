"""Who answers what, and what that costs: under Local trust every user one question, elsewhere everybody all of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cloister.core.budget import Budget
from cloister.core.clustering import Problem
from cloister.core.domains import Ball, Domain
from cloister.core.encoding import encode_lattice
from cloister.core.randomness import NoiseRng
from cloister.core.session import forecast
from cloister.core.trust import Local
from cloister.core.types import Floats
from tests.plugins.methods.runs import LOCAL, SEED, cube, made, run

BOX = cube(6)
PAIRS: dict[str, Any] = {"radii": 2, "repetitions": 2}


@pytest.mark.parametrize(
    ("name", "components", "options"),
    [
        ("grid-means", LOCAL, {}),
        ("radius-means", LOCAL, {}),
        *(("one-round", {}, {"partitions": partitions}) for partitions in (1, 3)),
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


def losses(session: Any, rows: Floats) -> Floats:
    """What each of these rows adds to the answers, in standard deviations of their noise, in squares: the exact privacy
    loss of the run, since centres and radii of every round are those that this run released."""
    found = np.zeros(len(rows))
    for round in session.rounds:
        lattice = round.domain.snap(rows)
        for part in round.parts:
            buckets = part.cells.locate(lattice)
            sizes = np.ones(len(rows))
            if part.vectors is not None:
                sizes = np.linalg.norm(part.vectors.values(lattice, buckets), axis=1) * round.domain.unit
            found += np.where(buckets[:, 0] >= 0, sizes / part.channel.deviation, 0.0) ** 2
    return found


@pytest.mark.parametrize("domain", [BOX, Ball((0.5,) * 6, 2.0)], ids=["box", "ball"])
@pytest.mark.parametrize("name", ["radius-means", "gauss-lloyd", "fastlloyd", "private-lloyd-median"])
def test_the_row_that_is_farthest_from_all_others_costs_the_whole_budget_and_no_row_more(
    name: str, domain: Domain
) -> None:
    """Gaussian releases add up in squares, whatever the later ones are made of. The adversary's row is at the border,
    all others near the middle. Noise too small by a factor of 1.2 would cost 1.44 budgets."""
    g = np.random.default_rng(5)
    rows = domain.middle + 0.05 * g.standard_normal((2000, 6))
    border = domain.middle + domain.diameter / 2 / np.sqrt(6)
    everybody = np.vstack([border[None], rows, domain.sample(g, 200, 0.0)])
    _, session = run(made(name), everybody[:2001], Problem(3, domain, 2001, Budget("gaussian", 0.5)))
    lost = losses(session, everybody)
    if name not in ("fastlloyd", "private-lloyd-median"):  # beyond a radius it counts nowhere, and near rows pull more
        assert lost[0] == pytest.approx(0.5, rel=1e-3)
    assert (lost[1:] <= 0.5 * (1 + 1e-9)).all()
