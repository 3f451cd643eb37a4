"""Checks of methods: schedule, budget, purity, and centres that are fit to be released whatever the answers were."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from copy import deepcopy
from typing import Any

import numpy as np

from cloister.accounting.accountant import Accountant
from cloister.accounting.budgeting import affordable_problem
from cloister.accounting.privacy_target import PrivacyTarget
from cloister.core.budget import Event, PrivacyNotion
from cloister.core.clustering import Clustering, Problem
from cloister.core.domains import Ball, Box, Domain
from cloister.core.errors import CloisterError
from cloister.core.plain_data import digest
from cloister.core.randomness import NoiseRng, PublicRng
from cloister.core.record import Record
from cloister.core.registry.components import parts_of, slots_of
from cloister.core.session import Session, forecast, forecast_session
from cloister.core.trust import Trust
from cloister.testing.check import given, require
from cloister.testing.checks import bucketings
from cloister.testing.stubs import SCRIPTS, Fenced, Guarded, Handful, Invented, Script, other_coins

TOTAL = PrivacyTarget(1.0, 1e-6)

PROBLEMS: tuple[tuple[int, Domain, int], ...] = (
    (1, Box((0.0,), (1.0,)), 200),
    (3, Box((-1.0, 0.0, 5.0), (1.0, 10.0, 5.5)), 10_000),
    (4, Ball((0.5, -0.5), 2.0), 1_000),
)
"""k, domain, public number of rows: one centre in one column, a box with unequal sides, a ball off the origin."""

FEW = 200
"""Rows of which small chunks are made, for every question of every round."""


def currencies_of(component: Any) -> frozenset[PrivacyNotion]:
    """In what a component and everything in its slots count privacy. An oracle inside another one spends what the outer
    one declares."""
    if hasattr(component, "measure"):
        return frozenset({PrivacyNotion.of(component)})
    return frozenset[PrivacyNotion]().union(*map(currencies_of, parts_of(component).values()))


def trusts_of(component: Any) -> frozenset[type[Trust]]:
    """The trust models of everything in a component's slots."""
    found: set[type[Trust]] = {component.trust} if isinstance(getattr(component, "trust", None), type) else set()
    for part in parts_of(component).values():
        found |= trusts_of(part)
    return frozenset(found)


def problems(method: Any) -> Iterator[tuple[Problem, PublicRng]]:
    """The kit's problems, with the budget that the method's oracles share."""
    for i, (k, domain, rows) in enumerate(PROBLEMS):
        yield (
            affordable_problem(method, currencies_of(method), TOTAL, k, domain, rows),
            PublicRng.from_seed(60).child(i),
        )


def told(method: Any, problem: Problem, seed: PublicRng, script: Script) -> tuple[Clustering, Invented]:
    """One run on invented answers."""
    session = Invented(problem, seed, script)
    with given(f"k = {problem.k}, {problem.domain}, answers: {script.name}"):
        return method.cluster(problem, session, seed.child("method")), session


def rows_of(problem: Problem) -> Handful:
    """Three hundred rows of the domain and beyond, in a few clumps."""
    g, domain = np.random.default_rng(61), problem.domain
    middles = domain.sample(g, 3, 0.0)
    rows = middles[g.integers(0, 3, 300)] + g.standard_normal((300, domain.dimension)) * domain.diameter / 8
    return Handful(rows, problem.rows)


def the_schedule_does_not_depend_on_answers(method: Any) -> None:
    """Number of rounds, questions, what each spends and how many numbers are agreed in between are the same whatever
    is answered: what is forecast is what is asked."""
    for problem, seed in problems(method):
        expected = forecast_session(method, problem, seed)
        forecasted = schedule_of(expected.rounds)
        for script in SCRIPTS:
            _, session = told(method, problem, seed, script)
            asked = schedule_of(session.rounds)
            require(
                asked == forecasted,
                f"k = {problem.k}, answers: {script.name}: it asks {_words(asked)}; the forecast is "
                f"{_words(forecasted)}",
            )
            require(
                session.agreed_sizes == expected.agreed_sizes,
                f"k = {problem.k}, answers: {script.name}: it agrees on (after, numbers) {session.agreed_sizes}; the "
                f"forecast is {expected.agreed_sizes}",
            )


def schedule_of(rounds: Any) -> list[tuple[tuple[Event, ...], ...]]:
    return [tuple(part.channel.events for part in round.parts) for round in rounds]


def _words(schedule: list[tuple[tuple[Event, ...], ...]]) -> str:
    rounds = [
        " + ".join(f"{e.mechanism} {e.spent.amount:.4g}" for events in parts for e in events) for parts in schedule
    ]
    return f"{len(rounds)} rounds ({'; '.join(rounds)})"


def all_rounds_together_keep_the_budget(method: Any) -> None:
    """The events of all rounds, added up as the accountant does, cost at most the budget, and nothing in them is
    un-noised."""
    for problem, seed in problems(method):
        rounds = forecast(method, problem, seed)
        require(rounds or not slots_of(type(method)), f"k = {problem.k}: it asks nothing of the oracles in its slots")
        try:
            Accountant(TOTAL, problem.budget).forecast([round.events for round in rounds])
        except CloisterError as error:
            require(False, f"k = {problem.k}, {len(rounds)} rounds: {error}")


def one_trust_model_from_start_to_end(method: Any) -> None:
    """Every question of every round has one trust model: that of the oracles in the method's slots."""
    wanted = trusts_of(method)
    for problem, seed in problems(method):
        asked = {round.trust for round in forecast(method, problem, seed)}
        require(len(asked) == 1 or not wanted, f"its rounds have the trust models {_trusts(asked)}")
        require(asked == wanted or not wanted, f"its rounds are {_trusts(asked)}, its slots are {_trusts(wanted)}")


def _trusts(trusts: Collection[type[Trust]]) -> str:
    return " and ".join(sorted(trust.__name__ for trust in trusts))


def equal_answers_give_equal_centers(method: Any) -> None:
    """A run is a pure function of the problem, the public key and the answers: no clock, no global randomness, no
    memory. It asks the same rounds (by their digests) and ends with the same centres."""
    for problem, seed in problems(method):
        one, first = told(method, problem, seed, SCRIPTS[1])
        with other_coins():
            other, second = told(method, problem, seed, SCRIPTS[1])
        for a, b in zip(first.rounds, second.rounds, strict=True):
            require(
                a.digest() == b.digest(), f"k = {problem.k}: after equal answers round {a.index} asked something else"
            )
        same = np.array_equal(one.centers, other.centers)
        require(same, f"k = {problem.k}: equal answers gave centres {one.centers[0]} and {other.centers[0]}")


def replay_needs_no_rows(method: Any) -> None:
    """The record of a run (digests and looks) gives the same centres again, without any rows and without any new
    question."""
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
    """The population is gathered once per round, by the session, and nothing else is done to it; of the session a
    method uses the public names."""
    for problem, seed in problems(method):
        guarded: Any = Guarded(rows_of(problem))
        session: Session[Any] = Session(problem, seed, guarded, noise=NoiseRng.for_tests(63))
        fenced: Any = Fenced(session)
        method.cluster(problem, fenced, seed.child("method"))
        asked = [round.index for round in session.rounds]
        require(guarded._gathered == asked, f"k = {problem.k}: rounds {asked} were asked, {guarded._gathered} gathered")


def its_questions_see_each_row_alone(method: Any) -> None:
    """The bucketings and vectors of its questions see rows: what they make of a row depends on that row alone, in any
    batch. Ids are of buckets that there are, vectors are int64 and within their bound."""
    for problem, seed in problems(method):
        rounds = (*forecast(method, problem, seed), *told(method, problem, seed, SCRIPTS[1])[1].rounds)
        seen, domain = set[str](), problem.domain
        for where, part in ((f"k = {problem.k}, round {round.index}", p) for round in rounds for p in round.parts):
            cells, vectors, key = part.cells, part.vectors, digest((part.cells, part.vectors))
            if key in seen:
                continue
            seen.add(key)
            twin, others = deepcopy((cells, vectors))  # before they see a row
            rows, named = bucketings.rows_of(domain, cells), f"{where}: {type(cells).__name__}"
            bucketings.check_ids(named, cells, rows)
            bucketings.check_alone(named, cells.locate, rows, "fall in another bucket", FEW)
            bucketings.check_forgetful(named, cells.locate, twin.locate, rows, "fall in another bucket")
            if vectors is not None:
                bucketings.check_vectors(f"{where}: {type(vectors).__name__}", vectors, others, rows, FEW)


def any_answers_give_centers_inside_the_domain(method: Any) -> None:
    """Whatever the noise made of the answers, k finite centres inside the domain come out, and weights and details are
    plain."""
    for problem, seed in problems(method):
        for script in SCRIPTS:
            _judge(told(method, problem, seed, script)[0], problem, f"k = {problem.k}, answers: {script.name}")


def _judge(found: Clustering, problem: Problem, where: str) -> None:
    centers, domain = found.centers, problem.domain
    wanted = (problem.k, domain.dimension)
    require(
        isinstance(centers, np.ndarray) and centers.shape == wanted and centers.dtype == np.float64,
        f"{where}: centres have the shape {np.shape(centers)} and type {getattr(centers, 'dtype', '?')}, not {wanted}",
    )
    bucketings.check_inside(where, "centre", centers, domain)
    weights = found.weights
    if weights is not None:
        require(weights.shape == (problem.k,) and np.isfinite(weights).all(), f"{where}: weights are {weights}")
    _plain(found.details, where)


def _plain(details: Mapping[str, Any], where: str) -> None:
    for name, value in details.items():
        try:
            json.dumps(np.asarray(value).tolist())
        except (TypeError, ValueError):
            require(False, f"{where}: the detail '{name}' is {type(value).__name__}, which is not plain data")


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
