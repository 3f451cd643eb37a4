"""Sessions: open, charge, gather, record and replay a method's rounds, and capture its plan.

One call of ``ask`` is one round. The order is fixed: check the forecast, charge, journal the opened round,
gather, close, and journal every look before its values are seen. So a killed run resumes without paying twice, and a
run is a pure function of the plan, the public seed and the answers so far.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import partial
from typing import Any, Generic, NoReturn, Protocol, TypeAlias, TypeVar, final, overload

import attrs
import numpy as np

from cloister.core.buckets import Space
from cloister.core.budget import Charging, Event, PrivacyNotion
from cloister.core.clustering import Clustering, Problem, Released
from cloister.core.domains import Domain, Lattice
from cloister.core.errors import InvalidInput, Refused
from cloister.core.frames import DropColumns
from cloister.core.population import Answering
from cloister.core.questions import OpenedQuestion, Question, Round
from cloister.core.randomness import NoiseRng, PublicRng
from cloister.core.record import AGREED, LISTED, Journal, Lookup, Record, checkpointed
from cloister.core.roles import Table
from cloister.core.shuffling import check_enough_people, check_shuffled
from cloister.core.trust import Aggregated, Central, Shuffled, T
from cloister.core.types import Floats, Ints

A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")
V = TypeVar("V")


class Method(Protocol[T]):
    """Clustering algorithm: a short program that asks questions in rounds.

    Laws: the schedule (rounds, questions, budget of each) does not depend on answers. The method sees no row and no
    exact figure. It is a pure function of the problem, ``rng`` and the answers.
    """

    def cluster(self, problem: Problem, session: Session[T], rng: PublicRng) -> Clustering:
        """Return centres for the problem, from answers to ``session.ask``; ``rng`` gives public coins only."""
        ...


Reading: TypeAlias = Callable[[Round[Any], tuple[Any, ...], tuple[Table, ...]], tuple[Table, ...]]
"""Post-processing: from a round, its summaries and their decoded tables to the tables that a method sees."""


class Pending(BaseException):
    """Round that nobody has answered yet: the plan. No Exception, so that ``except Exception`` cannot swallow it."""

    def __init__(self, round: Round[Any]) -> None:
        super().__init__(f"round {round.index} is open")
        self.round = round


@final
@attrs.define(eq=False, repr=False)
class RecordedTable:
    """Table that answers from the record, then from the live table, and journals every look before answering."""

    _at: tuple[int, int]
    _part: OpenedQuestion
    _past: list[Lookup]
    _listed: frozenset[int]  # levels, by the record
    _write: Callable[[Lookup], None]
    _live: Callable[[], Table]
    _count: int = attrs.field(default=0, init=False)

    def __reduce__(self) -> NoReturn:
        raise TypeError("a table can hold exact counts and is never pickled: keep the values that at() returned")

    def at(self, ids: Ints, level: int = 0) -> Floats:
        return self._look(ids, level, error=False)

    def standard_error(self, ids: Ints, level: int = 0) -> Floats:
        return self._look(ids, level, error=True)

    def listed(self, level: int = 0) -> tuple[Ints, Floats]:
        """Return the buckets (m,) that are not 0, ascending, and their values (m,), for counts with a threshold.

        The record holds a look at these buckets, and that it was a list. After a resumption, values seen before are
        kept, and buckets that an earlier list left out stay 0, whatever the noise of the new live table.

        Raises:
            Refused: there is no threshold.
        """
        if self._count < len(self._past):
            ids = self._past[self._count].ids
        else:
            live: Any = self._live()
            recorded = [look.ids for look in self._past if look.level == level and not look.error]
            ids = np.unique(np.concatenate([live.occupied(level), *recorded]))
            ids = ids[self._fresh(ids, level, error=False) != 0]
        values = self.at(ids, level)
        if level not in self._listed:
            self._write(Lookup(self._at[0], LISTED - self._at[1], level, False, np.empty(0, np.int64), np.empty(0)))
        return ids.copy(), values

    def _look(self, ids: Ints, level: int, error: bool) -> Floats:
        checked = _checked(ids, level, self._part.cells.space)
        self._count += 1
        if self._count <= len(self._past):
            recorded = self._past[self._count - 1]
            if (recorded.level, recorded.error) != (level, error) or not np.array_equal(recorded.ids, checked):
                raise Refused(f"round {self._at[0]} asks for other buckets than the recorded run: use that run's plan")
            return recorded.values.copy()
        values = self._fresh(checked, level, error)
        self._write(Lookup(*self._at, level, error, checked, values))
        return values.copy()

    def _fresh(self, ids: Ints, level: int, error: bool) -> Floats:
        """Return live values, but recorded ones of buckets in the record: their noise is never drawn again."""
        live = self._live()
        values = (live.standard_error(ids, level) if error else live.at(ids, level)) * (1 / self._part.fraction)
        if not error:
            left_out = np.full(len(ids), level in self._listed)
            for past in (look for look in self._past if look.level == level and not look.error and len(look.ids)):
                order = np.argsort(past.ids, kind="stable")
                positions = np.minimum(np.searchsorted(past.ids[order], ids), len(order) - 1)
                matches = past.ids[order][positions] == ids
                values[matches] = past.values[order][positions[matches]]
                left_out[matches] = False
            values[left_out] = 0
        return values


def _checked(ids: Ints, level: int, space: Space) -> Ints:
    checked = np.ascontiguousarray(ids, np.int64)
    if not 0 <= level < space.levels:
        raise InvalidInput(f"level {level} was looked up, but the space has levels 0 .. {space.levels - 1}")
    if checked.ndim != 1 or (len(checked) and not (checked.min() >= 0 and checked.max() < space.sizes[level])):
        raise InvalidInput(f"bucket ids of level {level} must be a 1-D array of values 0 .. {space.sizes[level] - 1}")
    return checked.copy()


@attrs.frozen
class _Zeros:
    """Answers of a forecast: zeros, with standard error 1."""

    dimension: int

    def at(self, ids: Ints, level: int = 0) -> Floats:
        return np.zeros((len(ids), self.dimension) if self.dimension else len(ids))

    def standard_error(self, ids: Ints, level: int = 0) -> Floats:
        return np.ones(len(ids))

    def listed(self, level: int = 0) -> tuple[Ints, Floats]:
        return np.empty(0, np.int64), np.empty(0)


@final
class Session(Generic[T]):
    """A method's only access to the rows.

    Args:
        problem: what the method is to solve, in the caller's units.
        seed: key of the run's public choices.
        population: holder of the rows; without one, the first round that the record does not answer raises ``Pending``.
        accountant: charged before each round that the record does not hold.
        record: earlier releases (a resumed run, a published transcript).
        journal: durable log, written before any value is seen; by default only the record.
        noise: source of the noise; None: a secret one.
        reading: post-processing of a round's decoded tables, before the method sees them.
        agree: ``Joining.agree``, where several parties hold the rows.
        forecasting: answer everything with zeros, read nothing, charge nothing.

    Attributes:
        rounds: rounds asked so far.
        asked: their questions, as the method put them.
        agreed_sizes: for each agreement so far, the round before it and its number of integers.
        notions: privacy notions of the oracles that were asked, or failed to open.
    """

    def __init__(
        self,
        problem: Problem,
        seed: PublicRng,
        population: Answering[T] | None = None,
        *,
        accountant: Charging | None = None,
        record: Record | None = None,
        journal: Journal | None = None,
        noise: NoiseRng | None = None,
        reading: Reading | None = None,
        agree: Callable[[int, int, Ints], Ints] | None = None,
        forecasting: bool = False,
    ) -> None:
        self.problem, self.seed = problem, seed
        self.rounds: list[Round[T]] = []
        self.agreed_sizes: list[tuple[int, int]] = []
        self.asked: list[tuple[Question[T, Any], ...]] = []
        self.notions: set[PrivacyNotion] = set()
        self.record = Record() if record is None else record
        self._population: Answering[T] | None = population
        self._accountant, self._journal, self._reading, self._agree = accountant, journal, reading, agree
        self._noise = NoiseRng.secret() if noise is None else noise
        self._past = list(self.record.lookups)
        self._before = len(self.record.digests), self.record.closed  # of an earlier process: the record will grow
        self._lattice: Lattice = problem.domain
        self._others, self._forecasting = 0, forecasting

    @property
    def released(self) -> tuple[Event, ...]:
        """Cost of the rounds so far."""
        return tuple(event for round in self.rounds for event in round.events)

    @property
    def seeded(self) -> bool:
        """Whether the noise can be repeated, which protects nobody."""
        return self._noise.seeded

    def release(self, value: V) -> Released[V]:
        """Mark a value computed from this session's answers as fit for a solver to see."""
        return Released(value, self.released)

    def agreed(self, values: Ints) -> Ints:
        """Return integers computed from released values (lattice points of centres, radii in steps), as first recorded.

        Solvers may differ in the last bit between machines, and then round a centre to another lattice point. So the
        first run records its integers like a look. Replays use the recorded integers, and all parties of a federated
        run use one party's (``Joining``). Privacy does not depend on these values: a round costs the same with any.

        Raises:
            Refused: the record has another number of integers, or integers outside any lattice.
        """
        if not self.rounds:  # public choices alone are the same everywhere
            return values
        at = len(self.rounds) - 1
        level = sum(after == at for after, _ in self.agreed_sizes)
        self.agreed_sizes.append((at, values.size))
        if self._forecasting:
            return values
        key = at, AGREED, level
        for look in self._past:
            if (look.round, look.question, look.level) == key:
                return checkpointed(look.values, values)
        if self._agree is not None:
            values = checkpointed(self._agree(at, level, values).astype(np.float64), values)
        self._write(Lookup(*key, False, np.arange(len(values)), values.astype(np.float64).reshape(len(values), -1)))
        return values

    def framed(self, lattice: Lattice, domain: Domain) -> Session[T]:
        """Return a view of this session in other units: ``ask`` puts rows on ``lattice``, the points of ``domain``.

        Rounds, record, journal and charges are shared: it is one run. The domain must be public, so that the noise does
        not depend on answers; its middle and unit in the caller's units may be released figures.

        Raises:
            InvalidInput: this session has a frame already, which the new lattice would replace.
        """
        current = self._lattice.first if isinstance(self._lattice, DropColumns) else self._lattice
        if current != self.problem.domain:
            raise InvalidInput(
                "a method that changes units is inside another one that does: leave out --zoom or --scale"
            )
        view = copy.copy(self)
        view.problem = attrs.evolve(self.problem, domain=domain)
        view._lattice = DropColumns(lattice, self._others) if self._others else lattice
        return view

    def on_first_columns(self, domain: Domain) -> Session[T]:
        """Return a view of this session for a method that knows the rows' first columns alone: those of ``domain``."""
        view = self.framed(domain, domain)
        view._others += self.problem.domain.dimension - domain.dimension
        return view.framed(domain, domain)  # once more: the lattice now drops the other columns

    def placed(self, points: Floats) -> Ints:
        """Return public points (m, d), in the caller's units, on the lattice that this session puts rows on."""
        return self._lattice.snap(points)

    @overload
    def ask(self, q1: Question[T, A], /) -> tuple[A]: ...
    @overload
    def ask(self, q1: Question[T, A], q2: Question[T, B], /) -> tuple[A, B]: ...
    @overload
    def ask(self, q1: Question[T, A], q2: Question[T, B], q3: Question[T, C], /) -> tuple[A, B, C]: ...
    @overload
    def ask(self, *questions: Question[T, A]) -> tuple[A, ...]: ...
    def ask(self, *questions: Question[T, Any]) -> tuple[Any, ...]:
        """Ask all questions in one round, in one pass over the rows, and return one table for each.

        Raises:
            BudgetExceeded, Refused: before any row is read; Refused also if too few people for Shuffled trust answered.
        """
        round = self._opened(questions)
        self.rounds.append(round)
        self.asked.append(questions)
        if self._forecasting:
            return tuple(_Zeros(0 if part.vectors is None else part.vectors.bound.dimension) for part in round.parts)
        tables = self._answered(round)
        return tuple(
            RecordedTable(
                (round.index, i),
                part,
                [lookup for lookup in self._past if (lookup.round, lookup.question) == (round.index, i)],
                frozenset(s.level for s in self._past if (s.round, s.question) == (round.index, LISTED - i)),
                self._write,
                partial(tables, i),
            )
            for i, part in enumerate(round.parts)
        )

    def _opened(self, questions: tuple[Question[T, Any], ...]) -> Round[T]:
        index, trusts = len(self.rounds), {q.trust for q in questions}
        self.notions |= {q.notion for q in questions}  # before opening, which may fail for want of these
        if len(trusts) != 1:
            raise Refused(f"questions of a round must share one trust model, not {sorted(t.__name__ for t in trusts)}")
        if trusts & {Central, Aggregated} and any(q.budget.user_share for q in questions):
            raise Refused("Central and Aggregated trust have no public user numbers: split the budget, not the users")
        parts = tuple(self._part(index, i, q) for i, q in enumerate(questions))
        return Round(index, questions[0].trust, self._lattice, parts)

    def _part(self, index: int, number: int, q: Question[T, Any]) -> OpenedQuestion:
        context = self.problem.context(q.budget, self.seed.child("round", index, number))
        part = OpenedQuestion(q.cells, q.vectors, q.budget.user_share, q.open(context))
        if q.trust is Shuffled:
            check_shuffled(part)
        return part

    def _answered(self, round: Round[T]) -> Callable[[int], Table]:
        """Gather the round's answers unless they are recorded; return a function from question number to live table."""
        opened, closed = (round.index < number for number in self._before)
        if opened and self.record.digests[round.index] != round.digest():
            raise Refused(
                f"round {round.index} is not the one that was opened before: other options, another version, or a "
                f"platform that computes other public choices. Use those that opened it"
            )
        if not closed and self._population is None:
            raise Pending(round)
        if not closed:
            check_enough_people(round, self._population)
        if not opened and self._accountant is not None:
            self._accountant.charge(round.index, round.events)
        if not opened:
            self._note(lambda journal: journal.open_round(round.index, round.digest()))
        gathered = list[tuple[Table, ...]]()
        if not closed:
            gathered.append(self._gather(round))  # now: one pass per round, before anything else is asked
            self._note(lambda journal: journal.close_round(round.index))

        def table(i: int) -> Table:
            if not gathered:
                gathered.append(self._gather(round))
            return gathered[0][i]

        return table

    def _gather(self, round: Round[T]) -> tuple[Table, ...]:
        if self._population is None:
            raise Refused(f"the record of round {round.index} ends early, and there are no rows to continue with")
        summaries = self._population.gather(round, self._noise)
        check_enough_people(round, self._population, gathered=True)
        tables = tuple(
            part.channel.decode(summary, self._noise.child("decode", round.index, i))
            for i, (part, summary) in enumerate(zip(round.parts, summaries, strict=True))
        )
        return tables if self._reading is None else self._reading(round, summaries, tables)

    def _note(self, entry: Callable[[Journal], None]) -> None:
        if self._journal is not None:
            entry(self._journal)
        entry(self.record)

    def _write(self, lookup: Lookup) -> None:
        self._note(lambda journal: journal.write(lookup))


def forecast(method: Method[T], problem: Problem, seed: PublicRng) -> list[Round[T]]:
    """Return every round that the method would ask if all answers were zero: its cost."""
    return forecast_session(method, problem, seed).rounds


def forecast_session(method: Method[T], problem: Problem, seed: PublicRng) -> Session[T]:
    """Return a session whose answers were all zero: its rounds and agreed sizes are those of every run (law 2)."""
    session: Session[T] = Session(problem, seed, forecasting=True)
    method.cluster(problem, session, seed.child("method"))
    return session


def next_round(method: Method[T], problem: Problem, seed: PublicRng, record: Record | None = None) -> Round[T]:
    """Return the open round after the recorded ones (after none: the plan).

    Raises:
        Refused: the method has no further round, or the record does not belong to it.
    """
    copy = None if record is None else Record(list(record.digests), record.closed, list(record.lookups))
    session: Session[T] = Session(problem, seed, record=copy)
    try:
        method.cluster(problem, session, seed.child("method"))
    except Pending as pending:
        return pending.round
    raise Refused("the method has no open round left")
