"""Checks of oracles whose users send several messages each (Shuffled trust): what travels, and what stands for it in
simulations.

*All that one person sends*, taken together: fresh randomness that is used twice leaves every number and every total as
it should be, and two of the numbers tell her row, or which messages are hers. (A report of one message is judged as a
whole by ``one_report_hides_its_row``.)

Of messages only the shuffled heap is seen (``MultiMessageChannel``), and they promise nothing one person at a time.
What follows from what they do promise:

(a) Let everybody be in no bucket, but for one person with row A, and let S be a set of messages. That the heap holds a
message of S has at most the chance 1 - (1 - p)^people if she is in no bucket as well, p the chance that a person in no
bucket sends one, and at least the chance q that she sends one. So q is at most what (eps, delta) or mu-GDP lets the
first chance become. S is chosen, on other people's messages, as the cells of one or two fields of a message that people
in no bucket hardly ever hit.

(b) No two messages may be known as one person's, whatever her row is: what they say is independent, but for what is
public of their places (which slot, which level). Linked messages are a report on its own, which no crowd hides.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache, reduce
from itertools import combinations
from statistics import NormalDist
from typing import Any, TypeAlias

import numpy as np

from cloister.core.buckets import BucketedVectors
from cloister.core.budget import Event
from cloister.core.lattice import Bound, shrink
from cloister.core.randomness import NoiseRng
from cloister.core.shuffling import MultiMessageChannel, in_messages, min_honest_users_of
from cloister.core.types import AnyArray, Bools, Floats, Ints
from cloister.testing.check import Broken, require, role_of
from cloister.testing.checks.declarations import spent
from cloister.testing.checks.oracle_local import BITS, low_bits, ranges
from cloister.testing.probes import Probe, Shape, budget_of, length, repeated, spread, wide_shapes, worst_vectors
from cloister.testing.statistics import ALARM, proportion, variance_band

REPEATS = 60
"""Releases of 20 numbers each: a standard deviation that is too small by 1.5 is found out."""

POOLED = 40
"""Releases with 20 numbers of each size: variances that are too small by 1.7 are found out, a halved standard deviation
for certain."""


def messages_travel_in_any_order(oracle: Any) -> None:
    """A report is arrays with one entry per message and none of users; ``load`` makes it again, and ``absorb`` takes
    the messages in any order and in pieces, to the same answer."""
    for shape in wide_shapes(role_of(oracle), 6):
        probe, items = Probe.of(oracle, shape, budget_of(oracle.measure, 1.0)), spread(shape)
        channel, n = mixing(probe), length(items)
        report: Any = probe.channel.encode(items, np.arange(n, dtype=np.uint64), NoiseRng.for_tests(200))
        columns: dict[str, AnyArray] = report.columns()
        entries = {name: len(column) for name, column in columns.items()}
        require(
            set(entries.values()) == {n * channel.messages} and "users" not in columns,
            f"{shape}: {n} users send {channel.messages} messages each, the columns have {entries} entries",
        )
        require(_sorting(probe.channel)(report).all(), f"{shape}: whole() refuses what users sent")
        order = np.random.default_rng(1).permutation(n * channel.messages)
        pieces = [
            probe.channel.absorb(type(report).load({name: column[some] for name, column in columns.items()}))
            for some in np.array_split(order, 3)
        ]
        one, other = probe.channel.absorb(report), reduce(lambda a, b: a.merge(b), pieces)
        first, second = (probe.values(probe.table(summary, NoiseRng.for_tests(201))) for summary in (one, other))
        require(np.array_equal(first, second), f"{shape}: messages that were shuffled, in pieces, give another answer")


def the_ideal_functionality_has_the_law_of_the_messages(oracle: Any) -> None:
    """What ``pooled`` draws has the law of what ``absorb`` makes of the messages (Kolmogorov and Smirnov, at 1e-8)."""
    from scipy.stats import ks_2samp

    shape = wide_shapes(role_of(oracle), 20)[0]
    probe, items = Probe.of(oracle, shape, budget_of(oracle.measure, 1.0)), spread(shape)
    channel, who = mixing(probe), np.arange(length(items), dtype=np.uint64)
    exact, found = probe.exact(items), list[Floats]()
    for number in range(2):
        rng = NoiseRng.for_tests(202 + number)
        runs = [rng.child(i) for i in range(REPEATS)]
        summaries = [probe.summary(items, r) if number == 0 else channel.pooled(items, who, r) for r in runs]
        noise = [probe.values(probe.table(s, r)) - exact for s, r in zip(summaries, runs, strict=True)]
        found.append(np.concatenate(noise).ravel())
    told: Any = ks_2samp(found[0], found[1])
    p = float(told.pvalue)
    require(
        p > 1e-8,
        f"{shape}: noise of standard deviation {found[0].std():.4g} by messages and {found[1].std():.4g} by pooled (p "
        f"= {p:.2g})",
    )


def noise_does_not_shrink_where_counts_are_large(oracle: Any) -> None:
    """What is drawn for all users at once (``pooled``) does not depend on the truth: buckets with no row, one, a few
    and thousands have noise of the declared width, less at most the share of the users that they hold, who agree with
    themselves."""
    people, held = 40_000, np.repeat((0, 1, 30, 1500), 20)
    shape = wide_shapes(role_of(oracle), len(held))[0]
    probe = Probe.of(oracle, shape, budget_of(oracle.measure, 1.0), rows=people)
    ids = np.repeat(np.arange(len(held)), held)[:, None]
    vector = (
        shrink(np.full((1, probe.width), shape.bound.l2), shape.bound) if shape.bound else np.ones((1, 1), np.int64)
    )
    every = np.concatenate([ids, np.full((people - len(ids), 1), -1)])
    items = probe.items(every, np.repeat(vector, people, axis=0))
    channel, exact = mixing(probe), probe.exact(items)
    found = list[Floats]()
    for i in range(POOLED):
        rng = NoiseRng.for_tests(204).child(i)
        table = probe.table(channel.pooled(items, np.arange(people, dtype=np.uint64), rng), rng)
        found.append((probe.values(table) - exact) / probe.errors(table))
    noise = np.stack(found).reshape(POOLED, 4, -1)
    for number, rows in enumerate((0, 1, 30, 1500)):
        some = noise[:, number].reshape(-1, 1)
        measured, band = float((some**2).mean()), float(variance_band(some, 4)[0])
        require(
            1 - rows / people - band <= measured <= 1 + band,
            f"{shape}: where {rows} rows are, the noise has {measured:.3g} times the declared variance ({band:.3g} "
            f"may be chance)",
        )


def it_says_whom_it_counts_on(oracle: Any) -> None:
    """``min_honest_users``, the honest people that the guarantee needs, is at least 1 and at most the public number of
    people."""
    probe = Probe.of(oracle, wide_shapes(role_of(oracle), 6)[0], budget_of(oracle.measure, 1.0))
    min_honest_users = min_honest_users_of(probe.channel)
    require(
        min_honest_users is not None and 1 <= min_honest_users <= probe.rows,
        f"min_honest_users is {min_honest_users}, with {probe.rows} people",
    )


def _sorting(channel: object) -> Callable[[Any], Bools]:
    """What tells a shuffler whose messages are whole, if the channel has it."""
    whole: Callable[[Any], Bools] = getattr(channel, "whole", lambda report: np.ones(1, bool))
    return whole


def mixing(probe: Probe) -> MultiMessageChannel:
    channel = in_messages(probe.channel)
    if channel is None:
        raise Broken("an oracle with 'asks_all_users' opens channels with 'messages' and 'pooled'")
    return channel


Fields: TypeAlias = dict[str, AnyArray]
"""Messages that people send, by the name of its column: (people, messages of one)."""

EPSILON = 1.0
"""Epsilon of the questions whose messages are looked at."""

LINKED = 10_000
"""People whose messages are compared with each other."""

MAX_FIELDS = 96
"""Fields of one person that are compared with each other."""

OTHERS, HERS = 2**16, 2**12
"""People in no bucket whose messages an event is judged by, and people with a row. With so many, and a thousand people
in the crowd, an event that no crowd hides is found out."""

RANGES, LENGTHS = 32, 65
"""Ranges of a field's size, and numbers of bits, that are told apart where a message is looked at."""

SAME = 256
"""Most values of a field that another one is taken modulo of."""

COMPARISONS = 2**12
"""More than the events of a message that are judged."""


def messages_of_one_person_cannot_be_linked(oracle: Any) -> None:
    """Whatever a person's row is, any two of her messages are independent: their fields, in size and in their low bits
    (chi-square tests of independence). Which slot or level a message is of is public."""
    for probe, rows in _crowds(oracle):
        for what, row in rows[:2]:
            fields = list(_spread(_messages(probe, row, LINKED, 300)))[:MAX_FIELDS]
            tables = _tables([features for _, _, features in fields])
            pairs = [(i, j) for i, j in combinations(range(len(fields)), 2) if fields[i][1] != fields[j][1]]
            for i, j in pairs:
                for a, b in ((a, b) for a in (0, 1) for b in (0, 1)):
                    found, freedom = _chi_square(tables[2 * i + a, :, 2 * j + b, :])
                    most = _most(freedom, len(pairs))
                    require(
                        found <= most,
                        f"{probe.shape}, a person {what}: {fields[i][0]} and {fields[j][0]} depend on each other "
                        f"(chi-square {found:.4g} with {freedom} degrees of freedom, {most:.4g} may be chance): each "
                        f"word of randomness is for one message",
                    )


def _spread(fields: Fields) -> Iterator[tuple[str, int, tuple[Ints, Ints]]]:
    """Every field of every message that differs from person to person: its name, whose message, its low bits and its
    size."""
    count = next(iter(fields.values())).shape[1]
    for message in range(count):
        for name, values in fields.items():
            column = values[:, message]
            if (column != column[0]).any():
                size = ranges([column], BITS)[0]
                yield f"'{name}' of message {message}", message, (low_bits(column), size)


def _tables(features: Sequence[tuple[Ints, Ints]]) -> Floats:
    """How often each two features (of 2 per field) have each two values: (features, BITS, features, BITS)."""
    flat = [feature for pair in features for feature in pair]
    hot = np.concatenate([(feature[:, None] == np.arange(BITS)) for feature in flat], axis=1).astype(np.float32)
    return np.asarray(hot.T @ hot, np.float64).reshape(len(flat), BITS, len(flat), BITS)


def _chi_square(table: Floats) -> tuple[float, int]:
    """The statistic of independence, and its degrees of freedom."""
    table = table[table.any(axis=1)][:, table.any(axis=0)]
    wanted = table.sum(axis=1, keepdims=True) * table.sum(axis=0) / table.sum()
    return float(((table - wanted) ** 2 / wanted).sum()), (table.shape[0] - 1) * (table.shape[1] - 1)


@lru_cache
def _most(freedom: int, pairs: int) -> float:
    """A statistic of independence that chance exceeds, in any of the tables of so many pairs, of four channels' rows,
    at the false-alarm rate."""
    from scipy.stats import chi2

    return float(chi2.isf(ALARM / (4 * 4 * pairs), freedom)) if freedom else 0.0


def a_message_hides_among_those_of_others(oracle: Any) -> None:
    """No set of messages is hit by a person in some bucket and by hardly anybody in none: her messages, each field and
    any two fields of one together, are lost among those of the crowd."""
    for probe, rows in _crowds(oracle, rows=1000):
        others = _messages(probe, rows[0][1], 2 * OTHERS, 301)
        for number, (what, row) in enumerate(rows[1:]):
            hers = _messages(probe, row, 2 * HERS, 302 + number)
            for name, one, other in _outcomes(hers, others):
                _judge_rare(probe, f"a person {what}: {name}", one, other)


def _judge_rare(probe: Probe, what: str, hers: Ints, others: Ints) -> None:
    """Outcomes (people, messages): those that pilots in no bucket never had are the event."""
    size = int(max(hers.max(), others.max())) + 1
    rare = np.bincount(others[:OTHERS].ravel(), minlength=size) == 0
    rare &= np.bincount(hers[:HERS].ravel(), minlength=size) > 0
    if not rare.any():
        return
    hits, met = (int(rare[some].any(axis=1).sum()) for some in (hers[HERS:], others[OTHERS:]))
    low, one = proportion(hits, HERS, COMPARISONS)[0], proportion(met, OTHERS, COMPARISONS)[1]
    high = -math.expm1(probe.rows * math.log1p(-one)) if one < 1 else 1.0
    most = _most_probable(probe, high)
    require(
        low <= most,
        f"{probe.shape}, {what}: she sends such a message with a probability of at least {low:.4g}; among "
        f"{probe.rows} people in no bucket there is one with a probability of at most {high:.4g}, which the budget "
        f"lets become {most:.4g}",
    )


def _most_probable(probe: Probe, chance: float) -> float:
    """How probable an event may be for a neighbour, by what the channel's events say, where its probability is at most
    ``chance``."""
    events: tuple[Event, ...] = probe.channel.events
    delta = float(sum(event.delta for event in events))
    paid = spent(events)
    if paid.measure == "pure":
        return min(1.0, math.exp(paid.epsilon) * chance + delta)
    if not 0 < chance < 1:
        return chance + delta
    normal = NormalDist()
    return normal.cdf(normal.inv_cdf(chance) + paid.mu) + delta


def _outcomes(hers: Fields, others: Fields) -> Iterator[tuple[str, Ints, Ints]]:
    """Numbers that say in which cell a message is, by one of its fields or two, and by what is public of its place."""
    told = [name for name, values in others.items() if any((some != values[0]).any() for some in (values, hers[name]))]
    place = _place([values[0] for name, values in others.items() if name not in told], hers)
    for name in told:
        for what, (a, b) in _numbered(hers[name], others[name]):
            yield f"'{name}', {what}", a + LENGTHS * place, b + LENGTHS * place
    for one, other in combinations(told, 2):
        for first, second in ((one, other), (other, one)):
            wide, few = (hers[first], others[first]), (hers[second], others[second])
            top = int(max(some.max() for some in few)) + 1 if few[0].dtype.kind in "ui" else 0
            if 0 < top <= SAME and wide[0].dtype.kind in "ui":
                a, b = (
                    (w % np.asarray(top, w.dtype)).astype(np.int64) * top + f.astype(np.int64)
                    for w, f in zip(wide, few, strict=True)
                )
                yield f"'{first}' modulo {top} and '{second}'", a + top**2 * place, b + top**2 * place
        x, y = (_sizes(hers[name], others[name]) for name in (one, other))
        a, b = (i * RANGES + j for i, j in zip(x, y, strict=True))
        yield f"'{one}' and '{other}'", a + RANGES**2 * place, b + RANGES**2 * place


def _sizes(hers: AnyArray, others: AnyArray) -> list[Ints]:
    steps = np.unique(np.quantile(others[:OTHERS], np.arange(1, RANGES) / RANGES))
    return [np.searchsorted(steps, some, side="right") for some in (hers, others)]


def _numbered(hers: AnyArray, others: AnyArray) -> Iterator[tuple[str, list[Ints]]]:
    """A field in ranges of its size, its low bits, and by how many bits it is from either end of all that it can be."""
    yield "its size", _sizes(hers, others)
    yield "its low bits", [low_bits(some) for some in (hers, others)]
    if others.dtype.kind == "u":
        last = np.asarray(2 ** int(max(hers.max(), others.max())).bit_length() - 1, others.dtype)
        yield "its bits", [_length(some) for some in (hers, others)]
        yield "its bits from above", [_length(last - some) for some in (hers, others)]


def _length(numbers: AnyArray) -> Ints:
    """About how many bits numbers have."""
    return np.ceil(np.log2(numbers.astype(np.float64) + 1)).astype(np.int64)


def _place(fixed: Sequence[AnyArray], fields: Fields) -> Ints:
    """A number for what is public of each message's place (messages,): its fields that are the same for all people."""
    if not fixed:
        return np.zeros(next(iter(fields.values())).shape[1], np.int64)
    return np.asarray(np.unique(np.stack(fixed), axis=1, return_inverse=True)[1], np.int64).reshape(-1)


def _crowds(oracle: Any, rows: int = 1) -> Iterator[tuple[Probe, list[tuple[str, Ints | BucketedVectors]]]]:
    """Channels, with rows that a person can have: in no bucket first."""
    counts = role_of(oracle) == "FrequencyOracle"
    for sizes in ((3,), (1, 2)):
        bound = None if counts else Bound(1000, 2)
        probe = Probe.of(oracle, Shape(sizes, bound), budget_of(oracle.measure, EPSILON), rows=rows)
        vector = worst_vectors(bound)[:1]
        where = {
            "in no bucket": [-1] * len(sizes),
            "in the first bucket": [0] * len(sizes),
            "in the last": [s - 1 for s in sizes],
        }
        yield probe, [(what, probe.items(np.array([ids]), vector)) for what, ids in where.items()]


def _messages(probe: Probe, row: Ints | BucketedVectors, people: int, seed: int) -> Fields:
    """Messages of people with this row, each person's messages in the order of their public places."""
    each, users = mixing(probe).messages, np.arange(people, dtype=np.uint64)
    report: Any = probe.channel.encode(repeated(row, people), users, NoiseRng.for_tests(seed))
    found = {name: np.asarray(column).reshape(people, each) for name, column in report.columns().items()}
    for values in list(found.values()):
        ordered = np.sort(values, axis=1)
        if (values != values[0]).any() and not (
            ordered != ordered[0]
        ).any():  # places, in an order of each person's own
            order = np.argsort(values, axis=1, kind="stable")
            found = {name: np.take_along_axis(some, order, axis=1) for name, some in found.items()}
    return found


MESSAGES = (
    messages_travel_in_any_order,
    the_ideal_functionality_has_the_law_of_the_messages,
    noise_does_not_shrink_where_counts_are_large,
    it_says_whom_it_counts_on,
    messages_of_one_person_cannot_be_linked,
    a_message_hides_among_those_of_others,
)
"""For oracles that ask everybody for several messages."""
