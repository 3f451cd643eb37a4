"""Publication of a plan: check the request, forecast its rounds, and describe costs and expected accuracy."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Any, cast

import attrs

from cloister._version import __version__
from cloister.accounting import Accountant
from cloister.collection.plan.bundle_folder import missing_bundle_reason
from cloister.collection.plan.costs import Size, Step, sent_bytes
from cloister.collection.plan.crowd import Crowd
from cloister.collection.plan.liars import harm
from cloister.collection.plan.plan import TRUSTS, CollectionPlan, Outlook
from cloister.collection.plan.promise import promise, weakness_warnings
from cloister.collection.wire.answers import layout_of
from cloister.core.capabilities import PredictsError, predicted_error, relative_loss
from cloister.core.clustering import Problem
from cloister.core.domains import Ball, Box
from cloister.core.errors import InvalidInput
from cloister.core.lattice import CAP
from cloister.core.questions import Round
from cloister.core.randomness import PublicRng
from cloister.core.reproducible_math import figure
from cloister.core.trust import Shuffled
from cloister.rows.columns import select_by_name
from cloister.rows.options import Reading
from cloister.rows.selection import Selection
from cloister.run.bounds import named_in
from cloister.run.layers.levels import levels, method_of, prices, recorded
from cloister.run.method_selection import MethodSelection, in_words
from cloister.run.request import PreparedRun, Request, prepare, refuse_unregistered

WELL = 0.1
"""Expected error v that counts as good: noise adds a tenth of the squared radius."""

MAX_DIMENSIONS = 2**20


def publish(
    request: Request,
    columns: Sequence[str] | None = None,
    dimension: int | None = None,
    categories: Mapping[str, Any] | None = None,
) -> CollectionPlan:
    """Make the plan of a request.

    Args:
        request: the request.
        columns: names of the columns. Default: those that the bounds name.
        dimension: number of columns, for any names; instead of ``columns``.
        categories: public values by column; these columns are used, too.

    Raises:
        CloisterError: the request is invalid, or its method is not for users who randomise their own rows.
    """
    table = _selected(request, columns, dimension, categories)
    composed = request.composed
    name = composed.spec.name
    refuse_unregistered(composed, "a plan")
    if not composed.private:
        raise InvalidInput(f"'{name}' as composed is NOT private, so nobody can be asked to answer it")
    if composed.trust not in TRUSTS:
        raise InvalidInput(
            f"'{name}' as composed has trust {composed.trust}, but people who answer a plan randomise their own rows. "
            f"Choose a method such as one-round, or fill all its slots with Local or Shuffled oracles: --trust local, "
            f"--trust shuffled, or one by one with --with (see 'cloister list')"
        )
    plan = prepare(request, table.features, chosen_columns=table)
    seed = PublicRng.fresh() if request.seed is None else PublicRng.from_seed(request.seed)
    rounds = plan.forecast(seed)
    Accountant(plan.total, plan.problem.budget).forecast([round.events for round in rounds])
    if not rounds:
        raise InvalidInput(f"'{name}' as composed asks no question: there is nothing to plan")
    crowd = _crowd(rounds, name)
    steps = tuple(Step.of(round) for round in rounds)
    outlook = _outlook(plan)
    made = CollectionPlan(
        method=plan.composed.config(),
        k=plan.problem.k,
        rows=plan.problem.rows,
        domain=cast(Box | Ball, plan.problem.domain),
        total=plan.total,
        columns=plan.columns if dimension is None else None,
        seed=seed,
        digest=rounds[0].digest(),
        outlook=outlook,
        size=reduce(Size.plus, (step.size for step in steps)),
        warnings=warnings(plan, outlook),
        version=__version__,
        schedule=steps if len(steps) > 1 else (),
        crowd=crowd,
        categories={category.column: category.values for category in table.categories},
    )
    return _round_trip(made, plan.choice)


def _crowd(rounds: Sequence[Round[Any]], name: str) -> Crowd | None:
    """Return the crowd that a plan of trust Shuffled needs. Raises: InvalidInput: it would ask several rounds."""
    if rounds[0].trust is not Shuffled:
        return None
    if len(rounds) > 1:
        raise InvalidInput(
            f"'{name}' as composed asks {len(rounds)} rounds, but a plan of trust Shuffled has one: choose one-round, "
            f"and state all bounds without --zoom, which asks a round of its own"
        )
    return Crowd.of(rounds[0])


def words(plan: CollectionPlan, rounds: Sequence[Round[Any]]) -> str:
    """Describe a plan for people; ``rounds`` are ``plan.rounds()``."""
    columns = "any" if plan.columns is None else ", ".join(plan.columns)
    lines = [
        f"A plan to find {plan.k} centres of {plan.rows:,} people's rows, of {plan.dimension} columns ({columns}), by "
        f"{recorded(plan.compose())['name']}.",
        "",
        "What a person is promised:",
        *_indented(promise(plan, rounds)),
        "",
        "What to expect:",
        *_indented([] if plan.choice is None else [plan.choice.note]),
        *_indented(expectation(plan).splitlines()),
        *_indented(prices(levels(plan.compose(), plan.problem), plan.column_names)),
        *_indented(_sizes(plan, rounds).splitlines()),
        "",
        "What people who lie can do:",
        *_indented(harm(plan, rounds).lines(plan.k)),
    ]
    if problems := (*plan.warnings, *without_bundle(plan)):
        lines += ["", *(f"WARNING: {warning}" for warning in problems)]
    programs = (
        "Programs read plan.json alone; if this page differs, plan.json applies."
        if plan.length == 1
        else "Programs read plan.json and, beside it, the answers of closed rounds: round-1.json, round-2.json, ..."
    )
    lines += ["", f"Plan {plan.hash}, made by cloister {plan.version}.", programs]
    return "\n".join(lines)


def _sizes(plan: CollectionPlan, rounds: Sequence[Round[Any]]) -> str:
    """Describe the bytes that a user sends."""
    sizes = [sent_bytes(round) for round in rounds]
    if plan.length == 1:
        answer = layout_of(rounds[0]).bytes
        return (
            f"A report has {sizes[0]:,} bytes: {answer:,} of answer, and {sizes[0] - answer} for plan, round and user."
        )
    shares = [step.asked for step in plan.schedule]
    mean = sum(share * sent for share, sent in zip(shares, sizes, strict=True))
    lines = "\n".join(
        f"  round {number}: {share:.1%} of the users are asked, {sent:,} bytes each"
        for number, (share, sent) in enumerate(zip(shares, sizes, strict=True), 1)
    )
    return f"Over {plan.length} rounds a person sends {mean:.4g} bytes on average (answers can change this):\n{lines}"


def expectation(plan: CollectionPlan) -> str:
    """Describe how much noise will move the centres."""
    o, method = plan.outlook, method_of(plan.compose()).spec
    if o is None:
        return f"'{method.name}' does not predict its accuracy."
    falls = f"v falls with the number of rows: v = {WELL:g} needs about {o.rows_needed:,} rows."
    return (
        f"For {plan.k} tight clusters of one size, noise adds {o.excess:.2g} of the domain's squared radius to a "
        f"row's mean squared distance from its centre (v = {o.error:.3g}, v / (1 + v)); a v of 1 is no better "
        f"than one centre. In the words of 'cloister explain', {in_words(relative_loss(o.error, method.objective))}.\n"
        f"{falls}"
    )


def warnings(plan: PreparedRun, outlook: Outlook | None) -> tuple[str, ...]:
    """Return warnings about a plan."""
    texts = list[str]()
    epsilon, n, d = plan.total.epsilon, plan.problem.rows, plan.problem.domain.dimension
    if outlook is not None and not outlook.error < 1:
        texts.append(
            f"at this n, epsilon and d ({n:,}, {epsilon:g}, {d}) expect no better than one centre. About "
            f"{outlook.rows_needed:,} rows would be needed for v = {WELL:g}, or a larger epsilon, fewer columns, or a "
            f"smaller k"
        )
    return (*texts, *weakness_warnings(plan.total, n))


def without_bundle(plan: CollectionPlan) -> tuple[str, ...]:
    """Return a warning if devices without Python cannot answer a plan."""
    reason = missing_bundle_reason(plan)
    return () if reason is None else (f"there is no bundle for devices without Python: {reason}",)


def _outlook(plan: PreparedRun) -> Outlook | None:
    level = plan.levels[0]
    method, problem = level.composed.value, level.problem
    if not isinstance(method, PredictsError):
        return None
    error = predicted_error(method, problem)
    return Outlook(figure(error), _round_figure(_rows_needed(method, problem)))


def _rows_needed(method: PredictsError, problem: Problem) -> int:
    """Return the fewest rows, within 0.1%, for which the method predicts an error of ``WELL``; at most ``CAP``."""

    def enough(rows: int) -> bool:
        try:
            return predicted_error(method, attrs.evolve(problem, rows=rows)) <= WELL
        except InvalidInput:  # an oracle needs more users
            return False

    low, high = problem.k, CAP
    while high > low + 1 and high > low * 1.001:
        middle = max(low + 1, math.isqrt(low * high))
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def _round_figure(value: float) -> int:
    """Round up to two significant digits."""
    number = math.ceil(value)
    step = int(10 ** max(0, len(str(number)) - 2))
    return -(-number // step) * step


def _selected(
    request: Request,
    columns: Sequence[str] | None,
    dimension: int | None,
    categories: Mapping[str, Any] | None,
) -> Selection:
    """Return the columns of people's rows. Raises: InvalidInput: nothing names them, or they do not fit together."""
    description = request.described
    if columns is not None and (not columns or not all(columns) or len(set(columns)) != len(columns)):
        raise InvalidInput("columns must have names, and different ones")
    reading = Reading(columns=columns, categories=categories, bounded=named_in(request.bounds), described=description)
    selection = None if dimension is not None else select_by_name(reading)
    if selection is not None:
        return selection
    if dimension is None or columns is not None or categories:
        raise InvalidInput(
            "give the columns: either their names (--columns a,b,c) or "
            "their number (--dimension 100), or bounds that name them"
        )
    if not 1 <= dimension <= MAX_DIMENSIONS:
        raise InvalidInput(f"the dimension is {dimension}: give a number of columns from 1 to {MAX_DIMENSIONS:,}")
    return Selection(tuple(str(i) for i in range(dimension))).with_described(description)


def _round_trip(made: CollectionPlan, choice: MethodSelection | None) -> CollectionPlan:
    """Return the plan as its readers will parse it, with its rounds checked. Raises: InvalidInput: it differs."""
    read = CollectionPlan.from_dict(json.loads(json.dumps(made.as_dict(), allow_nan=False)))
    if read.hash != made.hash:
        raise InvalidInput("this plan cannot be written as JSON: some option is not plain data")
    read = attrs.evolve(read, choice=choice)
    read.round()
    read.rounds()
    return read


def _indented(lines: list[str]) -> list[str]:
    return [f"  {line}" for line in lines]
