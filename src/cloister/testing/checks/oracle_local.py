"""Checks of what one person sends: her report alone hides her row, and travels.

*Hiding.* Many people with the same user number, so with the same public coins, each report one of several rows. Events
of the report, as it is on the wire, are chosen on a few of them (sets of outcomes by their likelihood ratio, which are
the best there are for reports with few outcomes; for others thresholds of every number, of sums and differences of any
two, cells of their plane and their low bits) and judged on the others: the largest ratio of
probabilities is a lower bound of the report's true epsilon, exact by Clopper and Pearson. With randomised response that
tells epsilon from 1.15 epsilon. Exact enumeration, where an author can do it, tells more.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import combinations, permutations
from typing import Any

import numpy as np

from cloister.core.buckets import BucketedVectors
from cloister.core.lattice import Bound
from cloister.core.randomness import NoiseRng
from cloister.core.trust import Shuffled
from cloister.core.types import AnyArray, Bools, Floats, Ints
from cloister.testing.check import Broken, require, role_of
from cloister.testing.checks.declarations import spent
from cloister.testing.probes import Probe, Shape, budget_of, length, repeated, spread, wide_shapes, worst_vectors
from cloister.testing.statistics import SKEW, deviations, proportion

PILOT, PEOPLE = 2_000, 10_000
"""Reports per possible row that events are chosen by, and that they are judged on."""

USERS = (0, 1)
"""User numbers whose reports are judged: public coins may send some of them to one level, some to another."""

EPSILON = 2.0
"""Epsilon of the judged reports: with randomised response, ten in a hundred then say the other thing, which is enough
of both."""

FIELDS = 6
"""Numbers of a report, the first ones, that are looked at one by one and two by two where there are too many outcomes.
"""

CELLS = 6
"""Along each side of the plane of two numbers of a report."""

BITS = 8
"""Values of a number's low bits, and ranges of its size, that are told apart."""

LEVELS = (0.02, 0.1, 0.25, 0.5, 0.75, 0.9, 0.98)
"""Quantiles of all rows' numbers at which the thresholds are."""

COMPARISONS = 2**14
"""More than the events that are judged."""


def one_report_hides_its_row(oracle: Any) -> None:
    """No event of a person's report, all that she sends, is more probable for one row than e^epsilon times what it is
    for another, 'in no bucket' included. Under Shuffled trust: than e^alone times, where the channel's events say a
    finite ``epsilon_without_shuffler``."""
    for probe, items in _people(oracle):
        if not math.isfinite(_alone(probe)):
            continue
        epsilon = _alone(probe)
        for user in USERS:
            sent = [_sent(probe, row, user) for row in items]
            reports_hide_rows(sent, epsilon, f"{probe.shape}, epsilon {epsilon:.4g}, user {user}")


def reports_hide_rows(sent: Sequence[list[Any]], epsilon: float, where: str) -> None:
    """What ``one_report_hides_its_row`` says of reports, wherever they were made.

    Args:
        sent: for each row, the columns (``PILOT`` + ``PEOPLE``, numbers) of as many reports of it, of one user.
        where: what is asked, for the message.
    """
    for name, inside in _events(_varying(sent)):
        hits = [int(some[PILOT:].sum()) for some in inside]
        low, high = _chance(max(hits))[0], _chance(min(hits))[1]
        require(
            low <= math.exp(epsilon) * high,
            f"{where}: {name} has a probability of at least {low:.4g} for one row and at most {high:.4g} for another, "
            f"so epsilon is at least {math.log(max(low, 1e-300) / high):.4g}",
        )


@lru_cache(2 * PEOPLE)
def _chance(hits: int) -> tuple[float, float]:
    """Bounds on the probability of an event that so many of the judged people met."""
    return proportion(hits, PEOPLE, COMPARISONS)


def _alone(probe: Probe) -> float:
    """What one report by itself spends: under Shuffled trust more than the shuffled reports do, and it says how
    much."""
    events = probe.channel.events
    return (
        sum(event.epsilon_without_shuffler for event in events)
        if probe.oracle.trust is Shuffled
        else spent(events).epsilon
    )


def _people(oracle: Any) -> Iterator[tuple[Probe, Sequence[Ints | BucketedVectors]]]:
    """Channels, with rows that a person can have: other buckets at every level, vectors at their bound, none."""
    for sizes in ((3,), (1, 2)):
        first, last, none = (
            [place(size) for size in sizes] for place in (lambda _: 0, lambda size: size - 1, lambda _: -1)
        )
        buckets = [np.array([ids], np.int64) for ids in (first, last, none)]
        if role_of(oracle) == "FrequencyOracle":
            yield Probe.of(oracle, Shape(sizes), budget_of("pure", EPSILON)), buckets
            continue
        bound = Bound(1000, 2)
        vectors = [*worst_vectors(bound)[:, None], np.zeros((1, 2), np.int64), -worst_vectors(bound)[:1]]
        rows = [BucketedVectors(buckets[0], vector) for vector in vectors] + [
            BucketedVectors(ids, vectors[0]) for ids in buckets[1:]
        ]
        yield Probe.of(oracle, Shape(sizes, bound), budget_of("pure", EPSILON)), rows


def _sent(probe: Probe, row: Ints | BucketedVectors, user: int) -> list[Any]:
    """Reports of people with this row and user number: columns (PILOT + PEOPLE, numbers)."""
    n = PILOT + PEOPLE
    report = probe.channel.encode(repeated(row, n), np.full(n, user, np.uint64), NoiseRng.secret())
    return [np.asarray(column).reshape(n, -1) for column in columns_of(report, n).values()]


def _varying(sent: Sequence[list[Any]]) -> list[Any]:
    """All numbers of a report together, but for columns that are the same whatever happens: (PILOT + PEOPLE, numbers)
    for each row. A column that every row fixes, each to something else, tells everything."""
    columns = list(zip(*sent, strict=True))
    told = [some for some in columns if any((column != some[0][0]).any() for column in some)]
    return [np.concatenate(mine, axis=1) for mine in zip(*told, strict=True)] or [np.zeros((len(sent[0][0]), 1))] * len(
        sent
    )


def columns_of(report: Any, n: int) -> dict[str, Any]:
    if not callable(getattr(report, "columns", None)):
        raise Broken(
            f"a {type(report).__name__} has no columns(): arrays with one entry per user, as a report is on the wire"
        )
    columns: dict[str, Any] = report.columns()
    for name, column in columns.items():
        require(len(column) == n, f"the column '{name}' of {n} reports has {len(column)} entries")
    return columns


def _events(sent: list[Any]) -> Iterator[tuple[str, list[Bools]]]:
    """Events, each as which of the reports (row by row) are in it."""
    _, outcomes = np.unique(np.concatenate(sent), axis=0, return_inverse=True)
    symbols = np.split(outcomes.reshape(-1), len(sent))
    if int(outcomes.max()) < PILOT:
        yield from _likelier("an outcome", symbols)
        return
    numbers = [[np.asarray(some[:, i], np.float64) for some in sent] for i in range(min(sent[0].shape[1], FIELDS))]
    for i, one in enumerate(numbers):
        yield from _beyond(f"number {i}", one)
    for (i, one), (j, other) in combinations(enumerate(numbers), 2):
        yield from _of_two(f"numbers {i} and {j}", one, other)


def _of_two(what: str, one: Sequence[Floats], other: Sequence[Floats]) -> Iterator[tuple[str, list[Bools]]]:
    """Events of two numbers (reports,) of each row: randomness that was used for both leaves either as it should be."""
    yield from _beyond(f"{what}: their sum", [a + b for a, b in zip(one, other, strict=True)])
    yield from _beyond(f"{what}: their difference", [a - b for a, b in zip(one, other, strict=True)])
    cells = zip(ranges(one, CELLS), ranges(other, CELLS), strict=True)
    yield from _likelier(f"{what}: a cell", [a * CELLS + b for a, b in cells], (0.0, 0.5))
    bits = zip(map(low_bits, one), map(low_bits, other), strict=True)
    yield from _likelier(f"{what}: low bits", [a * BITS + b for a, b in bits], (0.0, 0.5))


def ranges(numbers: Sequence[AnyArray], count: int) -> list[Ints]:
    """Numbers of each row to ranges of their size, equally likely in the pilots together."""
    steps = np.unique(np.quantile(np.concatenate([some[:PILOT] for some in numbers]), np.arange(1, count) / count))
    return [np.searchsorted(steps, some, side="right") for some in numbers]


def low_bits(numbers: AnyArray) -> Ints:
    """The low bits of whole numbers; 0 of others."""
    if numbers.dtype.kind in "ui":
        return np.asarray(numbers % np.asarray(BITS, numbers.dtype), np.int64)
    return np.where(numbers == np.rint(numbers), np.mod(numbers, BITS), 0).astype(np.int64)


def _likelier(
    what: str, symbols: Sequence[Ints], quantiles: tuple[float, ...] = (0.0, 0.3, 0.6, 0.8, 0.95)
) -> Iterator[tuple[str, list[Bools]]]:
    """Sets of outcomes by how much likelier the pilot found them with one row than with another. Args: symbols, of each
    row, from 0."""
    size = max(int(some.max()) for some in symbols) + 1
    seen = [np.bincount(some[:PILOT], minlength=size) + 0.5 for some in symbols]
    for i, j in permutations(range(len(symbols)), 2):
        score = np.log(seen[i] / seen[j])
        for t in np.unique(np.quantile(np.repeat(score, seen[i].astype(int)), quantiles)):
            yield (
                f"{what} at least e^{t:.3g} times likelier with row {i} than with row {j}",
                [score[s] >= t for s in symbols],
            )


def _beyond(what: str, numbers: Sequence[Any]) -> Iterator[tuple[str, list[Bools]]]:
    """Numbers (reports,) of each row on either side of thresholds."""
    for t in np.unique(np.quantile(np.concatenate([some[:PILOT] for some in numbers]), LEVELS)):
        yield f"{what} of at least {t:.4g}", [some >= t for some in numbers]
        yield f"{what} below {t:.4g}", [some < t for some in numbers]


def reports_travel_as_columns(oracle: Any) -> None:
    """A report is arrays with one entry per user (``columns``), from which ``load`` makes it again; nothing else
    travels."""
    for shape in wide_shapes(role_of(oracle), 20):
        probe, items, rng = Probe.of(oracle, shape, budget_of("pure", 1.0)), spread(shape), NoiseRng.for_tests(100)
        report = probe.channel.encode(items, np.arange(length(items), dtype=np.uint64), rng)
        columns = columns_of(report, length(items))
        require("users" in columns, f"{shape}: the columns are {', '.join(columns)}; users are not among them")
        again = type(report).load({name: np.array(column) for name, column in columns.items()})
        one, other = (probe.values(probe.table(probe.channel.absorb(r), rng)) for r in (report, again))
        require(np.array_equal(one, other), f"{shape}: a report that was loaded from its columns gives another answer")


def standard_error_is_that_of_an_empty_bucket(oracle: Any) -> None:
    """``standard_error`` and ``variance`` are those of a bucket that holds few of the users, over the users' coins and
    the public ones; of vectors, on average over the coordinates."""
    for shape in wide_shapes(role_of(oracle), 20)[-2:]:
        n = 200
        buckets = np.zeros((n, len(shape.sizes)), np.int64)
        vectors = np.resize(worst_vectors(shape.bound), (n, shape.bound.dimension if shape.bound else 1))
        probe = Probe.of(oracle, shape, budget_of("pure", 1.0), rows=n)
        items = probe.items(buckets, vectors)
        errors = probe.errors(probe.table(probe.summary(items, NoiseRng.for_tests(101)), NoiseRng.for_tests(101)))
        noise = probe.by_level(probe.noise(items, 256, NoiseRng.for_tests(101)) / errors)
        squares = np.stack([(level[:, 1:] ** 2).mean(axis=(1, 2)) for level in noise], axis=1)
        mean, spread_of = squares.mean(axis=0), squares.std(axis=0) / math.sqrt(len(squares))
        band = SKEW * deviations(16) * spread_of + 0.05
        worst = int(np.argmax(np.abs(mean - 1) - band))
        require(
            (np.abs(mean - 1) <= band).all(),
            f"{shape}, level {worst}: empty buckets have {mean[worst]:.3f} times the declared variance; "
            f"{band[worst]:.3f} may be chance",
        )
        said = probe.declared_variance / float((errors**2).mean())
        require(abs(said - 1) < 1e-6, f"{shape}: variance() is {said:.6g} times the mean square of standard_error()")


LOCAL = (reports_travel_as_columns, standard_error_is_that_of_an_empty_bucket)
"""For Local oracles."""

LOCAL_PURE = (one_report_hides_its_row,)
"""For Local oracles with pure privacy, and for Shuffled ones, of which most say what holds alone."""
