"""Lines that must not type-check: each with mypy's error code and pyright's rule."""

from __future__ import annotations

from stubs import (
    CentralCounts,
    CentralSums,
    Collected,
    Curator,
    LocalCounts,
    LocalSums,
    Party,
    TwoSlots,
    box,
    budget,
    near,
    noise,
    problem,
    seed,
    total,
)

from cloister import KMeans
from cloister.accounting import Accountant
from cloister.core.buckets import QuestionContext
from cloister.core.clustering import Coreset, Problem
from cloister.core.encoding import encode_rows
from cloister.core.questions import Question, Round, count, vector_sum
from cloister.core.randomness import NoiseRng
from cloister.core.registry.making import make
from cloister.core.roles import Channel, Counts, NonPrivateSolver
from cloister.core.session import Session, forecast
from cloister.core.trust import Central, Local
from cloister.core.types import Floats, Ids, Ints
from cloister.plugins.methods.lloyd import Lloyd
from cloister.plugins.methods.sphere_packing import SpherePacking

method = TwoSlots(counts=CentralCounts(), sums=CentralSums())


def slots() -> None:
    TwoSlots[Central](counts=LocalCounts(), sums=CentralSums())  # E: arg-type, reportArgumentType
    TwoSlots(counts=LocalCounts(), sums=CentralSums())  # E: type-var, reportArgumentType
    TwoSlots[Central](counts=CentralSums(), sums=CentralSums())  # E: arg-type, reportArgumentType
    TwoSlots[Central](counts=CentralCounts())  # E: call-arg, reportCallIssue
    TwoSlots(counts=make("VectorSumOracle", "exact"), sums=CentralSums())  # E: arg-type, reportArgumentType
    packed = SpherePacking[Central]()
    central = Lloyd(start=packed, counts=CentralCounts(), sums=CentralSums())
    Lloyd(start=SpherePacking(), counts=LocalCounts(), sums=CentralSums())  # E: misc, reportArgumentType
    Lloyd(start=central, counts=LocalCounts(), sums=LocalSums())  # E: misc, reportArgumentType
    Lloyd(start=packed, counts=CentralCounts(), sums=CentralSums(), rounds="five")  # E: arg-type, reportArgumentType
    KMeans(8, method=CentralCounts())  # E: arg-type, reportArgumentType


def sessions(got: Collected, party: Party, local: Question[Local, Counts], session: Session[Central]) -> None:
    method.cluster(problem, Session(problem, seed, party), seed)  # E: arg-type, reportArgumentType
    wrong: Session[Central] = Session(problem, seed, got)  # E: arg-type, reportAssignmentType
    planned: list[Round[Local]] = forecast(method, problem, seed)  # E: arg-type, reportAssignmentType
    wrong.ask(local)  # E: arg-type, reportCallIssue
    session.ask(planned)  # E: call-overload, reportCallIssue
    count(near, oracle=CentralSums(), budget=budget)  # E: arg-type, reportArgumentType
    vector_sum(near, oracle=CentralSums(), budget=budget)  # E: arg-type, reportArgumentType


def released(session: Session[Central], solver: NonPrivateSolver, coreset: Coreset, answers: Counts) -> None:
    solver.solve(coreset, 3, seed)  # E: arg-type, reportArgumentType
    solver.solve(session.release(coreset), 3, noise)  # E: arg-type, reportArgumentType
    answers.at([0, 1])  # E: arg-type, reportArgumentType


def data(rows: Floats, users: Ids, plan: Round[Local]) -> None:
    near.locate(rows)  # E: arg-type, reportArgumentType
    encode_rows(plan, rows, users, seed)  # E: arg-type, reportArgumentType


def coins_and_money(curator: Curator, channel: Channel[Ints, None, None, Counts]) -> None:
    QuestionContext(3, 1.0, noise)  # E: arg-type, reportArgumentType
    Session(problem, seed, curator, noise=seed)  # E: arg-type, reportArgumentType
    Session(problem, noise, curator)  # E: arg-type, reportArgumentType
    channel.decode(None, seed)  # E: arg-type, reportArgumentType
    Accountant(total, total)  # E: arg-type, reportArgumentType
    Problem(3, box, 10, total)  # E: arg-type, reportArgumentType
    print(noise.key)  # E: attr-defined, reportAttributeAccessIssue
    NoiseRng(1)  # E: arg-type, reportArgumentType
