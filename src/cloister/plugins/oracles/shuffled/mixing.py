"""Split-and-mix, Algorithms 9 to 11: both halves of a question whose answer no single message says anything about.

What it guarantees: ``split_and_mix``. Source: Chang, Ghazi, Kumar, Manurangsi 2021, appendix C.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cached_property
from itertools import accumulate
from typing import Any, final

import attrs
import numpy as np

from cloister.core.aggregated import to_integers, to_words
from cloister.core.buckets import BucketedVectors, BundleArrays
from cloister.core.budget import Budget, Event
from cloister.core.errors import InvalidInput, Refused
from cloister.core.lattice import Bound
from cloister.core.plain_data import stamp
from cloister.core.randomness import NoiseRng
from cloister.core.reproducible_math import ceil_log2, exp, more_bits, more_bits_within, power
from cloister.core.types import AnyArray, Bools, Ids, Ints
from cloister.noise.channel import LookupTable, lookup_table, totals_of
from cloister.plugins.oracles.shuffled.hashed_buckets import Layout, Unfolded
from cloister.plugins.oracles.shuffled.secrecy import MAX_SHARES, enough_shares, price

CROWD = 4
"""The ring holds the numbers of so many times the planned users; more are refused."""

FAR = 64
"""Standard deviations of noise that the ring has room for: beyond is less probable than e^-2000."""

MAX_BITS = 62
"""Most bits of the ring: numbers and their signs stay within a word."""

LIMB = 24
"""Bits that are added up at once, exactly, in float64: up to 2^29 shares per slot."""

HELD = 2**21
"""Most shares that are cut at once (16 MB)."""

COLUMNS = ("question", "slot", "share")


@final
@attrs.frozen(eq=False)
class Shares:
    """Messages of users: one entry each, whose slot says which number it is a share of. Nothing says whose.

    Args:
        question: the stamp of the channel that encoded them.
        slots: (messages,) uint32.
        shares: (messages,) uint32 or uint64.
    """

    question: int
    slots: AnyArray = attrs.field(repr=False)
    shares: AnyArray = attrs.field(repr=False)

    def columns(self) -> dict[str, AnyArray]:
        """Arrays with one entry per message."""
        question = np.broadcast_to(np.uint64(self.question), len(self.slots))
        return dict(zip(COLUMNS, (question, self.slots, self.shares), strict=True))

    @classmethod
    def load(cls, columns: Mapping[str, AnyArray]) -> Shares:
        """Messages from arrays that came from outside, in any order.

        Raises:
            Refused: they are not what ``columns`` gives. Whether they are possible is for ``absorb`` to say.
        """
        if sorted(columns) != sorted(COLUMNS):
            raise Refused(f"shares have the columns {', '.join(COLUMNS)}, not {', '.join(sorted(columns))}")
        question, slots, shares = (columns[name] for name in COLUMNS)
        if any(c.ndim != 1 or len(c) != len(slots) for c in (question, slots, shares)):
            raise Refused("the columns of shares are lines of one length")
        if question.dtype != np.uint64 or slots.dtype != np.uint32 or shares.dtype not in (np.uint32, np.uint64):
            raise Refused("the columns of shares have types that no encoder sends")
        if len(question) and (question != question[0]).any():
            raise Refused("the shares answer several questions: keep those of each question apart")
        return cls(int(question[0]) if len(question) else 0, slots, shares)


def split(values: Ids, words: Ids, bits: int) -> Ids:
    """Algorithm 9: shares (..., m) of numbers (...), from secret words (..., m - 1): uniform but for their sum.

    They add up modulo 2^bits, which divides 2^64: the lowest bits of a uniform word are uniform, and sums may wrap.
    """
    mask = np.uint64(2**bits - 1)
    last = (values - words.sum(axis=-1, dtype=np.uint64))[..., None]
    cut: Ids = np.concatenate([words, last], axis=-1) & mask
    return cut


@final
@attrs.frozen(eq=False)
class Mixed:
    """Merged messages: every slot's sum modulo 2^64, and how many shares are in it.

    Args:
        vector: words (slots,).
        counts: (slots,).
        owed: how many users, simulated at once by ``pooled``, have not drawn their noise yet.
    """

    vector: Ids = attrs.field(repr=False)
    counts: Ints = attrs.field(repr=False)
    owed: int = 0

    def merge(self, other: Mixed) -> Mixed:
        return Mixed(self.vector + other.vector, self.counts + other.counts, self.owed + other.owed)

    def users(self, each: int) -> int:
        """How many users sent these.

        Raises:
            Refused: not all of them have sent ``each`` shares of every slot.
        """
        users, rest = divmod(int(self.counts[0]), each)
        if rest or (self.counts != users * each).any():
            raise Refused(
                f"every user sends {each} shares of each of {len(self.counts)} numbers: some are missing, or some too "
                "many"
            )
        return users


@final
@attrs.frozen
class MixingChannel:
    """Every user sends m shares of every slot: a coordinate of a place.

    The ring cannot wrap, but with probability e^-2000: with N <= ``CROWD`` times the planned users and vectors of norm
    at most B (1 for counts), a slot is at most N 2^shift B and the noise, which is below ``FAR`` standard deviations;
    2^(bits - 1) is above that.

    Args:
        mechanism, budget: what is declared to the accountant.
        layout: which bucket is in which place.
        bound: of the vectors; None for counts.
        people: public number of users, all of whom are asked.
        min_honest_users: how many of them are counted on, to draw their noise and to mix.
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
    min_honest_users: int
    sigma: float
    shift: int
    unit: float
    security: float
    most_messages: int

    def __attrs_post_init__(self) -> None:
        if self.bits > MAX_BITS:
            raise InvalidInput(
                f"'{self.mechanism}' would need numbers of {self.bits} bits for {self.people} users: the budget of "
                "this question is too small, or its bound too large"
            )
        if not self.messages <= self.most_messages:
            raise InvalidInput(
                f"'{self.mechanism}' would ask every user for {self.messages} messages ({self.each} of each of "
                f"{self.slots} numbers), {self.message_bytes * self.messages / 1e6:.3g} MB: the limit is "
                f"{self.most_messages} (option most_messages). Ask for fewer buckets or levels, set the option "
                "buckets, or count with blanket-histogram"
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
        """Bits of the ring."""
        rows = CROWD * float(self.people) * (self.bound.l2 if self.bound else 1) * 2.0**self.shift
        noise = FAR * self.share * math.sqrt(CROWD * self.people)
        return ceil_log2((rows + noise) * (1 + 2.0**-40)) + 1

    @cached_property
    def each(self) -> int:
        """m: shares of every slot from every user.

        Raises:
            InvalidInput: no number of shares hides a sum of so few users.
        """
        found = enough_shares(self.min_honest_users, self.bits, self.security)
        if found is None:
            raise InvalidInput(
                f"'{self.mechanism}' cannot hide {self.min_honest_users} users among each other, with {MAX_SHARES} "
                f"shares per number either"
            )
        return found

    @property
    def messages(self) -> int:
        """That every user sends."""
        return self.slots * self.each

    @property
    def share_type(self) -> np.dtype[Any]:
        """The type of a share."""
        return np.dtype(np.uint32 if self.bits <= 32 else np.uint64)

    @property
    def message_bytes(self) -> int:
        """Bytes of one message: a slot and a share."""
        return 4 + self.share_type.itemsize

    @property
    def share(self) -> float:
        """Standard deviation of one user's noise, in shifted integers."""
        return self.sigma / math.sqrt(self.min_honest_users)

    @property
    def deviation(self) -> float:
        """Standard deviation of each released number with the planned users, in its own unit."""
        return self.share * math.sqrt(self.people) * self.unit * 2.0**-self.shift

    @property
    def events(self) -> tuple[Event, ...]:
        """The noise of ``min_honest_users`` users, and what shares say beside the sum."""
        touched = 2 * self.layout.space.levels * self.width
        ratio = more_bits(10 * self.min_honest_users * exp(-math.pi * math.pi * self.share * self.share))
        delta = price(self.slots * power(2.0, -self.security), self.budget.mu)
        declared = more_bits_within(delta, self.budget.delta)
        return (Event(self.mechanism, self.budget, touched, self.sigma, declared, ratio=ratio),)

    @cached_property
    def stamp(self) -> int:
        """64 bits that tell this question from any other."""
        return stamp(self)

    def bundled(self, arrays: BundleArrays) -> dict[str, Any]:
        ends = [0, *accumulate(places * self.width for places in self.layout.places)]
        levels = [{"at": ends[level], **self.layout.bundled(level)} for level in range(self.layout.space.levels)]
        return {
            "kind": "shares",
            "slots": self.slots,
            "shares": self.each,
            "bits": self.bits,
            "width": self.width,
            "dtype": f"u{self.share_type.itemsize}",
            "shift": self.shift,
            "sigma": self.share,
            "levels": levels,
        }

    def encode(self, items: Ints | BucketedVectors, users: Ids, rng: NoiseRng) -> Shares:
        """Algorithm 10, for users (n,), every one with a share of the noise."""
        out = np.empty((len(users), self.slots, self.each), self.share_type)
        placed, step = self.layout.placed(items), max(1, HELD // max(1, self.messages))
        for start in range(0, len(users), step):
            some = slice(start, start + step)
            numbers = self._numbers([(where[some], values[some]) for where, values in placed])
            numbers += rng.child("noise").discrete_gaussian_per_user(users[some], self.share, self.slots)
            words = rng.child("shares").words(users[some], self.slots * (self.each - 1))
            out[some] = split(to_words(numbers), words.reshape(*numbers.shape, self.each - 1), self.bits)
        slots = np.broadcast_to(np.arange(self.slots, dtype=np.uint32)[:, None], out.shape)
        return Shares(self.stamp, slots.reshape(-1), out.reshape(-1))

    def _numbers(self, placed: list[tuple[Ints, Ints]]) -> Ints:
        """Numbers that each user adds to each slot (n, slots), without noise."""
        columns = list[Ints]()
        for (where, values), places in zip(placed, self.layout.places, strict=True):
            number = np.zeros((len(where), places + 1, self.width), np.int64)
            number[np.arange(len(where)), where] = values << np.int64(self.shift)  # -1: the last place, cut off below
            columns.append(number[:, :-1].reshape(len(where), -1))
        return np.concatenate(columns, axis=1)

    def absorb(self, report: Shares) -> Mixed:
        """Algorithm 11, line 3: the sum of every slot's shares, of all users' messages or of some, in any order.

        Raises:
            Refused: no users have sent these.
        """
        self._check(report)
        counts = np.bincount(report.slots, minlength=self.slots).astype(np.int64, copy=False)
        return Mixed(added_up(report.slots, report.shares, self.slots, self.bits), counts)

    def _check(self, report: Shares) -> None:
        slots, shares = report.slots, report.shares
        if (
            slots.dtype != np.uint32
            or shares.dtype != self.share_type
            or slots.ndim != 1
            or slots.shape != shares.shape
        ):
            raise Refused(f"messages of '{self.mechanism}' are two lines of one length, uint32 and {self.share_type}")
        if len(slots) and report.question != self.stamp:
            raise Refused("these messages answer another question: another plan, seed, space or budget")
        if len(slots) and (int(slots.max()) >= self.slots or int(shares.max()) >> self.bits):
            raise Refused(f"a message of '{self.mechanism}' is in no slot, or not in the ring: no encoder sends that")

    def decode(self, summary: Mixed, rng: NoiseRng) -> LookupTable | Unfolded:
        """Algorithm 11, lines 4 to 6. Draws nothing, but noise that simulated users owe.

        Raises:
            Refused: messages of whole users are missing, or there are more users than the ring has room for.
        """
        users = summary.users(self.each)
        if users > CROWD * self.people:
            raise Refused(
                f"'{self.mechanism}' was planned for {self.people} users and has room for "
                f"{CROWD * self.people}: {users} sent messages"
            )
        words = summary.vector
        if summary.owed:
            together = self.share * math.sqrt(summary.owed)
            words = words + to_words(rng.child("noise").discrete_gaussian(together, self.slots))
        values = to_integers(words, self.bits).astype(np.float64) * (self.unit * 2.0**-self.shift)
        one = (self.width,) if self.bound else ()
        space = attrs.evolve(self.layout.space, sizes=self.layout.places, nested=False)
        table = lookup_table(values.reshape(-1, *one), space, self.deviation)
        return Unfolded(table, self.layout) if any(self.layout.hashed) else table

    def whole(self, report: Shares) -> Bools:
        """Which users (n,) sent the right number of shares of every slot, and no others, to this question."""
        users = len(report.slots) // self.messages
        if report.question != self.stamp:
            return np.zeros(users, bool)
        slots = np.sort(report.slots.reshape(users, self.messages), axis=1)
        inside = (report.shares.astype(np.uint64) >> np.uint64(self.bits)).reshape(users, self.messages) == 0
        right = slots == np.repeat(np.arange(self.slots, dtype=slots.dtype), self.each)
        return np.asarray((right & inside).all(axis=1))

    def pooled(self, items: Ints | BucketedVectors, users: Ids, rng: NoiseRng) -> Mixed:
        """What ``absorb`` makes of the shuffled messages of all these users, in law, without any message.

        The sum of k users' noise is, up to a factor e^(+-10^-1000), one discrete Gaussian number of k times the
        variance: it is drawn by ``decode``, once for all users.
        """
        totals = [
            totals_of(where, values, size)
            for (where, values), size in zip(self.layout.placed(items), self.layout.places, strict=True)
        ]
        vector = np.concatenate([level.ravel() for level in totals]) << np.int64(self.shift)
        counts = np.full(self.slots, len(users) * self.each, np.int64)
        return Mixed(to_words(vector), counts, len(users))


def added_up(slots: AnyArray, shares: AnyArray, size: int, bits: int) -> Ids:
    """The shares of every slot (size,), added up modulo 2^64: exact, since limbs of ``LIMB`` bits stay below 2^53."""
    total, limb = np.zeros(size, np.uint64), np.uint64(2**LIMB - 1)
    for low in range(0, bits, LIMB):
        part = (shares.astype(np.uint64, copy=False) >> np.uint64(low)) & limb
        total += np.bincount(slots, weights=part, minlength=size).astype(np.uint64) << np.uint64(low)
    return total
