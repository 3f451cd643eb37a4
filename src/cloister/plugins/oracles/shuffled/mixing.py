"""Sums by split-and-mix: both halves of a question whose answer no single message says anything about."""

from __future__ import annotations

import math
from functools import cached_property
from typing import final

import attrs
import numpy as np

from cloister.additive.dense import Noised, totals_of
from cloister.core.aggregated import to_integers, to_words
from cloister.core.buckets import Placed
from cloister.core.budget import Budget, Event
from cloister.core.digests import stamp
from cloister.core.errors import InvalidInput, Refused
from cloister.core.lattice import Bound
from cloister.core.randomness import NoiseRng
from cloister.core.roles import Table
from cloister.core.types import AnyArray, Bools, Ids, Ints
from cloister.plugins.oracles.shuffled.hashed_buckets import Layout, Unfolded
from cloister.plugins.oracles.shuffled.secrecy import MOST_SHARES, enough_shares, price
from cloister.plugins.oracles.shuffled.shares import Mixed, Shares, added_up, split

CROWD = 4
"""The ring holds the numbers of so many times the planned users; more are refused."""

FAR = 64
"""Standard deviations of noise that the ring has room for: beyond is less probable than e^-2000."""

MOST_BITS = 62
"""Of the ring: numbers and their signs stay within a word."""

HELD = 2**21
"""Most shares that are cut at once (16 MB)."""


@final
@attrs.frozen
class MixingChannel:
    """Every user sends m shares of every slot: a coordinate of a place (see ``split_and_mix`` for the guarantee).

    The ring cannot wrap, but with probability e^-2000: with N <= ``CROWD`` times the planned users and vectors of norm at most B (1 for
    counts), a slot is at most N 2^shift B and the noise, which is below ``FAR`` standard deviations; 2^(bits - 1) is above that.

    Args:
        mechanism, budget: what is declared to the accountant.
        layout: which bucket is in which place.
        bound: of the vectors; None for counts.
        people: public number of users, all of whom are asked.
        least: how many of them are counted on, to draw their noise and to mix.
        sigma: standard deviation of their noise together, in shifted integers.
        shift: bits that numbers are scaled up by before the noise.
        unit: value of one lattice step in the caller's units (1 for counts).
        security: the statistical distance of each slot's shares from what its sum says is at most 2^-security.
        most_messages: a plan that asks for more messages of a user is refused.
    """

    mechanism: str
    budget: Budget
    layout: Layout
    bound: Bound | None
    people: int
    least: int
    sigma: float
    shift: int
    unit: float
    security: float
    most_messages: int

    def __attrs_post_init__(self) -> None:
        if self.bits > MOST_BITS:
            raise InvalidInput(
                f"'{self.mechanism}' would need numbers of {self.bits} bits for {self.people} users: the budget of this question "
                "is too small, or its bound too large"
            )
        if not self.messages <= self.most_messages:
            raise InvalidInput(
                f"'{self.mechanism}' would ask every user for {self.messages} messages ({self.each} of each of {self.slots} numbers), "
                f"{self.message_bytes * self.messages / 1e6:.3g} MB: the limit is {self.most_messages} (option most_messages). "
                "Ask for fewer buckets or levels, set the option buckets, or count with blanket-histogram"
            )

    @property
    def width(self) -> int:
        """Numbers per place."""
        return self.bound.dimension if self.bound else 1

    @property
    def slots(self) -> int:
        return sum(self.layout.places) * self.width

    @cached_property
    def bits(self) -> int:
        """Of the ring."""
        rows = CROWD * float(self.people) * (self.bound.l2 if self.bound else 1) * 2.0**self.shift
        noise = FAR * self.share * math.sqrt(CROWD * self.people)
        return math.ceil(math.log2((rows + noise) * (1 + 2.0**-40))) + 1

    @cached_property
    def each(self) -> int:
        """m: shares of every slot from every user.

        Raises:
            InvalidInput: no number of shares hides a sum of so few users.
        """
        found = enough_shares(self.least, self.bits, self.security)
        if found is None:
            raise InvalidInput(
                f"'{self.mechanism}' cannot hide {self.least} users among each other, with {MOST_SHARES} shares per number either"
            )
        return found

    @property
    def messages(self) -> int:
        """That every user sends."""
        return self.slots * self.each

    @property
    def message_bytes(self) -> int:
        """Of one message: a slot and a share."""
        return 4 + (4 if self.bits <= 32 else 8)

    @property
    def share(self) -> float:
        """Standard deviation of one user's noise, in shifted integers."""
        return self.sigma / math.sqrt(self.least)

    @property
    def deviation(self) -> float:
        """Standard deviation of each released number with the planned users, in its own unit."""
        return self.share * math.sqrt(self.people) * self.unit * 2.0**-self.shift

    @property
    def events(self) -> tuple[Event, ...]:
        """The noise of ``least`` users, and what shares say beside the sum."""
        touched = 2 * self.layout.space.levels * self.width
        ratio = 10 * self.least * math.exp(-((math.pi * self.share) ** 2))
        delta = price(self.slots * 2.0**-self.security, self.budget.mu)
        return (Event(self.mechanism, self.budget, touched, self.sigma, delta, ratio=ratio),)

    @cached_property
    def stamp(self) -> int:
        """64 bits that tell this question from any other."""
        return stamp(self)

    def encode(self, items: Ints | Placed, users: Ids, rng: NoiseRng) -> Shares:
        """Algorithm 10, for users (n,), every one with a share of the noise."""
        kind = np.uint32 if self.bits <= 32 else np.uint64
        out = np.empty((len(users), self.slots, self.each), kind)
        placed, step = self.layout.placed(items), max(1, HELD // max(1, self.messages))
        for start in range(0, len(users), step):
            some = slice(start, start + step)
            numbers = self._numbers([(where[some], values[some]) for where, values in placed])
            numbers += rng.child("noise").discrete_gaussian_each(users[some], self.share, self.slots)
            words = rng.child("shares").words(users[some], self.slots * (self.each - 1))
            out[some] = split(to_words(numbers), words.reshape(*numbers.shape, self.each - 1), self.bits)
        slots = np.broadcast_to(np.arange(self.slots, dtype=np.uint32)[:, None], out.shape)
        return Shares(self.stamp, slots.reshape(-1), out.reshape(-1))

    def _numbers(self, placed: list[tuple[Ints, Ints]]) -> Ints:
        """What each user adds to each slot (n, slots), without noise."""
        columns = list[Ints]()
        for (where, values), places in zip(placed, self.layout.places, strict=True):
            number = np.zeros((len(where), places + 1, self.width), np.int64)
            number[np.arange(len(where)), where] = values << np.int64(
                self.shift
            )  # -1 is the last place, which is cut off
            columns.append(number[:, :-1].reshape(len(where), -1))
        return np.concatenate(columns, axis=1)

    def absorb(self, report: Shares) -> Mixed:
        """The sum of every slot's shares, of all users' messages or of some, in any order.

        Raises:
            Refused: no users have sent these.
        """
        slots, shares = self._checked(report)
        counts = np.bincount(slots, minlength=self.slots).astype(np.int64, copy=False)
        return Mixed(added_up(slots, shares, self.slots, self.bits), counts)

    def whole(self, report: Shares) -> Bools:
        """Which users (n,) sent the right number of shares of every slot, and no others, to this question."""
        users = len(report.slots) // self.messages
        if report.question != self.stamp:
            return np.zeros(users, bool)
        slots = np.sort(report.slots.reshape(users, self.messages), axis=1)
        inside = (report.shares.astype(np.uint64) >> np.uint64(self.bits)).reshape(users, self.messages) == 0
        right = slots == np.repeat(np.arange(self.slots, dtype=slots.dtype), self.each)
        return np.asarray((right & inside).all(axis=1))

    def _checked(self, report: Shares) -> tuple[AnyArray, AnyArray]:
        slots, shares = report.slots, report.shares
        kind = np.uint32 if self.bits <= 32 else np.uint64
        if slots.dtype != np.uint32 or shares.dtype != kind or slots.ndim != 1 or slots.shape != shares.shape:
            raise Refused(f"messages of '{self.mechanism}' are two lines of one length, uint32 and {np.dtype(kind)}")
        if len(slots) and report.question != self.stamp:
            raise Refused("these messages answer another question: another plan, seed, space or budget")
        if len(slots) and (int(slots.max()) >= self.slots or int(shares.max()) >> self.bits):
            raise Refused(f"a message of '{self.mechanism}' is in no slot, or not in the ring: no encoder sends that")
        return slots, shares

    def pooled(self, items: Ints | Placed, users: Ids, rng: NoiseRng) -> Mixed:
        """What ``absorb`` makes of the shuffled messages of all these users, in law, without any message.

        The sum of k users' noise is, up to a factor e^(+-10^-1000), one discrete Gaussian number of k times the variance: it is drawn by
        ``decode``, once for all users.
        """
        totals = [
            totals_of(where, values, size)
            for (where, values), size in zip(self.layout.placed(items), self.layout.places, strict=True)
        ]
        vector = np.concatenate([level.ravel() for level in totals]) << np.int64(self.shift)
        counts = np.full(self.slots, len(users) * self.each, np.int64)
        return Mixed(to_words(vector), counts, len(users))

    def decode(self, summary: Mixed, rng: NoiseRng) -> Noised | Unfolded:
        """Algorithm 11. Draws nothing, but noise that simulated users owe.

        Raises:
            Refused: messages of whole users are missing, or there are more users than the ring has room for.
        """
        users = summary.users(self.each)
        if users > CROWD * self.people:
            raise Refused(
                f"'{self.mechanism}' was planned for {self.people} users and has room for {CROWD * self.people}: {users} sent messages"
            )
        words = summary.vector
        if summary.owed:
            together = self.share * math.sqrt(summary.owed)
            words = words + to_words(rng.child("noise").discrete_gaussian(together, self.slots))
        values = to_integers(words, self.bits).astype(np.float64) * (self.unit * 2.0**-self.shift)
        one = (self.width,) if self.bound else ()
        space = attrs.evolve(self.layout.space, sizes=self.layout.places, nested=False)
        table: Table = Noised(values.reshape(-1, *one), space, self.deviation)
        return Unfolded(table, self.layout) if any(self.layout.hashed) else table  # type: ignore[return-value]
