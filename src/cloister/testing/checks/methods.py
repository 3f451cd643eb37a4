"""Checks of methods: fixed schedule, budget, purity, and valid centres whatever the answers."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from copy import deepcopy
from typing import Any

import numpy as np

from cloister.accounting import Accountant, PrivacyTarget
from cloister.accounting.budgeting import affordable_problem
from cloister.core.budget import PrivacyNotion
from cloister.core.plain_data import digest
from cloister.core.record import Record
from cloister.core.registry.components import parts_of, slots_of
from cloister.core.session import forecast_session
from cloister.core.trust import Trust
from cloister.plugin import (
    Ball,
    Box,
    CloisterError,
    Clustering,
    Domain,
    Event,
    NoiseRng,
    Problem,
    PublicRng,
    Session,
    forecast,
)
from cloister.testing.check import noting_input, require
from cloister.testing.checks import bucketings
from cloister.testing.stubs import (
    SCRIPTS,
    GatherOnly,
    InMemoryRows,
    InventedSession,
    PublicNamesOnly,
    Script,
    reseeded_numpy,
)

TARGET = PrivacyTarget(1.0, 1e-6)

PROBLEMS: tuple[tuple[int, Domain, int], ...] = (
    (1, Box((0.0,), (1.0,)), 200),
    (3, Box((-1.0, 0.0, 5.0), (1.0, 10.0, 5.5)), 10_000),
    (4, Ball((0.5, -0.5), 2.0), 1_000),
)
"""k, domain and public number of rows: one centre in one column, a box with unequal sides, a ball off the origin."""

SMALL_CHUNK_ROWS = 200
"""Rows cut into small chunks, for every question of every round."""


def notions_of(component: Any) -> frozenset[PrivacyNotion]:
    """Return the privacy notions of a component and its slots.

    An oracle inside another one spends what the outer one declares.
    """
    if hasattr(component, "measure"):
        return frozenset({PrivacyNotion.of(component)})
    return frozenset[PrivacyNotion]().union(*map(notions_of, parts_of(component).values()))


def trusts_of(component: Any) -> frozenset[type[Trust]]:
    """Return the trust models of a component and its slots."""
    trusts: set[type[Trust]] = {component.trust} if isinstance(getattr(component, "trust", None), type) else set()
    for part in parts_of(component).values():
        trusts |= trusts_of(part)
    return frozenset(trusts)


def problems(method: Any) -> Iterator[tuple[Problem, PublicRng]]:
    """Yield the kit's problems, with the budget that the method's oracles share."""
    for i, (k, domain, rows) in enumerate(PROBLEMS):
        yield (
            affordable_problem(method, notions_of(method), TARGET, k, domain, rows),
            PublicRng.from_seed(60).child(i),
        )


def run_scripted(method: Any, problem: Problem, seed: PublicRng, script: Script) -> tuple[Clustering, InventedSession]:
    """Run a method on invented answers."""
    session = InventedSession(problem, seed, script)
    with noting_input(f"k = {problem.k}, {problem.domain}, answers: {script.name}"):
        return method.cluster(problem, session, seed.child("method")), session


def rows_of(problem: Problem) -> InMemoryRows:
    """Return 300 rows in three clumps, some of them outside the domain."""
    g, domain = np.random.default_rng(61), problem.domain
    middles = domain.sample(g, 3, 0.0)
    rows = middles[g.integers(0, 3, 300)] + g.standard_normal((300, domain.dimension)) * domain.diameter / 8
    return InMemoryRows(rows, problem.rows)


def the_schedule_does_not_depend_on_answers(method: Any) -> None:
    """Every round, question, cost and number agreed in between is as forecast, whatever is answered."""
    for problem, seed in problems(method):
        expected = forecast_session(method, problem, seed)
        forecasted = schedule_of(expected.rounds)
        for script in SCRIPTS:
            _, session = run_scripted(method, problem, seed, script)
            schedule = schedule_of(session.rounds)
            require(
                schedule == forecasted,
                f"k = {problem.k}, answers: {script.name}: it asks {_describe(schedule)}; the forecast is "
                f"{_describe(forecasted)}",
            )
            require(
                session.agreed_sizes == expected.agreed_sizes,
                f"k = {problem.k}, answers: {script.name}: it agrees on (after, numbers) {session.agreed_sizes}; the "
                f"forecast is {expected.agreed_sizes}",
            )


def schedule_of(rounds: Any) -> list[tuple[tuple[Event, ...], ...]]:
    return [tuple(part.channel.events for part in round.parts) for round in rounds]


def _describe(schedule: list[tuple[tuple[Event, ...], ...]]) -> str:
    rounds = [
        " + ".join(f"{e.mechanism} {e.spent.amount:.4g}" for events in parts for e in events) for parts in schedule
    ]
    return f"{len(rounds)} rounds ({'; '.join(rounds)})"


def all_rounds_together_keep_the_budget(method: Any) -> None:
    """Events of all rounds, composed by the accountant, cost at most the budget, and none of them is exact."""
    for problem, seed in problems(method):
        rounds = forecast(method, problem, seed)
        require(rounds or not slots_of(type(method)), f"k = {problem.k}: it asks nothing of the oracles in its slots")
        try:
            Accountant(TARGET, problem.budget).forecast([round.events for round in rounds])
        except CloisterError as error:
            require(False, f"k = {problem.k}, {len(rounds)} rounds: {error}")


def one_trust_model_from_start_to_end(method: Any) -> None:
    """Questions of all rounds have one trust model: that of the oracles in the method's slots."""
    expected = trusts_of(method)
    for problem, seed in problems(method):
        trusts = {round.trust for round in forecast(method, problem, seed)}
        require(len(trusts) == 1 or not expected, f"its rounds have the trust models {_trusts(trusts)}")
        require(
            trusts == expected or not expected,
            f"its rounds have trust {_trusts(trusts)}, its slots {_trusts(expected)}",
        )


def _trusts(trusts: Collection[type[Trust]]) -> str:
    return " and ".join(sorted(trust.__name__ for trust in trusts))


def equal_answers_give_equal_centers(method: Any) -> None:
    """Equal answers give equal rounds (by digest) and centres: no clock, no global randomness, no memory.

    A run is a pure function of the problem, the public key and the answers.
    """
    for problem, seed in problems(method):
        one, first = run_scripted(method, problem, seed, SCRIPTS[1])
        with reseeded_numpy():
            other, second = run_scripted(method, problem, seed, SCRIPTS[1])
        for a, b in zip(first.rounds, second.rounds, strict=True):
            require(a.digest() == b.digest(), f"k = {problem.k}: round {a.index} differs after equal answers")
        same = np.array_equal(one.centers, other.centers)
        require(same, f"k = {problem.k}: equal answers gave centres {one.centers[0]} and {other.centers[0]}")


def replay_needs_no_rows(method: Any) -> None:
    """From its record (digests and lookups) a run gives the same centres again, without rows or new questions."""
    for problem, seed in problems(method):
        record = Record()
        live: Session[Any] = Session(problem, seed, rows_of(problem), record=record, noise=NoiseRng.for_tests(62))
        one = method.cluster(problem, live, seed.child("method"))
        replay: Session[Any] = Session(
            problem, seed, None, record=Record(record.digests, record.closed, list(record.lookups))
        )
        other = method.cluster(problem, replay, seed.child("method"))
        require(len(replay.rounds) == len(live.rounds), f"k = {problem.k}: the replay asks {len(replay.rounds)} rounds")
        require(np.array_equal(one.centers, other.centers), f"k = {problem.k}: the replay gives other centres")


def rows_are_reached_by_asking_only(method: Any) -> None:
    """Every population is gathered once per round, by the session, and used in no other way.

    A method uses only the public names of its session.
    """
    for problem, seed in problems(method):
        guarded: Any = GatherOnly(rows_of(problem))
        session: Session[Any] = Session(problem, seed, guarded, noise=NoiseRng.for_tests(63))
        fenced: Any = PublicNamesOnly(session)
        method.cluster(problem, fenced, seed.child("method"))
        indices = [round.index for round in session.rounds]
        require(
            guarded._gathered == indices, f"k = {problem.k}: rounds {indices} were asked, {guarded._gathered} gathered"
        )


def its_questions_see_each_row_alone(method: Any) -> None:
    """Bucketings and vectors of its questions depend on each row alone, in any batch.

    Ids are of existing buckets; vectors are int64 and within their bound.
    """
    for problem, seed in problems(method):
        rounds = (*forecast(method, problem, seed), *run_scripted(method, problem, seed, SCRIPTS[1])[1].rounds)
        seen_digests, domain = set[str](), problem.domain
        for label, part in ((f"k = {problem.k}, round {round.index}", p) for round in rounds for p in round.parts):
            cells, vectors, key = part.cells, part.vectors, digest((part.cells, part.vectors))
            if key in seen_digests:
                continue
            seen_digests.add(key)
            cells_twin, vectors_twin = deepcopy((cells, vectors))  # before they see a row
            rows, named = bucketings.rows_of(domain, cells), f"{label}: {type(cells).__name__}"
            bucketings.check_ids(named, cells, rows)
            bucketings.check_row_by_row(named, cells.locate, rows, "fall in another bucket", SMALL_CHUNK_ROWS)
            bucketings.check_no_memory(named, cells.locate, cells_twin.locate, rows, "fall in another bucket")
            if vectors is not None:
                bucketings.check_vectors(
                    f"{label}: {type(vectors).__name__}", vectors, vectors_twin, rows, SMALL_CHUNK_ROWS
                )


def any_answers_give_centers_inside_the_domain(method: Any) -> None:
    """Whatever noise does to the answers, k finite centres inside the domain result, with plain weights and details."""
    for problem, seed in problems(method):
        for script in SCRIPTS:
            _check_clustering(
                run_scripted(method, problem, seed, script)[0], problem, f"k = {problem.k}, answers: {script.name}"
            )


def _check_clustering(clustering: Clustering, problem: Problem, label: str) -> None:
    centers, domain = clustering.centers, problem.domain
    expected_shape = (problem.k, domain.dimension)
    require(
        isinstance(centers, np.ndarray) and centers.shape == expected_shape and centers.dtype == np.float64,
        f"{label}: centres have the shape {np.shape(centers)} and type {getattr(centers, 'dtype', '?')}, expected "
        f"{expected_shape} of float64",
    )
    bucketings.check_inside(label, "centre", centers, domain)
    weights = clustering.weights
    if weights is not None:
        require(weights.shape == (problem.k,) and np.isfinite(weights).all(), f"{label}: weights are {weights}")
    _check_plain(clustering.details, label)


def _check_plain(details: Mapping[str, Any], label: str) -> None:
    for name, value in details.items():
        try:
            json.dumps(np.asarray(value).tolist())
        except (TypeError, ValueError):
            require(False, f"{label}: the detail '{name}' is {type(value).__name__}, which is not plain data")


METHODS = (
    the_schedule_does_not_depend_on_answers,
    all_rounds_together_keep_the_budget,
    one_trust_model_from_start_to_end,
    equal_answers_give_equal_centers,
    replay_needs_no_rows,
    rows_are_reached_by_asking_only,
    its_questions_see_each_row_alone,
    any_answers_give_centers_inside_the_domain,
)
