"""Checks of a single report under Local trust: it hides its row, and travels as columns.

*Hiding.* Many people with the same user number, so with the same public coins, each report one of several rows. Events
of the report, as sent, are chosen on a few of them and judged on the others: sets of outcomes by likelihood ratio,
which are optimal for reports with few outcomes; for others thresholds of every number, of sums and differences of any
two, cells of their plane and their low bits. The largest ratio of probabilities is a lower bound of the report's true
epsilon, exact by Clopper and Pearson. With randomised response this separates epsilon from 1.15 epsilon. Exact
enumeration, where an author can do it, is stronger.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import combinations, permutations
from typing import Any

import numpy as np

from cloister.plugin import AnyArray, Bools, Bound, BucketedVectors, Floats, Ints, NoiseRng, Shuffled
from cloister.testing.check import Violation, require, role_of
from cloister.testing.checks.declarations import spent
from cloister.testing.probes import (
    Probe,
    Shape,
    budget_of,
    repeated,
    row_count,
    varied_rows,
    wide_shapes,
    worst_vectors,
)
from cloister.testing.statistics import SKEW, deviations, probability_bounds

PILOT, PEOPLE = 2_000, 10_000
"""Reports per possible row to choose events on, and to judge them on."""

USERS = (0, 1)
"""User numbers whose reports are judged: public coins may send them to different levels."""

EPSILON = 2.0
"""Epsilon of the judged reports: with randomised response a tenth of them lie, enough of either kind."""

FIELDS = 6
"""Number of a report's first numbers that are tested singly and in pairs if it has too many outcomes."""

CELLS = 6
"""Cells along each side of the plane of two numbers of a report."""

BITS = 8
"""Values of a number's low bits, and ranges of its size, that are distinguished."""

LEVELS = (0.02, 0.1, 0.25, 0.5, 0.75, 0.9, 0.98)
"""Quantiles of all rows' numbers at which the thresholds are."""

COMPARISONS = 2**14
"""Upper limit on the events that are judged."""


def one_report_hides_its_row(oracle: Any) -> None:
    """No event of a person's whole report is more probable for one row than e^epsilon times that for another.

    Rows include 'in no bucket'. Under Shuffled trust the bound is ``epsilon_without_shuffler``, if the channel's events
    declare a finite one.
    """
    for probe, items in _person_rows(oracle):
        if not math.isfinite(_report_epsilon(probe)):
            continue
        epsilon = _report_epsilon(probe)
        for user in USERS:
            sent = [_reports(probe, row, user) for row in items]
            reports_hide_rows(sent, epsilon, f"{probe.shape}, epsilon {epsilon:.4g}, user {user}")


def reports_hide_rows(sent: Sequence[list[Any]], epsilon: float, label: str) -> None:
    """Raise unless reports from any source obey the bound of ``one_report_hides_its_row``.

    Args:
        sent: for each row, the columns (``PILOT`` + ``PEOPLE``, numbers) of as many reports of it, of one user.
        epsilon: bound on the log-ratio of probabilities.
        label: start of the message.
    """
    for name, inside in _events(_varying_columns(sent)):
        hits = [int(members[PILOT:].sum()) for members in inside]
        low, high = _event_bounds(max(hits))[0], _event_bounds(min(hits))[1]
        require(
            low <= math.exp(epsilon) * high,
            f"{label}: {name} has a probability of at least {low:.4g} for one row and at most {high:.4g} for another, "
            f"so epsilon is at least {math.log(max(low, 1e-300) / high):.4g}",
        )


@lru_cache(2 * PEOPLE)
def _event_bounds(hits: int) -> tuple[float, float]:
    """Return bounds on the probability of an event that ``hits`` of the judged people met."""
    return probability_bounds(hits, PEOPLE, COMPARISONS)


def _report_epsilon(probe: Probe) -> float:
    """Return the epsilon of one report by itself, which under Shuffled trust exceeds that of shuffled reports."""
    events = probe.channel.events
    return (
        sum(event.epsilon_without_shuffler for event in events)
        if probe.oracle.trust is Shuffled
        else spent(events).epsilon
    )


def _person_rows(oracle: Any) -> Iterator[tuple[Probe, Sequence[Ints | BucketedVectors]]]:
    """Yield channels, with possible rows of a person: buckets of every level, vectors at their bound, none."""
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


def _reports(probe: Probe, row: Ints | BucketedVectors, user: int) -> list[Any]:
    """Return reports of people with this row and user number: columns (PILOT + PEOPLE, numbers)."""
    n = PILOT + PEOPLE
    report = probe.channel.encode(repeated(row, n), np.full(n, user, np.uint64), NoiseRng.secret())
    return [np.asarray(column).reshape(n, -1) for column in columns_of(report, n).values()]


def _varying_columns(sent: Sequence[list[Any]]) -> list[Any]:
    """Return the numbers of each row's reports (PILOT + PEOPLE, numbers), without columns that are always the same."""
    columns = list(zip(*sent, strict=True))
    varying = [by_row for by_row in columns if any((column != by_row[0][0]).any() for column in by_row)]
    return [np.concatenate(row_columns, axis=1) for row_columns in zip(*varying, strict=True)] or [
        np.zeros((len(sent[0][0]), 1))
    ] * len(sent)


def columns_of(report: Any, n: int) -> dict[str, Any]:
    """Return a report's columns, with one entry for each of n users."""
    if not callable(getattr(report, "columns", None)):
        raise Violation(f"a {type(report).__name__} has no columns(): return arrays with one entry per user, as sent")
    columns: dict[str, Any] = report.columns()
    for name, column in columns.items():
        require(len(column) == n, f"the column '{name}' of {n} reports has {len(column)} entries")
    return columns


def _events(sent: list[Any]) -> Iterator[tuple[str, list[Bools]]]:
    """Yield events, each as which of the reports (row by row) are in it."""
    _, outcomes = np.unique(np.concatenate(sent), axis=0, return_inverse=True)
    symbols = np.split(outcomes.reshape(-1), len(sent))
    if int(outcomes.max()) < PILOT:
        yield from _likelihood_events("an outcome", symbols)
        return
    numbers = [[np.asarray(values[:, i], np.float64) for values in sent] for i in range(min(sent[0].shape[1], FIELDS))]
    for i, one in enumerate(numbers):
        yield from _threshold_events(f"number {i}", one)
    for (i, one), (j, other) in combinations(enumerate(numbers), 2):
        yield from _pair_events(f"numbers {i} and {j}", one, other)


def _pair_events(label: str, one: Sequence[Floats], other: Sequence[Floats]) -> Iterator[tuple[str, list[Bools]]]:
    """Yield events of two numbers (reports,) of each row: randomness used for both leaves each correct alone."""
    yield from _threshold_events(f"{label}: their sum", [a + b for a, b in zip(one, other, strict=True)])
    yield from _threshold_events(f"{label}: their difference", [a - b for a, b in zip(one, other, strict=True)])
    cells = zip(ranges(one, CELLS), ranges(other, CELLS), strict=True)
    yield from _likelihood_events(f"{label}: a cell", [a * CELLS + b for a, b in cells], (0.0, 0.5))
    bits = zip(map(low_bits, one), map(low_bits, other), strict=True)
    yield from _likelihood_events(f"{label}: low bits", [a * BITS + b for a, b in bits], (0.0, 0.5))


def ranges(numbers: Sequence[AnyArray], count: int) -> list[Ints]:
    """Return numbers of each row as ranges of their size, equally likely in the pilots together."""
    return cut(numbers, np.concatenate([values[:PILOT] for values in numbers]), count)


def cut(numbers: Sequence[AnyArray], pilot: AnyArray, count: int) -> list[Ints]:
    """Return numbers as ranges of their size, equally likely in the pilot."""
    steps = np.unique(np.quantile(pilot, np.arange(1, count) / count))
    return [np.searchsorted(steps, values, side="right") for values in numbers]


def low_bits(numbers: AnyArray) -> Ints:
    """Return the low bits of integers; 0 for other numbers."""
    if numbers.dtype.kind in "ui":
        return np.asarray(numbers % np.asarray(BITS, numbers.dtype), np.int64)
    return np.where(numbers == np.rint(numbers), np.mod(numbers, BITS), 0).astype(np.int64)


def _likelihood_events(
    label: str, symbols: Sequence[Ints], quantiles: tuple[float, ...] = (0.0, 0.3, 0.6, 0.8, 0.95)
) -> Iterator[tuple[str, list[Bools]]]:
    """Yield sets of outcomes by how much likelier one row makes them than another in the pilot.

    ``symbols`` are the outcomes of each row, numbered from 0.
    """
    size = max(int(codes.max()) for codes in symbols) + 1
    pilot_counts = [np.bincount(codes[:PILOT], minlength=size) + 0.5 for codes in symbols]
    for i, j in permutations(range(len(symbols)), 2):
        score = np.log(pilot_counts[i] / pilot_counts[j])
        for t in np.unique(np.quantile(np.repeat(score, pilot_counts[i].astype(int)), quantiles)):
            yield (
                f"{label} at least e^{t:.3g} times likelier with row {i} than with row {j}",
                [score[s] >= t for s in symbols],
            )


def _threshold_events(label: str, numbers: Sequence[Any]) -> Iterator[tuple[str, list[Bools]]]:
    """Yield numbers (reports,) of each row on either side of thresholds."""
    for t in np.unique(np.quantile(np.concatenate([values[:PILOT] for values in numbers]), LEVELS)):
        yield f"{label} of at least {t:.4g}", [values >= t for values in numbers]
        yield f"{label} below {t:.4g}", [values < t for values in numbers]


def reports_travel_as_columns(oracle: Any) -> None:
    """Every report is arrays with one entry per user (``columns``), which ``load`` restores; nothing else is sent."""
    for shape in wide_shapes(role_of(oracle), 20):
        probe, items, rng = Probe.of(oracle, shape, budget_of("pure", 1.0)), varied_rows(shape), NoiseRng.for_tests(100)
        report = probe.report(items, rng)
        columns = columns_of(report, row_count(items))
        require("users" in columns, f"{shape}: the columns {', '.join(columns)} lack 'users'")
        again = type(report).load({name: np.array(column) for name, column in columns.items()})
        one, other = (probe.values(probe.table(probe.channel.absorb(r), rng)) for r in (report, again))
        require(np.array_equal(one, other), f"{shape}: a report loaded from its columns gives another answer")


def standard_error_is_that_of_an_empty_bucket(oracle: Any) -> None:
    """``standard_error`` and ``variance`` are those of a bucket with few of the users, over private and public coins.

    For vectors they hold on average over the coordinates.
    """
    for shape in wide_shapes(role_of(oracle), 20)[-2:]:
        n = 200
        buckets = np.zeros((n, len(shape.sizes)), np.int64)
        vectors = np.resize(worst_vectors(shape.bound), (n, shape.bound.dimension if shape.bound else 1))
        probe = Probe.of(oracle, shape, budget_of("pure", 1.0), rows=n)
        items = probe.items(buckets, vectors)
        errors = probe.declared_errors(items, NoiseRng.for_tests(101))
        noise = probe.by_level(probe.noise(items, 256, NoiseRng.for_tests(101)) / errors)
        squares = np.stack([(level[:, 1:] ** 2).mean(axis=(1, 2)) for level in noise], axis=1)
        mean, standard_errors = squares.mean(axis=0), squares.std(axis=0) / math.sqrt(len(squares))
        band = SKEW * deviations(16) * standard_errors + 0.05
        worst = int(np.argmax(np.abs(mean - 1) - band))
        require(
            (np.abs(mean - 1) <= band).all(),
            f"{shape}, level {worst}: empty buckets have {mean[worst]:.3f} times the declared variance; "
            f"{band[worst]:.3f} may be chance",
        )
        ratio = probe.declared_variance / float((errors**2).mean())
        require(abs(ratio - 1) < 1e-6, f"{shape}: variance() is {ratio:.6g} times the mean square of standard_error()")


LOCAL = (reports_travel_as_columns, standard_error_is_that_of_an_empty_bucket)
"""Checks of Local oracles."""

LOCAL_PURE = (one_report_hides_its_row,)
"""Checks of Local oracles with pure privacy, and of Shuffled ones, most of which declare an epsilon per report."""
