"""Lines that must not type-check: each with mypy's error code and pyright's rule."""

from __future__ import annotations

import numpy as np
from stubs import CentralCounts, CentralSums, Collected, Curator, LocalCounts, LocalSums, Party, PooledSums, TwoSlots

from cloister import KMeans
from cloister.accounting import Accountant, Total
from cloister.core.buckets import QuestionContext, Space
from cloister.core.budget import Budget
from cloister.core.clustering import Coreset, Problem
from cloister.core.domains import Box
from cloister.core.encoding import encode_rows
from cloister.core.nearest import NearestCenter
from cloister.core.questions import Question, Round, count, vector_sum
from cloister.core.randomness import NoiseRng, PublicRng
from cloister.core.registry.making import make
from cloister.core.roles import Counts, NonPrivateSolver, Sums
from cloister.core.session import Method, Session, forecast
from cloister.core.trust import Aggregated, Central, Local
from cloister.core.types import Floats, Ids
from cloister.plugins.methods.lloyd import Lloyd
from cloister.plugins.methods.sphere_packing import SpherePacking, sphere_packing

box = Box((-1.0, -1.0), (1.0, 1.0))
total = Total(1.0)
budget = total.measured(["pure"])
problem = Problem(3, box, 10, budget)
seed, noise = PublicRng.from_seed(1), NoiseRng.secret()
near = NearestCenter(np.zeros((3, 2), np.int64), box.max_norm)
method = TwoSlots(counts=CentralCounts(), sums=CentralSums())


def slots() -> None:
    TwoSlots[Central](counts=LocalCounts(), sums=CentralSums())  # E: arg-type, reportArgumentType
    TwoSlots[Local](counts=LocalCounts(), sums=PooledSums())  # E: arg-type, reportArgumentType
    TwoSlots(counts=LocalCounts(), sums=CentralSums())  # E: type-var, reportArgumentType
    TwoSlots[Central](counts=CentralSums(), sums=CentralSums())  # E: arg-type, reportArgumentType
    TwoSlots[Central](counts=CentralCounts(), sums=CentralSums)  # E: arg-type, reportArgumentType
    TwoSlots[Central](counts=CentralCounts())  # E: call-arg, reportCallIssue
    Lloyd(start=SpherePacking(), counts=LocalCounts(), sums=CentralSums())  # E: misc, reportArgumentType
    packed = SpherePacking[Central]()
    Lloyd(start=packed, counts=CentralCounts(), sums=CentralSums(), rounds="five")  # E: arg-type, reportArgumentType
    Lloyd(start=packed, counts=CentralCounts(), sums=CentralSums(), border="wrap")  # E: arg-type, reportArgumentType
    Lloyd(start=packed, counts=CentralCounts(), sums=CentralSums(), round=5)  # E: call-arg, reportCallIssue
    Lloyd(CentralCounts(), CentralSums())  # E: call-arg, reportCallIssue


def swapped() -> None:
    central = Lloyd(start=SpherePacking(), counts=CentralCounts(), sums=CentralSums())
    KMeans(8, method=CentralCounts())  # E: arg-type, reportArgumentType
    packed_start = SpherePacking[Central]()
    KMeans(8, method=Lloyd(start=packed_start, counts=LocalCounts(), sums=CentralSums()))  # E: misc, reportArgumentType
    KMeans(8, method=Lloyd)  # E: arg-type, reportArgumentType
    KMeans(8, method=make("FrequencyOracle", "discrete-laplace"))  # E: arg-type, reportArgumentType
    TwoSlots(counts=make("VectorSumOracle", "exact"), sums=CentralSums())  # E: arg-type, reportArgumentType
    Lloyd(start=central, counts=LocalCounts(), sums=LocalSums())  # E: misc, reportArgumentType


def sessions(curator: Curator, got: Collected, party: Party, session: Session[Central]) -> None:
    elsewhere = TwoSlots(counts=LocalCounts(), sums=LocalSums())
    method.cluster(problem, Session(problem, seed, party), seed)  # E: arg-type, reportArgumentType
    wrong: Session[Central] = Session(problem, seed, got)  # E: arg-type, reportAssignmentType
    other: Method[Aggregated] = method  # E: assignment, reportAssignmentType
    elsewhere.cluster(problem, session, seed)  # E: arg-type, reportArgumentType
    planned: list[Round[Local]] = forecast(method, problem, seed)  # E: arg-type, reportAssignmentType
    print(wrong, other, planned, curator)


def rounds(session: Session[Central], local: Question[Local, Counts], sums: Question[Local, Sums]) -> None:
    counts = count(near, oracle=CentralCounts(), budget=budget)
    session.ask(local)  # E: arg-type, reportCallIssue
    session.ask(counts, sums)  # E: arg-type, reportCallIssue
    session.ask(near)  # E: call-overload, reportCallIssue
    count(near, oracle=CentralSums(), budget=budget)  # E: arg-type, reportArgumentType
    vector_sum(near, oracle=CentralSums(), budget=budget)  # E: arg-type, reportArgumentType
    count(near, oracle=CentralCounts(), budget=total)  # E: arg-type, reportArgumentType
    session.ask(counts)[0].at([0, 1])  # E: arg-type, reportArgumentType


def released(session: Session[Central], solver: NonPrivateSolver, points: Floats) -> None:
    coreset = Coreset(points, points[:, 0])
    solver.solve(coreset, 3, seed)  # E: arg-type, reportArgumentType
    solver.solve(session.release(points), 3, seed)  # E: arg-type, reportArgumentType
    solver.solve(session.release(coreset), 3, noise)  # E: arg-type, reportArgumentType


def data(rows: Floats, users: Ids, plan: Round[Local]) -> None:
    near.locate(rows)  # E: arg-type, reportArgumentType
    NearestCenter(rows, box.max_norm)  # E: arg-type, reportArgumentType
    box.real(rows)  # E: arg-type, reportArgumentType
    encode_rows(plan, rows, users, seed)  # E: arg-type, reportArgumentType


def coins_and_money(curator: Curator) -> None:
    channel = CentralCounts().open(Space((3,)), budget, QuestionContext(3, 1.0, seed))
    QuestionContext(3, 1.0, noise)  # E: arg-type, reportArgumentType
    sphere_packing(3, box, noise)  # E: arg-type, reportArgumentType
    Session(problem, seed, curator, noise=seed)  # E: arg-type, reportArgumentType
    Session(problem, noise, curator)  # E: arg-type, reportArgumentType
    channel.decode(None, seed)  # E: arg-type, reportArgumentType
    Accountant(budget, budget)  # E: arg-type, reportArgumentType
    Accountant(total, total)  # E: arg-type, reportArgumentType
    Problem(3, box, 10, total)  # E: arg-type, reportArgumentType
    Budget("epsilon", 1.0)  # E: arg-type, reportArgumentType
    print(noise.key)  # E: attr-defined, reportAttributeAccessIssue
    NoiseRng(1)  # E: arg-type, reportArgumentType
