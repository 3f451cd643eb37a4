"""Reports to centres: the same as in one process, with people missing, and nothing but a function of the reports."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cloister.collection.client.encoder import Encoded, PlanEncoder
from cloister.collection.plan.plan import CollectionPlan
from cloister.collection.plan.publish import publish
from cloister.collection.server.aggregator import decode
from cloister.core.encoding import absorb
from cloister.core.session import Session
from cloister.run.request import Request
from tests.collection.plans import local_plan
from tests.collection.server.collected import written

N, D, K = 20_000, 5, 3
CORNERS = 0.8 * np.eye(D)[:K]


@pytest.fixture(scope="module")
def plan() -> CollectionPlan:
    return local_plan(D, k=K, epsilon=4.0, rows=N)


@pytest.fixture(scope="module")
def done(plan: CollectionPlan) -> Encoded:
    rng = np.random.default_rng(0)
    return PlanEncoder(plan).encode(CORNERS[rng.integers(0, K, N)] + rng.normal(0, 0.03, (N, D)), np.arange(N))


class InHand:
    """The same reports, never written down."""

    def __init__(self, done: Encoded) -> None:
        self.gather = lambda round, rng: absorb(round, done.reports)


def test_it_finds_what_a_session_in_one_process_finds(tmp_path: Path, plan: CollectionPlan, done: Encoded) -> None:
    session: Session[Any] = Session(plan.problem, plan.seed, InHand(done))
    expected = plan.compose().value.cluster(plan.problem, session, plan.seed.child("method"))
    found = decode(plan, written(tmp_path / "a.reports", done)).result
    privacy = found.privacy
    assert (privacy.trust, privacy.epsilon, privacy.delta, privacy.rows) == ("Local", 4.0, 0.0, N)
    assert (privacy.simulated, privacy.seeded, privacy.private) == (False, False, True)
    assert len(privacy.spends) == len(plan.round().parts)
    assert np.array_equal(found.centers, expected.centers)
    assert expected.weights is not None
    assert found.weights is not None
    assert np.array_equal(found.weights, expected.weights)
    assert found.details["plan"] == plan.hash
    assert found.columns == tuple("01234")


def test_a_statement_says_that_the_start_of_a_plan_counts_as_public(tmp_path: Path) -> None:
    start = dict(zip("01234", CORNERS.T.tolist(), strict=True))
    request = Request(
        k=K, method="kept-centers", epsilon=4.0, rows=500, bounds=(-1, 1), trust="Local", start=start, zoom="off"
    )
    plan = publish(request, list("01234"))
    some = PlanEncoder(plan).encode(np.zeros((500, D)), np.arange(500))
    text = decode(plan, written(tmp_path / "a.reports", some)).result.privacy.text()
    assert "The centres that the run began from count as public" in text
