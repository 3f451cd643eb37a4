"""Checks of methods whose options have other values than their defaults: what is spent is added up here, and no
accountant helps.

Checks that a method knows of the rows what it was answered, and nothing else.

Checks of methods that choose the number of centres (``chooses_k``): what they choose changes no question's cost.
"""

from __future__ import annotations

import typing
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import product
from typing import Any, get_type_hints

import attrs
import numpy as np

from cloister.core.budget import Budget, Event, Share
from cloister.core.capabilities import chooses_k
from cloister.core.clustering import Clustering, Problem
from cloister.core.domains import Box
from cloister.core.errors import CloisterError
from cloister.core.questions import Round
from cloister.core.randomness import NoiseRng, PublicRng
from cloister.core.registry.components import CandidateSlot, Option, options_of, slots_of
from cloister.core.session import Session, forecast
from cloister.core.types import Floats
from cloister.testing.check import given, require
from cloister.testing.checks.declarations import ROUNDING, rho_of
from cloister.testing.checks.methods import problems, rows_of, schedule_of, told
from cloister.testing.stubs import SCRIPTS, Handful, tables_told

SCRIPT = SCRIPTS[1]
"""Says what is answered, whatever the rows are: plausible figures."""


def only_answers_tell_of_the_rows(method: Any) -> None:
    """A run is a pure function of the problem, the public key and the answers. Over no rows, over one and over many,
    equal answers lead to the rounds of the forecast, of equal digests, and to the same centres: nothing that sees rows
    on its way, a bucketing say, keeps any."""
    *_, (problem, seed) = problems(method)
    forecasted = schedule_of(forecast(method, problem, seed))
    wanted, rounds = _answered_alike(method, problem, seed, rows_of(problem).rows[:0])
    for what, rows in _data(problem):
        where = f"k = {problem.k}, equal answers, {what}"
        with given(where):
            found, asked = _answered_alike(method, problem, seed, rows)
        require(
            schedule_of(asked) == forecasted,
            f"{where}: it asks {len(asked)} rounds, {len(forecasted)} are forecast; or they spend something else",
        )
        others = [a.index for a, b in zip(asked, rounds, strict=True) if a.digest() != b.digest()]
        require(not others, f"{where}: round {others[:1]} asks something else than over no rows")
        moved = int((found.centers != wanted.centers).any(axis=1).sum())
        require(not moved, f"{where}: {moved} of {len(found.centers)} centres are others than over no rows")


def _data(problem: Problem) -> Iterator[tuple[str, Floats]]:
    """No rows but one, a neighbour of none; and many."""
    rows = rows_of(problem).rows
    yield "one row", rows[:1]
    yield f"{len(rows)} rows", rows


def _answered_alike(
    method: Any, problem: Problem, seed: PublicRng, rows: Floats
) -> tuple[Clustering, list[Round[Any]]]:
    """A live run over rows, which are gathered in every round, and whose answers are the script's all the same."""
    session: Session[Any] = Session(
        problem,
        seed,
        Handful(rows, problem.rows),
        noise=NoiseRng.for_tests(64),
        reading=lambda round, summaries, tables: tables_told(round, problem, seed, SCRIPT),
    )
    return method.cluster(problem, session, seed.child("method")), session.rounds


METHOD_ANSWERS = (only_answers_tell_of_the_rows,)
"""For every method, before any other check: what is kept for good was kept by nobody before."""


def the_number_it_chooses_changes_no_question(method: Any) -> None:
    """Given a range of numbers of centres, rounds, events, buckets and bounds are those of the forecast, whatever is
    answered and so chosen; and it returns as many centres as it says."""
    if not chooses_k(method):
        return
    for problem, seed in problems(method):
        if problem.k < 3:
            continue
        ranged = attrs.evolve(problem, fewest=2)
        forecasted = _shapes(forecast(method, ranged, seed))
        for script in SCRIPTS:
            found, session = told(method, ranged, seed, script)
            where = f"2 to {ranged.k} centres, answers: {script.name}"
            require(_shapes(session.rounds) == forecasted, f"{where}: its questions are not those of the forecast")
            _judge(found, ranged, where)


def _shapes(rounds: Any) -> list[list[Any]]:
    """Facts of each question that can be seen without its answer."""
    return [
        [
            (part.channel.events, part.cells.space, None if part.vectors is None else part.vectors.bound)
            for part in round.parts
        ]
        for round in rounds
    ]


def _judge(found: Clustering, problem: Problem, where: str) -> None:
    curve, k = found.details.get("curve", {}), len(found.centers)
    require(problem.fewest is not None and problem.fewest <= k <= problem.k, f"{where}: {k} centres")
    require(curve.get("suggested") == k, f"{where}: {k} centres, and the curve suggests {curve.get('suggested')}")
    numbers, costs = np.asarray(curve.get("k", [])), np.asarray(curve.get("costs", []))
    require(k in numbers and numbers.shape == costs.shape, f"{where}: the curve has {len(costs)} costs of {numbers}")
    require(bool(np.isfinite(costs).all() and (costs >= 0).all()), f"{where}: a cost is negative, or not finite")
    require(found.weights is None or found.weights.shape == (k,), f"{where}: weights of {k} centres")


METHOD_RANGES = (the_number_it_chooses_changes_no_question,)


DOMAIN = Box((0.0,) * 5, (1.0,) * 5)
"""Box of so many columns that no method takes them for few."""

MIN_SPENT = 0.5
"""Share of the budget that is spent at least: what is left is lost to everybody."""

FEW = 9
"""Numbers up to here are cheap enough to try."""


def every_option_keeps_the_budget(method: Any) -> None:
    """Whatever values its options have, and those of what is in its slots, all rounds together spend at most the budget
    and at least half of it, and their deltas add up to at most the budget's; or the value is refused."""
    problem, seed = next(problems(method))
    problem = attrs.evolve(problem, k=3, domain=DOMAIN, rows=10_000)
    budget = problem.budget
    if budget.measure == "exact":
        return
    for what, changed in variants(method):
        rounds = _asked(changed, problem, seed)
        if not rounds:
            continue
        events = [event for round in rounds for event in round.events]
        (amount, delta), whole = in_all(events, budget), budget.amount if _alike(events, budget) else rho_of(budget)
        where = f"{what}, {len(rounds)} rounds: {amount / whole:.4g} of the budget"
        require(amount <= whole * ROUNDING, f"{where} are spent")
        require(delta <= budget.delta * ROUNDING, f"{where}, and delta {delta:.4g} of {budget.delta:.4g}, are spent")
        require(amount >= whole * MIN_SPENT, f"{where} are spent, and the rest is wasted")


def _asked(method: Any, problem: Problem, seed: PublicRng) -> Sequence[Round[Any]]:
    """The questions it asks; none where it refuses."""
    try:
        return forecast(method, problem, seed)
    except CloisterError:
        return ()


def in_all(events: Sequence[Event], budget: Budget) -> tuple[float, float]:
    """The price of one row, in the budget's measure (in rho where any event has another), and the delta. Users in one
    share of them pay for what that share is asked; shares of one key are disjoint or the same."""
    same = _alike(events, budget)
    every, shared = [0.0, 0.0], defaultdict[Any, dict[Share, list[float]]](lambda: defaultdict(lambda: [0.0, 0.0]))
    for event in events:
        share = event.spent.user_share
        total = every if share is None else shared[share.rng][share]
        total[0] += event.spent.amount if same else rho_of(event.spent)
        total[1] += event.delta
    for parts in shared.values():
        for i in (0, 1):
            every[i] += max(total[i] for total in parts.values())
    return every[0], every[1]


def _alike(events: Sequence[Event], budget: Budget) -> bool:
    return all(event.spent.measure == budget.measure for event in events)


def variants(component: Any, inside: bool = False) -> Iterator[tuple[str, Any]]:
    """The component with one option at another value, or two of which one is a choice; or with something changed in a
    slot (``inside``: there one other value is enough). Oracles and solvers in slots are left alone: what those spend is
    their own checks' business, and these ask nothing; so are candidates, which are methods of their own."""
    if not attrs.has(type(component)):
        return
    facts = options_of(type(component))
    others = {name: list(_others(component, name, facts[name][0])) for name in facts}
    for name, values in others.items():
        for value in values[-1:] if inside else values:
            yield from _made(component, {name: value})
    choices = [] if inside else [name for name in facts if facts[name][0].choices]
    whole = [name for name in facts if name not in choices and isinstance(next(iter(others[name]), None), int)]
    for one, other in product(choices, whole):
        for first, second in product(others[one], others[other][-1:]):
            yield from _made(component, {one: first, other: second})
    for slot, kind in slots_of(type(component)).items():
        inner = getattr(component, slot)
        if not isinstance(kind, CandidateSlot) and not hasattr(inner, "measure") and not hasattr(inner, "solve"):
            for what, changed in variants(inner, inside=True):
                yield f"{slot}.{what}", attrs.evolve(component, **{slot: changed})


def _made(component: Any, values: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """The component with these values, unless they do not go together."""
    with suppress(CloisterError):
        yield ", ".join(f"{name} = {value!r}" for name, value in values.items()), attrs.evolve(component, **values)


def _others(component: Any, name: str, facts: Option) -> Iterator[Any]:
    """A few other values that an option takes: its choices, its bounds, a bit and a lot more or less."""
    kinds, now = _kinds(get_type_hints(type(component))[name]), getattr(component, name)
    if facts.choices:
        found: list[Any] = list(facts.choices)
    elif bool in kinds:
        found = [True, False]
    elif int in kinds:
        found = [facts.low, 2, 3, 4, FEW - 2, facts.high, *((now - 1, now + 1) if isinstance(now, int) else ())]
        found = [int(value) for value in found if value is not None and value <= max(FEW, 2 * (now or 0))]
    elif float in kinds:
        found = [float(value) for value in (facts.low, 0.3 if not now else now / 2, facts.high) if value is not None]
    else:
        found = []
    for value in dict.fromkeys(found):
        if value != now and _takes(name, facts, value):
            yield value


def _takes(name: str, facts: Option, value: Any) -> bool:
    try:
        facts.check(name, value)
    except CloisterError:
        return False
    return True


def _kinds(hint: Any) -> set[Any]:
    """The types that an option may be of."""
    return {hint, *typing.get_args(hint)}


METHOD_OPTIONS = (every_option_keeps_the_budget,)
"""For every method."""
