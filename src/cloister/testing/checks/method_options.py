"""Checks of methods with options away from their defaults, of purity over rows, and of chosen numbers of centres.

The budget spent is added up here, independently of the accountant.
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

from cloister.core.budget import Share
from cloister.core.registry.components import CandidateSlot, Option, options_of, slots_of
from cloister.plugin import (
    Box,
    Budget,
    CloisterError,
    Clustering,
    Event,
    Floats,
    NoiseRng,
    Problem,
    PublicRng,
    Round,
    Session,
    chooses_k,
    forecast,
)
from cloister.testing.check import noting_input, refuses, require
from cloister.testing.checks.declarations import ROUNDING, rho_of
from cloister.testing.checks.methods import problems, rows_of, run_scripted, schedule_of
from cloister.testing.stubs import SCRIPTS, InMemoryRows, invented_tables

SCRIPT = SCRIPTS[1]
"""Plausible answers, given whatever the rows are."""


def only_answers_tell_of_the_rows(method: Any) -> None:
    """Over no rows, one row or many, equal answers lead to the rounds of the forecast and to the same centres.

    Rounds have equal digests too: nothing that sees rows on its way, such as a bucketing, remembers any.
    """
    *_, (problem, seed) = problems(method)
    forecasted = schedule_of(forecast(method, problem, seed))
    expected, rounds = _run_with_equal_answers(method, problem, seed, rows_of(problem).rows[:0])
    for description, rows in _data_sets(problem):
        label = f"k = {problem.k}, equal answers, {description}"
        with noting_input(label):
            clustering, asked_rounds = _run_with_equal_answers(method, problem, seed, rows)
        require(
            schedule_of(asked_rounds) == forecasted,
            f"{label}: its {len(asked_rounds)} rounds differ from the {len(forecasted)} of the forecast",
        )
        different = [a.index for a, b in zip(asked_rounds, rounds, strict=True) if a.digest() != b.digest()]
        require(not different, f"{label}: round {different[:1]} differs from that over no rows")
        moved = int((clustering.centers != expected.centers).any(axis=1).sum())
        require(not moved, f"{label}: {moved} of {len(clustering.centers)} centres differ from those over no rows")


def _data_sets(problem: Problem) -> Iterator[tuple[str, Floats]]:
    """Yield one row, which is a neighbour of no rows, and many rows."""
    rows = rows_of(problem).rows
    yield "one row", rows[:1]
    yield f"{len(rows)} rows", rows


def _run_with_equal_answers(
    method: Any, problem: Problem, seed: PublicRng, rows: Floats
) -> tuple[Clustering, list[Round[Any]]]:
    """Run over rows that are gathered in every round, but answer from the script."""
    session: Session[Any] = Session(
        problem,
        seed,
        InMemoryRows(rows, problem.rows),
        noise=NoiseRng.for_tests(64),
        reading=lambda round, summaries, tables: invented_tables(round, problem, seed, SCRIPT),
    )
    return method.cluster(problem, session, seed.child("method")), session.rounds


METHOD_ANSWERS = (only_answers_tell_of_the_rows,)
"""Checks of every method that run first, before anything could be remembered for good."""


def the_number_it_chooses_changes_no_question(method: Any) -> None:
    """Given a range of k, rounds, events, buckets and bounds equal the forecast whatever is answered and so chosen.

    The result has as many centres as it reports. This applies to methods with ``chooses_k``.
    """
    if not chooses_k(method):
        return
    for problem, seed in problems(method):
        if problem.k < 3:
            continue
        ranged = attrs.evolve(problem, fewest=2)
        forecasted = _shapes(forecast(method, ranged, seed))
        for script in SCRIPTS:
            clustering, session = run_scripted(method, ranged, seed, script)
            label = f"2 to {ranged.k} centres, answers: {script.name}"
            require(_shapes(session.rounds) == forecasted, f"{label}: its questions differ from the forecast")
            _check_curve(clustering, ranged, label)


def _shapes(rounds: Any) -> list[list[Any]]:
    """Return the facts of each question that are known without its answer."""
    return [
        [
            (part.channel.events, part.cells.space, None if part.vectors is None else part.vectors.bound)
            for part in round.parts
        ]
        for round in rounds
    ]


def _check_curve(clustering: Clustering, problem: Problem, label: str) -> None:
    curve, k = clustering.details.get("curve", {}), len(clustering.centers)
    require(problem.fewest is not None and problem.fewest <= k <= problem.k, f"{label}: {k} centres")
    require(curve.get("suggested") == k, f"{label}: {k} centres, and the curve suggests {curve.get('suggested')}")
    numbers, costs = np.asarray(curve.get("k", [])), np.asarray(curve.get("costs", []))
    require(k in numbers and numbers.shape == costs.shape, f"{label}: the curve has {len(costs)} costs of {numbers}")
    require(bool(np.isfinite(costs).all() and (costs >= 0).all()), f"{label}: a cost is negative, or not finite")
    require(clustering.weights is None or clustering.weights.shape == (k,), f"{label}: weights of {k} centres")


METHOD_RANGES = (the_number_it_chooses_changes_no_question,)


DOMAIN = Box((0.0,) * 5, (1.0,) * 5)
"""Box with more columns than any method treats as few."""

MIN_SPENT = 0.5
"""Minimum share of the budget to spend: the remainder is wasted."""

CHEAP = 9
"""Largest integer option value that is cheap enough to try."""


def every_option_keeps_the_budget(method: Any) -> None:
    """Whatever values options have, in slots too, all rounds spend at most the budget and at least half of it.

    Deltas add up to at most the budget's. Refusing a value is fine.
    """
    problem, seed = next(problems(method))
    problem = attrs.evolve(problem, k=3, domain=DOMAIN, rows=10_000)
    budget = problem.budget
    if budget.measure == "exact":
        return
    for description, changed in variants(method):
        rounds = _forecast_or_none(changed, problem, seed)
        if not rounds:
            continue
        events = [event for round in rounds for event in round.events]
        amount, delta = total_spent(events, budget)
        limit = budget.amount if _same_measure(events, budget) else rho_of(budget)
        label = f"{description}, {len(rounds)} rounds: {amount / limit:.4g} of the budget"
        require(amount <= limit * ROUNDING, f"{label} are spent")
        require(delta <= budget.delta * ROUNDING, f"{label}, and delta {delta:.4g} of {budget.delta:.4g}, are spent")
        require(amount >= limit * MIN_SPENT, f"{label} are spent, the remainder is wasted")


def _forecast_or_none(method: Any, problem: Problem, seed: PublicRng) -> Sequence[Round[Any]]:
    """Return the method's rounds; none if it refuses its options."""
    try:
        return forecast(method, problem, seed)
    except CloisterError:
        return ()


def total_spent(events: Sequence[Event], budget: Budget) -> tuple[float, float]:
    """Return the cost of one row, in the budget's measure, or in rho if any event has another, and the delta.

    Users in one share of them pay for that share's questions; shares of one key are disjoint or the same.
    """
    same = _same_measure(events, budget)
    everyone, shared = [0.0, 0.0], defaultdict[Any, dict[Share, list[float]]](lambda: defaultdict(lambda: [0.0, 0.0]))
    for event in events:
        share = event.spent.user_share
        total = everyone if share is None else shared[share.rng][share]
        total[0] += event.spent.amount if same else rho_of(event.spent)
        total[1] += event.delta
    for parts in shared.values():
        for i in (0, 1):
            everyone[i] += max(total[i] for total in parts.values())
    return everyone[0], everyone[1]


def _same_measure(events: Sequence[Event], budget: Budget) -> bool:
    return all(event.spent.measure == budget.measure for event in events)


def variants(component: Any, inside: bool = False) -> Iterator[tuple[str, Any]]:
    """Yield the component with one option changed, or two of which one is a choice, or a change in a slot.

    A slot's component gets one other value (``inside``). Oracles, solvers and candidates have checks of their own.
    """
    if not attrs.has(type(component)):
        return
    facts = options_of(type(component))
    other_values = {name: list(_other_values(component, name, facts[name][0])) for name in facts}
    for name, values in other_values.items():
        for value in values[-1:] if inside else values:
            yield from _evolved(component, {name: value})
    choices = [] if inside else [name for name in facts if facts[name][0].choices]
    integers = [name for name in facts if name not in choices and isinstance(next(iter(other_values[name]), None), int)]
    for one, other in product(choices, integers):
        for first, second in product(other_values[one], other_values[other][-1:]):
            yield from _evolved(component, {one: first, other: second})
    for slot, kind in slots_of(type(component)).items():
        inner = getattr(component, slot)
        if not isinstance(kind, CandidateSlot) and not hasattr(inner, "measure") and not hasattr(inner, "solve"):
            for description, changed in variants(inner, inside=True):
                yield f"{slot}.{description}", attrs.evolve(component, **{slot: changed})


def _evolved(component: Any, values: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the component with these values, unless they are incompatible."""
    with suppress(CloisterError):
        yield ", ".join(f"{name} = {value!r}" for name, value in values.items()), attrs.evolve(component, **values)


def _other_values(component: Any, name: str, facts: Option) -> Iterator[Any]:
    """Yield a few other values of an option: its choices, its bounds, slightly and much smaller or larger ones."""
    hint, now = get_type_hints(type(component))[name], getattr(component, name)
    kinds = {hint, *typing.get_args(hint)}
    if facts.choices:
        candidates: list[Any] = list(facts.choices)
    elif bool in kinds:
        candidates = [True, False]
    elif int in kinds:
        candidates = [facts.low, 2, 3, 4, CHEAP - 2, facts.high, *((now - 1, now + 1) if isinstance(now, int) else ())]
        candidates = [int(value) for value in candidates if value is not None and value <= max(CHEAP, 2 * (now or 0))]
    elif float in kinds:
        candidates = [
            float(value) for value in (facts.low, 0.3 if not now else now / 2, facts.high) if value is not None
        ]
    else:
        candidates = []
    for value in dict.fromkeys(candidates):
        if value != now and not refuses(CloisterError, facts.check, name, value):
            yield value


METHOD_OPTIONS = (every_option_keeps_the_budget,)
