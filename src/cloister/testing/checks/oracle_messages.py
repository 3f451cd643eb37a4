"""Checks of oracles whose users send several messages each (Shuffled trust), and of their simulation.

*A person's messages together*: randomness that is used twice leaves every number and every total correct, but two of
the numbers reveal the row, or which messages belong together. (A report of one message is judged as a whole by
``one_report_hides_its_row``.)

Only the shuffled messages of all people are seen (``MultiMessageChannel``), and they promise nothing one person at a
time. Two laws follow from what they do promise:

(a) Let all people be in no bucket, but one with row A, and let S be a set of messages. The probability that
any message is in S is at most 1 - (1 - p)^people if this person is in no bucket as well, p the chance that a person in
no bucket sends one, and at least the chance q that this person sends one. So q is at most what (eps, delta) or mu-GDP
lets the first probability become. S is chosen, on other people's messages, as the cells of one or two fields of a
message that people in no bucket hardly ever hit.

(b) No two messages may be known as one person's, whatever the row: their contents are independent, but for what is
public of their places (slot and level). Linked messages are a report on its own, which no crowd hides.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache, reduce
from itertools import combinations
from statistics import NormalDist
from typing import Any, TypeAlias

import numpy as np

from cloister.core.shuffling import in_messages, min_honest_users_of
from cloister.plugin import (
    AnyArray,
    Bools,
    Bound,
    BucketedVectors,
    Event,
    Floats,
    Ints,
    MultiMessageChannel,
    NoiseRng,
    shrink,
)
from cloister.testing.check import Violation, require, role_of
from cloister.testing.checks.declarations import spent
from cloister.testing.checks.oracle_local import BITS, cut, low_bits, ranges
from cloister.testing.probes import (
    Probe,
    Shape,
    budget_of,
    repeated,
    row_count,
    user_numbers,
    varied_rows,
    wide_shapes,
    worst_vectors,
)
from cloister.testing.statistics import ALARM, probability_bounds, variance_band

REPEATS = 60
"""Releases of 20 numbers each: a standard deviation too small by 1.5 is detected."""

POOLED = 40
"""Releases with 20 numbers of each size: variances too small by 1.7 are detected, a halved deviation for certain."""


def messages_travel_in_any_order(oracle: Any) -> None:
    """Every report is arrays with one entry per message and no users, which ``load`` restores.

    ``absorb`` takes the messages in any order and in pieces, to the same answer.
    """
    for shape in wide_shapes(role_of(oracle), 6):
        probe, items = Probe.of(oracle, shape, budget_of(oracle.measure, 1.0)), varied_rows(shape)
        channel, n = multi_message_channel(probe), row_count(items)
        report: Any = probe.report(items, NoiseRng.for_tests(200))
        columns: dict[str, AnyArray] = report.columns()
        entries = {name: len(column) for name, column in columns.items()}
        require(
            set(entries.values()) == {n * channel.messages} and "users" not in columns,
            f"{shape}: {n} users send {channel.messages} messages each, the columns have {entries} entries",
        )
        require(_whole_check(probe.channel)(report).all(), f"{shape}: whole() refuses what users sent")
        order = np.random.default_rng(1).permutation(n * channel.messages)
        pieces = [
            probe.channel.absorb(type(report).load({name: column[piece] for name, column in columns.items()}))
            for piece in np.array_split(order, 3)
        ]
        one, other = probe.channel.absorb(report), reduce(lambda a, b: a.merge(b), pieces)
        first, second = (probe.values(probe.table(summary, NoiseRng.for_tests(201))) for summary in (one, other))
        require(np.array_equal(first, second), f"{shape}: shuffled messages, absorbed in pieces, give another answer")


def the_ideal_functionality_has_the_law_of_the_messages(oracle: Any) -> None:
    """Draws of ``pooled`` have the distribution of ``absorb`` on messages (Kolmogorov and Smirnov, at 1e-8)."""
    from scipy.stats import ks_2samp

    shape = wide_shapes(role_of(oracle), 20)[0]
    probe, items = Probe.of(oracle, shape, budget_of(oracle.measure, 1.0)), varied_rows(shape)
    channel, who = multi_message_channel(probe), user_numbers(row_count(items))
    exact, noises = probe.exact(items), list[Floats]()
    for number in range(2):
        rng = NoiseRng.for_tests(202 + number)
        runs = [rng.child(i) for i in range(REPEATS)]
        summaries = [probe.summary(items, r) if number == 0 else channel.pooled(items, who, r) for r in runs]
        noise = [probe.values(probe.table(s, r)) - exact for s, r in zip(summaries, runs, strict=True)]
        noises.append(np.concatenate(noise).ravel())
    test: Any = ks_2samp(noises[0], noises[1])
    p = float(test.pvalue)
    require(
        p > 1e-8,
        f"{shape}: noise of standard deviation {noises[0].std():.4g} by messages and {noises[1].std():.4g} by "
        f"pooled (p = {p:.2g})",
    )


def noise_does_not_shrink_where_counts_are_large(oracle: Any) -> None:
    """Noise drawn for all users at once (``pooled``) does not depend on the rows: 0, 1, 30 or 1500 per bucket.

    It has the declared width, less at most the share of the users that the bucket holds.
    """
    people, counts = 40_000, np.repeat((0, 1, 30, 1500), 20)
    shape = wide_shapes(role_of(oracle), len(counts))[0]
    probe = Probe.of(oracle, shape, budget_of(oracle.measure, 1.0), rows=people)
    ids = np.repeat(np.arange(len(counts)), counts)[:, None]
    vector = (
        shrink(np.full((1, probe.width), shape.bound.l2), shape.bound) if shape.bound else np.ones((1, 1), np.int64)
    )
    all_ids = np.concatenate([ids, np.full((people - len(ids), 1), -1)])
    items = probe.items(all_ids, np.repeat(vector, people, axis=0))
    channel, exact = multi_message_channel(probe), probe.exact(items)
    noises = list[Floats]()
    for i in range(POOLED):
        rng = NoiseRng.for_tests(204).child(i)
        table = probe.table(channel.pooled(items, user_numbers(people), rng), rng)
        noises.append((probe.values(table) - exact) / probe.errors(table))
    noise = np.stack(noises).reshape(POOLED, 4, -1)
    for number, rows in enumerate((0, 1, 30, 1500)):
        sample = noise[:, number].reshape(-1, 1)
        measured, band = float((sample**2).mean()), float(variance_band(sample, 4)[0])
        require(
            1 - rows / people - band <= measured <= 1 + band,
            f"{shape}: in buckets of {rows} rows the noise has {measured:.3g} times the declared variance ({band:.3g} "
            f"may be chance)",
        )


def it_says_whom_it_counts_on(oracle: Any) -> None:
    """``min_honest_users``, the honest people that the guarantee needs, is from 1 to the public number of people."""
    probe = Probe.of(oracle, wide_shapes(role_of(oracle), 6)[0], budget_of(oracle.measure, 1.0))
    min_honest_users = min_honest_users_of(probe.channel)
    require(
        min_honest_users is not None and 1 <= min_honest_users <= probe.rows,
        f"min_honest_users is {min_honest_users}, with {probe.rows} people",
    )


def _whole_check(channel: object) -> Callable[[Any], Bools]:
    """Return the channel's test of which messages are whole, or one that accepts all."""
    is_whole: Callable[[Any], Bools] = getattr(channel, "whole", lambda report: np.ones(1, bool))
    return is_whole


def multi_message_channel(probe: Probe) -> MultiMessageChannel:
    channel = in_messages(probe.channel)
    if channel is None:
        raise Violation("an oracle with 'asks_all_users' must open channels with 'messages' and 'pooled'")
    return channel


Fields: TypeAlias = dict[str, AnyArray]
"""Messages of people, by name of the column: (people, messages of one)."""

EPSILON = 1.0
"""Epsilon of the questions whose messages are tested."""

LINKED_PEOPLE = 10_000
"""People whose messages are compared with each other."""

MAX_FIELDS = 96
"""Fields of one person that are compared with each other."""

CROWD, SENDERS = 2**16, 2**12
"""People in no bucket to judge an event by, and people with a row.

With so many, and a thousand people in the crowd, an event that no crowd hides is detected.
"""

RANGES, LENGTHS = 32, 65
"""Ranges of a field's size, and numbers of bits, that are distinguished."""

MAX_MODULUS = 256
"""Maximum number of values of a field that another one is reduced modulo."""

COMPARISONS = 2**12
"""Upper limit on the events of a message that are judged."""


def messages_of_one_person_cannot_be_linked(oracle: Any) -> None:
    """Any two messages of a person are independent, in size and low bits of their fields, whatever the row.

    Tested by chi-square. A message's slot and level are public.
    """
    for probe, rows in _crowd_probes(oracle):
        for description, row in rows[:2]:
            fields = list(_varying_fields(_messages(probe, row, LINKED_PEOPLE, 300)))[:MAX_FIELDS]
            tables = _tables([features for _, _, features in fields])
            pairs = [(i, j) for i, j in combinations(range(len(fields)), 2) if fields[i][1] != fields[j][1]]
            for i, j in pairs:
                for a, b in ((a, b) for a in (0, 1) for b in (0, 1)):
                    statistic, freedom = _chi_square(tables[2 * i + a, :, 2 * j + b, :])
                    limit = _chi_square_limit(freedom, len(pairs))
                    require(
                        statistic <= limit,
                        f"{probe.shape}, a person {description}: {fields[i][0]} and {fields[j][0]} are not "
                        f"independent (chi-square {statistic:.4g} with {freedom} degrees of freedom, at most "
                        f"{limit:.4g} by chance): use each word of randomness for one message only",
                    )


def _varying_fields(fields: Fields) -> Iterator[tuple[str, int, tuple[Ints, Ints]]]:
    """Yield fields that differ between people: name, message, and features (low bits, size)."""
    count = next(iter(fields.values())).shape[1]
    for message in range(count):
        for name, values in fields.items():
            column = values[:, message]
            if (column != column[0]).any():
                size = ranges([column], BITS)[0]
                yield f"'{name}' of message {message}", message, (low_bits(column), size)


def _tables(features: Sequence[tuple[Ints, Ints]]) -> Floats:
    """Return the contingency tables of any two features, two per field: (features, BITS, features, BITS)."""
    flat = [feature for pair in features for feature in pair]
    hot = np.concatenate([(feature[:, None] == np.arange(BITS)) for feature in flat], axis=1).astype(np.float32)
    return np.asarray(hot.T @ hot, np.float64).reshape(len(flat), BITS, len(flat), BITS)


def _chi_square(table: Floats) -> tuple[float, int]:
    """Return the statistic of independence and its degrees of freedom."""
    table = table[table.any(axis=1)][:, table.any(axis=0)]
    expected = table.sum(axis=1, keepdims=True) * table.sum(axis=0) / table.sum()
    return float(((table - expected) ** 2 / expected).sum()), (table.shape[0] - 1) * (table.shape[1] - 1)


@lru_cache
def _chi_square_limit(freedom: int, pairs: int) -> float:
    """Return the statistic that chance exceeds in any table at the false-alarm rate.

    Each of so many pairs has four tables, for each of four rows.
    """
    from scipy.stats import chi2

    return float(chi2.isf(ALARM / (4 * 4 * pairs), freedom)) if freedom else 0.0


def a_message_hides_among_those_of_others(oracle: Any) -> None:
    """No set of messages is hit by a person in some bucket but hardly ever by people in none.

    Tested for each field and any two fields of a message.
    """
    for probe, rows in _crowd_probes(oracle, rows=1000):
        crowd = _messages(probe, rows[0][1], 2 * CROWD, 301)
        for number, (description, row) in enumerate(rows[1:]):
            sender = _messages(probe, row, 2 * SENDERS, 302 + number)
            for name, sender_codes, crowd_codes in _outcomes(sender, crowd):
                _judge_rare(probe, f"a person {description}: {name}", sender_codes, crowd_codes)


def _judge_rare(probe: Probe, label: str, sender: Ints, crowd: Ints) -> None:
    """Check the event of outcomes (people, messages) that pilots in no bucket never had."""
    size = int(max(sender.max(), crowd.max())) + 1
    rare = np.bincount(crowd[:CROWD].ravel(), minlength=size) == 0
    rare &= np.bincount(sender[:SENDERS].ravel(), minlength=size) > 0
    if not rare.any():
        return
    hits, crowd_hits = (int(rare[outcomes].any(axis=1).sum()) for outcomes in (sender[SENDERS:], crowd[CROWD:]))
    low = probability_bounds(hits, SENDERS, COMPARISONS)[0]
    per_person = probability_bounds(crowd_hits, CROWD, COMPARISONS)[1]
    high = -math.expm1(probe.rows * math.log1p(-per_person)) if per_person < 1 else 1.0
    limit = _most_probable(probe, high)
    require(
        low <= limit,
        f"{probe.shape}, {label}: such a message is sent with a probability of at least {low:.4g}; "
        f"{probe.rows} people in no bucket send one with at most {high:.4g}, which the budget lets become "
        f"{limit:.4g}",
    )


def _most_probable(probe: Probe, chance: float) -> float:
    """Return the largest probability for a neighbour of an event with probability at most ``chance``."""
    events: tuple[Event, ...] = probe.channel.events
    delta = float(sum(event.delta for event in events))
    paid = spent(events)
    if paid.measure == "pure":
        return min(1.0, math.exp(paid.epsilon) * chance + delta)
    if not 0 < chance < 1:
        return chance + delta
    normal = NormalDist()
    return normal.cdf(normal.inv_cdf(chance) + paid.mu) + delta


def _outcomes(sender: Fields, crowd: Fields) -> Iterator[tuple[str, Ints, Ints]]:
    """Yield codes of messages by one or two of their fields and their public place."""
    varying = [
        name for name, values in crowd.items() if any((column != values[0]).any() for column in (values, sender[name]))
    ]
    place = _place_codes([values[0] for name, values in crowd.items() if name not in varying], sender)
    for name in varying:
        for feature, (a, b) in _features(sender[name], crowd[name]):
            yield f"'{name}', {feature}", a + LENGTHS * place, b + LENGTHS * place
    for one, other in combinations(varying, 2):
        for first, second in ((one, other), (other, one)):
            wide, narrow = (sender[first], crowd[first]), (sender[second], crowd[second])
            top = int(max(values.max() for values in narrow)) + 1 if narrow[0].dtype.kind in "ui" else 0
            if 0 < top <= MAX_MODULUS and wide[0].dtype.kind in "ui":
                a, b = (
                    (w % np.asarray(top, w.dtype)).astype(np.int64) * top + f.astype(np.int64)
                    for w, f in zip(wide, narrow, strict=True)
                )
                yield f"'{first}' modulo {top} and '{second}'", a + top**2 * place, b + top**2 * place
        x, y = (_sizes(sender[name], crowd[name]) for name in (one, other))
        a, b = (i * RANGES + j for i, j in zip(x, y, strict=True))
        yield f"'{one}' and '{other}'", a + RANGES**2 * place, b + RANGES**2 * place


def _sizes(sender: AnyArray, crowd: AnyArray) -> list[Ints]:
    return cut((sender, crowd), crowd[:CROWD], RANGES)


def _features(sender: AnyArray, crowd: AnyArray) -> Iterator[tuple[str, list[Ints]]]:
    """Yield a field's size, its low bits, and its bit length from either end of its range."""
    yield "its size", _sizes(sender, crowd)
    yield "its low bits", [low_bits(values) for values in (sender, crowd)]
    if crowd.dtype.kind == "u":
        last = np.asarray(2 ** int(max(sender.max(), crowd.max())).bit_length() - 1, crowd.dtype)
        yield "its bits", [_bit_length(values) for values in (sender, crowd)]
        yield "its bits from above", [_bit_length(last - values) for values in (sender, crowd)]


def _bit_length(numbers: AnyArray) -> Ints:
    return np.ceil(np.log2(numbers.astype(np.float64) + 1)).astype(np.int64)


def _place_codes(fixed: Sequence[AnyArray], fields: Fields) -> Ints:
    """Return a code of each message's public place (messages,): its fields that are the same for all people."""
    if not fixed:
        return np.zeros(next(iter(fields.values())).shape[1], np.int64)
    return np.asarray(np.unique(np.stack(fixed), axis=1, return_inverse=True)[1], np.int64).reshape(-1)


def _crowd_probes(oracle: Any, rows: int = 1) -> Iterator[tuple[Probe, list[tuple[str, Ints | BucketedVectors]]]]:
    """Yield channels, with possible rows of a person, the first in no bucket."""
    counts = role_of(oracle) == "FrequencyOracle"
    for sizes in ((3,), (1, 2)):
        bound = None if counts else Bound(1000, 2)
        probe = Probe.of(oracle, Shape(sizes, bound), budget_of(oracle.measure, EPSILON), rows=rows)
        vector = worst_vectors(bound)[:1]
        positions = {
            "in no bucket": [-1] * len(sizes),
            "in the first bucket": [0] * len(sizes),
            "in the last": [s - 1 for s in sizes],
        }
        yield probe, [(description, probe.items(np.array([ids]), vector)) for description, ids in positions.items()]


def _messages(probe: Probe, row: Ints | BucketedVectors, people: int, seed: int) -> Fields:
    """Return messages of people with this row, each person's in the order of their public places."""
    count, users = multi_message_channel(probe).messages, user_numbers(people)
    report: Any = probe.channel.encode(repeated(row, people), users, NoiseRng.for_tests(seed))
    fields = {name: np.asarray(column).reshape(people, count) for name, column in report.columns().items()}
    for values in list(fields.values()):
        ordered = np.sort(values, axis=1)
        # a column of places, which each person has in an order of their own
        if (values != values[0]).any() and not (ordered != ordered[0]).any():
            order = np.argsort(values, axis=1, kind="stable")
            fields = {name: np.take_along_axis(column, order, axis=1) for name, column in fields.items()}
    return fields


MESSAGES = (
    messages_travel_in_any_order,
    the_ideal_functionality_has_the_law_of_the_messages,
    noise_does_not_shrink_where_counts_are_large,
    it_says_whom_it_counts_on,
    messages_of_one_person_cannot_be_linked,
    a_message_hides_among_those_of_others,
)
"""Checks of oracles that ask all users for several messages."""
