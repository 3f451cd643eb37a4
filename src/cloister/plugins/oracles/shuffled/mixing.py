"""Split-and-mix, Algorithms 9 to 11: the users' and the server's half of a question.

Guarantee: see ``split_and_mix``. Source: Chang, Ghazi, Kumar, Manurangsi 2021, appendix C.
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
from cloister.core.reproducible_math import ceil_log2, exp, more_bits, more_bits_within, power
from cloister.noise.channel import totals_of
from cloister.plugin import (
    AnyArray,
    Bools,
    Bound,
    BucketedVectors,
    Budget,
    BundleArrays,
    Event,
    Ids,
    Ints,
    InvalidInput,
    LookupTable,
    NoiseRng,
    Refused,
    lookup_table,
    stamp,
)
from cloister.plugins.oracles.shuffled.hashed_buckets import Layout, Unfolded
from cloister.plugins.oracles.shuffled.secrecy import MAX_SHARES, delta_of_distance, enough_shares

CROWD = 4
"""Multiple of the planned users whose numbers fit in the ring; more users are refused."""

FAR = 64
"""Standard deviations of noise that fit in the ring: more has probability below e^-2000."""

MAX_BITS = 62
"""Limit of the ring's bits, so that numbers and their signs fit in a word."""

LIMB = 24
"""Bits that are added up at once, exactly, in float64: up to 2^29 shares per slot."""

HELD = 2**21
"""Shares per batch (16 MB)."""

COLUMNS = ("question", "slot", "share")


@final
@attrs.frozen(eq=False)
class Shares:
    """Messages of users: shares, and the slots of the numbers they are shares of. Nothing links them to users.

    Args:
        question: stamp of the channel that encoded them.
        slots: (messages,) uint32.
        shares: (messages,) uint32 or uint64.
    """

    question: int
    slots: AnyArray = attrs.field(repr=False)
    shares: AnyArray = attrs.field(repr=False)

    def columns(self) -> dict[str, AnyArray]:
        """Return arrays with one entry per message."""
        question = np.broadcast_to(np.uint64(self.question), len(self.slots))
        return dict(zip(COLUMNS, (question, self.slots, self.shares), strict=True))

    @classmethod
    def load(cls, columns: Mapping[str, AnyArray]) -> Shares:
        """Return messages from untrusted arrays, in any order. ``absorb`` checks later whether they are possible.

        Raises:
            Refused: names, types or shapes are not those that ``columns`` gives.
        """
        if sorted(columns) != sorted(COLUMNS):
            raise Refused(f"shares have the columns {', '.join(COLUMNS)}, not {', '.join(sorted(columns))}")
        question, slots, shares = (columns[name] for name in COLUMNS)
        if any(c.ndim != 1 or len(c) != len(slots) for c in (question, slots, shares)):
            raise Refused("the columns of shares are not one-dimensional, or differ in length")
        if question.dtype != np.uint64 or slots.dtype != np.uint32 or shares.dtype not in (np.uint32, np.uint64):
            raise Refused("the columns of shares have types that no encoder sends")
        if len(question) and (question != question[0]).any():
            raise Refused("the shares answer several questions: load those of each question separately")
        return cls(int(question[0]) if len(question) else 0, slots, shares)


def split(values: Ids, words: Ids, bits: int) -> Ids:
    """Split numbers (...) into shares (..., m) with secret words (..., m - 1): Algorithm 9.

    They are uniform but for their sum modulo 2^bits. That divides 2^64, so the lowest bits of a uniform word are
    uniform, and sums may wrap.
    """
    mask = np.uint64(2**bits - 1)
    last = (values - words.sum(axis=-1, dtype=np.uint64))[..., None]
    cut: Ids = np.concatenate([words, last], axis=-1) & mask
    return cut


@final
@attrs.frozen(eq=False)
class Mixed:
    """Summary of messages: every slot's sum modulo 2^64, and its number of shares.

    Args:
        vector: words (slots,).
        counts: (slots,).
        owed: number of users, simulated by ``pooled``, whose noise is not drawn yet.
    """

    vector: Ids = attrs.field(repr=False)
    counts: Ints = attrs.field(repr=False)
    owed: int = 0

    def merge(self, other: Mixed) -> Mixed:
        return Mixed(self.vector + other.vector, self.counts + other.counts, self.owed + other.owed)

    def users(self, shares_per_slot: int) -> int:
        """Return the number of users who sent these.

        Raises:
            Refused: some slots lack shares of some users.
        """
        users, remainder = divmod(int(self.counts[0]), shares_per_slot)
        if remainder or (self.counts != users * shares_per_slot).any():
            raise Refused(
                f"every user sends {shares_per_slot} shares of each of {len(self.counts)} numbers: some are missing, "
                "or some too many"
            )
        return users


@final
@attrs.frozen
class MixingChannel:
    """Channel in which every user sends m shares of every slot, a coordinate of a place.

    The ring wraps with probability below e^-2000: with N <= ``CROWD`` times the planned users and vectors of norm at
    most B (1 for counts), a slot is at most N 2^shift B plus noise below ``FAR`` standard deviations, which is less
    than 2^(bits - 1).

    Args:
        mechanism, budget: declared to the accountant.
        layout: of buckets in places.
        bound: of the vectors; None for counts.
        people: public number of users, all of whom are asked.
        min_honest_users: number of users who must draw their noise and mix.
        sigma: standard deviation of their noise together, in shifted integers.
        shift: bits by which numbers are scaled up before the noise.
        unit: value of one lattice step in the caller's units (1 for counts).
        security: each slot's shares reveal its sum and no more, up to a statistical distance of 2^-security.
        most_messages: limit of messages per user.

    Raises:
        InvalidInput: the ring, or the number of messages, would be too large.
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
                f"'{self.mechanism}' would ask every user for {self.messages} messages ({self.shares_per_slot} of each "
                f"of {self.slots} numbers), {self.message_bytes * self.messages / 1e6:.3g} MB: the limit is "
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
    def shares_per_slot(self) -> int:
        """Number m of shares of every slot from every user.

        Raises:
            InvalidInput: no number of shares hides so few users.
        """
        shares = enough_shares(self.min_honest_users, self.bits, self.security)
        if shares is None:
            raise InvalidInput(
                f"'{self.mechanism}' cannot hide {self.min_honest_users} honest users among each other, even with "
                f"{MAX_SHARES} shares per number: it needs more users or a larger delta"
            )
        return shares

    @property
    def messages(self) -> int:
        """Number of messages from every user."""
        return self.slots * self.shares_per_slot

    @property
    def share_type(self) -> np.dtype[Any]:
        """Type of a share."""
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
        """One event: the noise of ``min_honest_users`` users, and what shares reveal beside the sum."""
        touched = 2 * self.layout.space.levels * self.width
        ratio = more_bits(10 * self.min_honest_users * exp(-math.pi * math.pi * self.share * self.share))
        delta = delta_of_distance(self.slots * power(2.0, -self.security), self.budget.mu)
        declared = more_bits_within(delta, self.budget.delta)
        return (Event(self.mechanism, self.budget, touched, self.sigma, declared, ratio=ratio),)

    @cached_property
    def stamp(self) -> int:
        """Fingerprint of the question, 64 bits."""
        return stamp(self)

    def bundled(self, arrays: BundleArrays) -> dict[str, Any]:
        ends = [0, *accumulate(places * self.width for places in self.layout.places)]
        levels = [{"at": ends[level], **self.layout.bundled(level)} for level in range(self.layout.space.levels)]
        return {
            "kind": "shares",
            "slots": self.slots,
            "shares": self.shares_per_slot,
            "bits": self.bits,
            "width": self.width,
            "dtype": f"u{self.share_type.itemsize}",
            "shift": self.shift,
            "sigma": self.share,
            "levels": levels,
        }

    def encode(self, items: Ints | BucketedVectors, users: Ids, rng: NoiseRng) -> Shares:
        """Encode the items of users (n,), each with a share of the noise: Algorithm 10."""
        out = np.empty((len(users), self.slots, self.shares_per_slot), self.share_type)
        placed, step = self.layout.placed(items), max(1, HELD // max(1, self.messages))
        for start in range(0, len(users), step):
            block = slice(start, start + step)
            numbers = self._numbers([(place[block], values[block]) for place, values in placed])
            numbers += rng.child("noise").discrete_gaussian_per_user(users[block], self.share, self.slots)
            words = rng.child("shares").words(users[block], self.slots * (self.shares_per_slot - 1))
            out[block] = split(to_words(numbers), words.reshape(*numbers.shape, self.shares_per_slot - 1), self.bits)
        slots = np.broadcast_to(np.arange(self.slots, dtype=np.uint32)[:, None], out.shape)
        return Shares(self.stamp, slots.reshape(-1), out.reshape(-1))

    def _numbers(self, placed: list[tuple[Ints, Ints]]) -> Ints:
        """Return the numbers that each user adds to each slot (n, slots), without noise."""
        columns = list[Ints]()
        for (place, values), places in zip(placed, self.layout.places, strict=True):
            number = np.zeros((len(place), places + 1, self.width), np.int64)
            number[np.arange(len(place)), place] = values << np.int64(self.shift)  # -1: the last place, cut off below
            columns.append(number[:, :-1].reshape(len(place), -1))
        return np.concatenate(columns, axis=1)

    def absorb(self, report: Shares) -> Mixed:
        """Add up every slot's shares, of any part of the users' messages, in any order: Algorithm 11, line 3.

        Raises:
            Refused: no encoder sends these.
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
            raise Refused(f"messages of '{self.mechanism}' are not uint32 and {self.share_type} arrays of one length")
        if len(slots) and report.question != self.stamp:
            raise Refused("these messages answer another question: another plan, seed, space or budget")
        if len(slots) and (int(slots.max()) >= self.slots or int(shares.max()) >> self.bits):
            raise Refused(f"a message of '{self.mechanism}' is in no slot, or not in the ring: no encoder sends that")

    def decode(self, summary: Mixed, rng: NoiseRng) -> LookupTable | Unfolded:
        """Return the table of a summary: Algorithm 11, lines 4 to 6. Draws only the noise that simulated users owe.

        Raises:
            Refused: some users' messages are incomplete, or there are more users than fit in the ring.
        """
        users = summary.users(self.shares_per_slot)
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
        """Return True (n,) for users who sent the right number of shares of every slot, and nothing else."""
        users = len(report.slots) // self.messages
        if report.question != self.stamp:
            return np.zeros(users, bool)
        slots = np.sort(report.slots.reshape(users, self.messages), axis=1)
        inside = (report.shares.astype(np.uint64) >> np.uint64(self.bits)).reshape(users, self.messages) == 0
        right = slots == np.repeat(np.arange(self.slots, dtype=slots.dtype), self.shares_per_slot)
        return np.asarray((right & inside).all(axis=1))

    def pooled(self, items: Ints | BucketedVectors, users: Ids, rng: NoiseRng) -> Mixed:
        """Return what ``absorb`` returns for the shuffled messages of these users, in law, without any message.

        The sum of k users' noise is, up to a factor e^(+-10^-1000), one discrete Gaussian of k times the variance;
        ``decode`` draws it, once for all users.
        """
        totals = [
            totals_of(place, values, size)
            for (place, values), size in zip(self.layout.placed(items), self.layout.places, strict=True)
        ]
        vector = np.concatenate([level.ravel() for level in totals]) << np.int64(self.shift)
        counts = np.full(self.slots, len(users) * self.shares_per_slot, np.int64)
        return Mixed(to_words(vector), counts, len(users))


def added_up(slots: AnyArray, shares: AnyArray, size: int, bits: int) -> Ids:
    """Add up the shares of every slot (size,) modulo 2^64, exactly: sums of ``LIMB`` bits stay below 2^53."""
    total, limb = np.zeros(size, np.uint64), np.uint64(2**LIMB - 1)
    for low in range(0, bits, LIMB):
        part = (shares.astype(np.uint64, copy=False) >> np.uint64(low)) & limb
        total += np.bincount(slots, weights=part, minlength=size).astype(np.uint64) << np.uint64(low)
    return total
