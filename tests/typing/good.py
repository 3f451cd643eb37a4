"""Lines that must type-check, with the types that they must have."""

from __future__ import annotations

from typing import Any, assert_type

import numpy as np
from stubs import (
    CentralCounts,
    CentralSums,
    Collected,
    Curator,
    LocalCounts,
    LocalSums,
    Party,
    PooledCounts,
    PooledSums,
    TwoSlots,
    box,
    budget,
    near,
    noise,
    problem,
    seed,
)

from cloister import KMeans
from cloister.accounting import Accountant, PrivacyTarget
from cloister.core.buckets import Bucketing, QuestionContext, Vectors
from cloister.core.budget import Charging
from cloister.core.clustering import Clustering, Coreset, Released
from cloister.core.domains import Ball, Domain
from cloister.core.population import Population
from cloister.core.questions import Question, Round, count, vector_sum
from cloister.core.randomness import PublicRng
from cloister.core.registry.making import make
from cloister.core.roles import Counts, FrequencyOracle, NonPrivateSolver, Sums, VectorSumOracle
from cloister.core.session import Method, Session, forecast, next_round
from cloister.core.trust import Aggregated, Central, Local
from cloister.core.types import Floats, Ints
from cloister.plugins.methods.lloyd import Lloyd
from cloister.plugins.methods.sphere_packing import SpherePacking
from cloister.plugins.oracles.central.discrete_laplace import DiscreteLaplace
from cloister.plugins.populations.arrays import Arrays
from cloister.plugins.populations.files import Files


def one_method_four_trusts(curator: Curator, got: Collected, party: Party) -> None:
    central = TwoSlots(counts=CentralCounts(), sums=CentralSums())
    local = TwoSlots(counts=LocalCounts(), sums=LocalSums())
    pooled = TwoSlots(counts=PooledCounts(), sums=PooledSums())
    assert_type(local, TwoSlots[Local])
    assert_type(central.cluster(problem, Session(problem, seed, curator), seed), Clustering)
    local.cluster(problem, Session(problem, seed, got), seed)
    pooled.cluster(problem, Session(problem, seed, party, noise=noise), seed)
    as_method: Method[Aggregated] = pooled
    assert_type(forecast(as_method, problem, seed), list[Round[Aggregated]])
    assert_type(next_round(local, problem, seed), Round[Local])


def methods_are_swapped_and_options_left_out() -> None:
    KMeans(8, method="fastlloyd")
    KMeans(8, method=TwoSlots(counts=make("FrequencyOracle", "discrete-laplace"), sums=CentralSums()))
    assert_type(make("Method", "fastlloyd", rounds=3), Method[Any])
    assert_type(make("FrequencyOracle", "discrete-laplace"), FrequencyOracle[Any])
    assert_type(Lloyd(start=SpherePacking(), counts=CentralCounts(), sums=CentralSums(), rounds=5), Lloyd[Central])


def answers_have_the_types_of_their_questions(session: Session[Central]) -> None:
    q1 = count(near, oracle=CentralCounts(), budget=budget)
    q2 = vector_sum(near.offsets(), oracle=CentralSums(), budget=budget)
    assert_type(q1, Question[Central, Counts])
    assert_type(session.ask(q1), tuple[Counts])
    assert_type(session.ask(q2, q1, q1), tuple[Sums, Counts, Counts])
    assert_type(session.ask(*[q1]), tuple[Counts, ...])
    assert_type(session.ask(q1)[0].at(np.arange(3)), Floats)
    assert_type(session.release(1.5), Released[float])


def everything_plays_its_role(method: Lloyd[Central], solver: NonPrivateSolver, rows: Any) -> None:
    counts: list[FrequencyOracle[Central]] = [CentralCounts(), DiscreteLaplace()]
    sums: list[VectorSumOracle[Central]] = [CentralSums(), DiscreteLaplace()]
    populations: list[Population[Central]] = [Curator(), Arrays(rows), Files(rows)]
    anywhere: Population[Local] = Arrays(rows)
    domains: list[Domain] = [box, Ball((0.0,), 1.0)]
    bucketing: Bucketing = near
    vectors: Vectors = near.offsets()
    accountant: Charging = Accountant(PrivacyTarget(1.0), budget)
    print(counts, sums, anywhere, domains, bucketing, vectors)
    session: Session[Central] = Session(problem, seed, populations[0], accountant=accountant, noise=noise)
    coreset = Coreset(np.zeros((3, 2)), np.ones(3))
    assert_type(solver.solve(session.release(coreset), 3, seed), Floats)
    assert_type(method.cluster(problem, session, seed.child("method")), Clustering)


def data_is_what_it_says(rows: Floats) -> None:
    assert_type(near.locate(box.snap(rows)), Ints)
    assert_type(box.real(box.snap(rows)), Floats)
    assert_type(QuestionContext(3, box.unit, seed.child("a", 1)).seed, PublicRng)
