"""Publishing a plan: check the request, forecast its rounds, and describe costs and expected accuracy.

What people who lie can do to the answers of a plan: public, and said before anybody is asked.

Of n people a share s lies, under numbers that were given out blindly. A question asked of a share f of the users, whose
level is answered by one in T of these, is answered by s n f / T of them on average; each adds up to ``Gain.most`` to a
bucket, and the table is scaled up by T / f. So the shares cancel: s n ``most`` people who do not exist, whatever is
asked of whom. A vector sum moves by s n ``usual`` bounds, and with it the centre of n / k people by s k ``usual``. If
numbers can be chosen, all liars answer the one question: T / f times as much, until ``collection.server.laws`` notices.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from typing import Any, cast, final

import attrs

from cloister._version import __version__
from cloister.accounting.accountant import Accountant
from cloister.collection.plan.bundle import missing, promise
from cloister.collection.plan.costs import Crowd, Size, Step, sent_bytes
from cloister.collection.plan.plan import TRUSTS, CollectionPlan, Outlook, loud
from cloister.collection.wire.answers import layout_of
from cloister.core.capabilities import PredictsError, predicted_error, relative_loss
from cloister.core.clustering import Problem
from cloister.core.domains import Ball, Box
from cloister.core.errors import InvalidInput
from cloister.core.lattice import CAP
from cloister.core.questions import Round
from cloister.core.randomness import PublicRng
from cloister.core.reports import facts_of
from cloister.core.reproducible_math import figure
from cloister.core.trust import Shuffled
from cloister.rows.columns import select_by_name
from cloister.rows.options import Reading
from cloister.rows.selection import Selection
from cloister.run.bounds import named_in
from cloister.run.layers.levels import clustering, levels, method_of, prices, recorded
from cloister.run.method_selection import MethodSelection, in_words
from cloister.run.request import PreparedRun, Request, asked_for, prepare, refuse_unregistered

SHARES = (0.001, 0.01, 0.05)
"""Shares of the people who lie: what is said of each."""


@final
@attrs.frozen
class Harm:
    """What liars can do in one round of a plan, at worst over its questions and levels.

    Args:
        invented: people, for each liar, by whom the count of one bucket can be raised.
        buckets: of one liar's choice, that are raised so much at once.
        moved: of k groups of equal size, by how much the centre of one can be moved, in radii of the domain (half its
            diameter), for each liar among as many people as there are; None if no vectors are asked.
        chosen: times as much, by liars who choose their numbers by the question that these lead to.
        unbounded: mechanisms of which nothing is known, or one message of which can say anything.
    """

    invented: float
    buckets: int
    moved: float | None
    chosen: float
    unbounded: tuple[str, ...]

    @classmethod
    def of(cls, rounds: Sequence[Round[Any]], k: int, radius: float) -> Harm:
        """Args: rounds (all of them), k (centres), radius (of the domain, in its units)."""
        counts, vectors, chosen, unbounded = [(0.0, 0)], list[float](), 1.0, list[str]()
        for part in (part for round in rounds for part in round.parts):
            gains = facts_of(part.channel).gains
            if not gains:
                unbounded += [event.mechanism for event in part.channel.events]
            for gain in gains:
                chosen = max(chosen, gain.factor / part.fraction)
                if part.vectors is None:
                    counts.append((gain.most, gain.buckets))
                else:
                    vectors.append(k * gain.usual * gain.bound / radius)
        invented, buckets = max(counts)
        return cls(invented, buckets, max(vectors, default=None), chosen, tuple(dict.fromkeys(unbounded)))

    def withstood(self, k: int) -> float | None:
        """The share of liars from which on they can invent one of k equal groups: ``decode`` withstands less."""
        return 1 / (k * self.invented) if self.invented and not self.unbounded else None

    def as_dict(self, k: int) -> dict[str, Any]:
        """Plain data: for each share of liars, the share of people that can be invented, and how far a centre moves."""
        worst = [
            {"share": s, "invented": s * self.invented, "moved": None if self.moved is None else s * self.moved}
            for s in SHARES
        ]
        return {
            "a report counts for": self.invented,
            "in buckets": self.buckets,
            "chosen numbers": self.chosen,
            "withstood below": self.withstood(k),
            "unbounded": list(self.unbounded),
            "shares": worst,
        }

    def lines(self, k: int) -> list[str]:
        """For people."""
        found = [
            f"If 1 in {1 / share:,.0f} lies, {' and '.join(did)}."
            for share in SHARES
            if (did := list(self._done(share, k)))
        ]
        if self.buckets > 1 and self.invented:
            found.append(f"Each of them can name {self.buckets:,} buckets at once: so many such groups.")
        if (most := self.withstood(k)) is not None:
            found.append(
                f"decode --robust withstands less than {most:.2%} of liars: more can invent one of {k} groups."
            )
        if self.chosen > 1 and found:
            found.append(
                f"That is of numbers that were given out; a liar who chooses hers counts for up to {self.chosen:.3g} "
                f"times as much, until decode notices."
            )
        return found + [f"What one liar can do to '{name}' is not bounded." for name in self.unbounded]

    def _done(self, share: float, k: int) -> Iterator[str]:
        if self.invented:
            yield f"a group of {100 * share * self.invented:.2g}% of the people can be invented"
        if self.moved is not None:
            far = f"by {share * self.moved:.2g} of the domain's radius" if share * self.moved < 2 else "anywhere"
            yield f"the centre of one of {k} equal groups moved {far}"


WELL = 0.1
"""Expected error that counts as good: noise adds a tenth of the squared radius."""

MAX_DIMENSIONS = 2**20


def publish(
    request: Request,
    columns: Sequence[str] | None = None,
    dimension: int | None = None,
    categories: Mapping[str, Any] | None = None,
) -> CollectionPlan:
    """Make the plan of a request.

    Args:
        columns: names of the columns; or
        dimension: their number, for any names. None of both: the columns that the bounds name.
        categories: public values by column, of names: these columns are used, too.

    Raises: CloisterError: the request is invalid, or its method is not for users who randomise their own rows.
    """
    table = _selected(request, columns, dimension, categories)
    request, composed = asked_for(request)
    name = composed.spec.name
    refuse_unregistered(composed, "a plan")
    if not composed.private:
        raise InvalidInput(f"'{name}' as composed is NOT private: nobody can be asked to answer it")
    if composed.trust not in TRUSTS:
        raise InvalidInput(
            f"'{name}' as composed is {composed.trust}: a plan is answered by people who randomise their own rows. "
            f"Choose a method such as one-round, or fill all its slots with Local or Shuffled oracles: --trust local, "
            f"--trust shuffled, or one by one by --with (see 'cloister list')"
        )
    plan = prepare(request, table.features, chosen_columns=table)
    seed = PublicRng.fresh() if request.seed is None else PublicRng.from_seed(request.seed)
    rounds = plan.forecast(seed)
    Accountant(plan.total, plan.problem.budget).forecast([round.events for round in rounds])
    if not rounds:
        raise InvalidInput(f"'{name}' as composed asks nothing: there is nothing to plan")
    shuffled = rounds[0].trust is Shuffled
    if shuffled and len(rounds) > 1:
        raise InvalidInput(
            f"'{name}' as composed asks {len(rounds)} rounds, a plan of trust Shuffled holds one: choose one-round, "
            f"and state all bounds without --zoom, which asks a round of its own"
        )
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
        crowd=Crowd.of(rounds[0]) if shuffled else None,
        categories={category.column: category.values for category in table.categories},
    )
    return _as_read(made, plan.choice)


def words(plan: CollectionPlan, rounds: Sequence[Round[Any]]) -> str:
    """The plan for people. Args: rounds (all of them, as ``plan.rounds()`` has them)."""
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
    if found := (*plan.warnings, *without_bundle(plan)):
        lines += ["", *(f"WARNING: {warning}" for warning in found)]
    programs = (
        "Programs read plan.json alone; where this page says something else, plan.json holds."
        if plan.length == 1
        else "Programs read plan.json and, beside it, round-1.json, round-2.json, ...: the answers of rounds that are "
        "closed."
    )
    lines += ["", f"Plan {plan.hash}, made by cloister {plan.version}.", programs]
    return "\n".join(lines)


def harm(plan: CollectionPlan, rounds: Sequence[Round[Any]]) -> Harm:
    """What people who lie can do. Args: rounds (all of them)."""
    every = levels(plan.compose(), plan.problem)
    # in a frame vectors are in its units, however wide the columns are, or of unknown width
    domain = plan.domain if clustering(every).wrapper is None else every[0].problem.domain
    return Harm.of(rounds, plan.k, domain.diameter / 2)


def _sizes(plan: CollectionPlan, rounds: Sequence[Round[Any]]) -> str:
    """How many bytes a user sends, for people."""
    each = [sent_bytes(round) for round in rounds]
    if plan.length == 1:
        answer = layout_of(rounds[0]).bytes
        return (
            f"A report is {each[0]:,} bytes as it is sent: {answer:,} of answer, and {each[0] - answer} that say of "
            f"which plan, round and user it is."
        )
    asked = [step.asked for step in plan.schedule]
    mean = sum(share * sent for share, sent in zip(asked, each, strict=True))
    said = "\n".join(
        f"  round {number}: {share:.1%} of the users are asked, {sent:,} bytes each"
        for number, (share, sent) in enumerate(zip(asked, each, strict=True), 1)
    )
    return (
        f"Over {plan.length} rounds a person sends {mean:.4g} bytes on average, as far as answers do not change "
        f"that:\n{said}"
    )


def expectation(plan: CollectionPlan) -> str:
    """How much noise will move the centres, for people."""
    o, method = plan.outlook, method_of(plan.compose()).spec
    if o is None:
        return f"'{method.name}' cannot say beforehand how well it will do."
    falls = f"v falls with the number of rows: v = {WELL:g} needs about {o.rows_needed:,} rows."
    return (
        f"For {plan.k} tight clusters of one size, noise adds {o.excess:.2g} of the domain's squared radius to a "
        f"row's mean squared distance from its centre (v = {o.error:.3g}, v / (1 + v)); a v of 1 is no better "
        f"than one centre. As 'cloister explain' has it, {in_words(relative_loss(o.error, method.objective))}.\n{falls}"
    )


def warnings(plan: PreparedRun, outlook: Outlook | None) -> tuple[str, ...]:
    """Warnings about a plan, for people."""
    found = list[str]()
    epsilon, n, d = plan.total.epsilon, plan.problem.rows, plan.problem.domain.dimension
    if outlook is not None and not outlook.error < 1:
        found.append(
            f"at this n, epsilon and d ({n:,}, {epsilon:g}, {d}) expect no better than one centre. About "
            f"{outlook.rows_needed:,} rows would be needed for v = {WELL:g}, or a larger epsilon, fewer columns, or a "
            f"smaller k"
        )
    return (*found, *loud(plan.total, n))


def without_bundle(plan: CollectionPlan) -> tuple[str, ...]:
    """A warning, if devices that run no Python cannot answer a plan."""
    reason = missing(plan)
    return () if reason is None else (f"there is no bundle for devices that run no Python: {reason}",)


def _outlook(plan: PreparedRun) -> Outlook | None:
    level = plan.levels[0]
    method, problem = level.composed.value, level.problem
    if not isinstance(method, PredictsError):
        return None
    error = predicted_error(method, problem)
    return Outlook(figure(error), _round_figure(_rows_needed(method, problem)))


def _rows_needed(method: PredictsError, problem: Problem) -> int:
    """Fewest rows, to one part in a thousand, for which the method predicts an error of ``WELL``; at most ``CAP``."""

    def enough(rows: int) -> bool:
        try:
            return predicted_error(method, attrs.evolve(problem, rows=rows)) <= WELL
        except InvalidInput:  # an oracle needs more users
            return False

    few, many = problem.k, CAP
    while many > few + 1 and many > few * 1.001:
        middle = max(few + 1, math.isqrt(few * many))
        few, many = (few, middle) if enough(middle) else (middle, many)
    return many


def _round_figure(value: float) -> int:
    """Rounded up to two significant digits."""
    whole = math.ceil(value)
    step = int(10 ** max(0, len(str(whole)) - 2))
    return -(-whole // step) * step


def _selected(
    request: Request,
    columns: Sequence[str] | None,
    dimension: int | None,
    categories: Mapping[str, Any] | None,
) -> Selection:
    """The columns that people's rows have. Raises: InvalidInput: nothing names them, or they do not go together."""
    told = request.described
    if columns is not None and (not columns or not all(columns) or len(set(columns)) != len(columns)):
        raise InvalidInput("columns must have names, and different ones")
    reading = Reading(columns=columns, categories=categories, bounded=named_in(request.bounds), described=told)
    found = None if dimension is not None else select_by_name(reading)
    if found is not None:
        return found
    if dimension is None or columns is not None or categories:
        raise InvalidInput(
            "give the columns: either their names (--columns a,b,c) or "
            "their number (--dimension 100), or bounds that name them"
        )
    if not 1 <= dimension <= MAX_DIMENSIONS:
        raise InvalidInput(f"the dimension is {dimension}: give a number of columns from 1 to {MAX_DIMENSIONS:,}")
    return Selection(tuple(str(i) for i in range(dimension))).with_described(told)


def _as_read(made: CollectionPlan, choice: MethodSelection | None) -> CollectionPlan:
    """The plan as its readers will parse it, with its rounds checked. Raises: InvalidInput: it differs."""
    read = CollectionPlan.from_dict(json.loads(json.dumps(made.as_dict(), allow_nan=False)))
    if read.hash != made.hash:
        raise InvalidInput("this plan cannot be written as JSON: some option is not plain data")
    read = attrs.evolve(read, choice=choice)
    read.round()
    read.rounds()
    return read


def _indented(lines: list[str]) -> list[str]:
    return [f"  {line}" for line in lines]
