"""Checks of oracles whose users send several messages each (Shuffled trust): what travels, and what stands for it in
simulations."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np

from cloister.core.lattice import shrink
from cloister.core.randomness import NoiseRng
from cloister.core.shuffling import MultiMessageChannel, in_messages, needed_by
from cloister.core.types import AnyArray, Bools, Floats
from cloister.testing.check import Broken, require, role_of
from cloister.testing.probes import Probe, budget_of, length, spread, wide_shapes
from cloister.testing.statistics import variance_band

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
    min_honest_users = needed_by(probe.channel)
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


MIXING = (
    messages_travel_in_any_order,
    the_ideal_functionality_has_the_law_of_the_messages,
    noise_does_not_shrink_where_counts_are_large,
    it_says_whom_it_counts_on,
)
"""For oracles that ask everybody for several messages."""
