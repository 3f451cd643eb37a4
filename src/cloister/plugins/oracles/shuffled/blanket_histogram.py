"""Counts over any number of buckets from a few short messages per user, nearly as accurate as a curator's.

For each level every user sends one message (v, h_v(x)): a private uniform number v, which names a public hash into b
values, and the hash of her bucket x; and t *blanket* messages (v, y), both uniform, which look the same. A user in no
bucket sends one blanket message more instead.

Guarantee (Shuffled; replace one row, or have none; (eps, delta)): of ``people`` users at least ``min_honest_users`` =
ceil(honest * people) send their blanket messages and do not reveal which they are. Then all shuffled messages together
are (eps, delta)-DP at the budget's eps and delta. Below are the exact divergence for M = t * min_honest_users, its
proof for any hash, and the composition over levels; b is the largest for which it holds, without asymptotic bounds. If
the shuffler is not honest nothing holds: a user's message is among t others only.

Unbiased, over v: of N messages at a level from n = N / (1 + t) users, N_x have h_v(x) = y. Those of other users, and
all blanket messages, do with probability 1 / b, independently. Estimate (N_x - N / b) / (1 - 1 / b), variance
(N - n_x) / b / (1 - 1 / b) for a bucket with n_x rows. With M / b = lambda, which is 40 to 50 at (1, 1e-6) whatever n
and the domain are, the standard deviation is sqrt(lambda (1 + 1 / (honest t))) and more: 8 rows. lambda grows in
proportion to the number of levels.

Other protocols: this is the published one in which neither the messages nor the error grow with the domain. Count
sketches with public buckets (Ghazi, Golowich, Kumar, Pagh, Velingker 2021) take poly-logarithmically many messages,
with large constants; blankets of each bucket (Balcer, Cheu 2020) and bits of each bucket (Cheu, Zhilyaev 2022) as many
as there are buckets, or hashes of them. Luo, Wang and Yi (2022) send one message and o(1) blankets; here t is 4 by
default, for an error 10% above that of many, and hashes are those of ``oracles.local.hashing``, of 63-bit ids.

For a few hundred buckets ``split-and-mix-counts`` is more accurate, with more messages; it composes with other Gaussian
noise without loss.

**Exact divergence.** Let a user's message be mixed with M blanket messages of honest users. (Other messages are drawn
independently of hers, and whoever knows them can remove them.) Against M + 1 blanket messages, her law for x has the
density b N_x / (M + 1), N_x the number of messages (v, y) with h_v(x) = y. So with M + 1 messages drawn uniformly, and
e = e^eps, for rows x and x'

    delta(eps) = b / (M + 1) * E[(N_x - e N_x')_+],

where N_x - e N_x' is a sum of M + 1 independent terms that are 1, -e or 1 - e with probabilities (1 - c) / b,
(1 - c) / b and c / b, c the probability that h_v(x) = h_v(x').

**Any hash.** A larger c takes equal probabilities from 1 and -e, and gives them to 1 - e and 0, which lie between and
have the same sum: smaller in convex order, which sums keep. So c = 0 is the worst case, whatever the hash family is. A
user in no bucket is the mean of b hash functions that are constant, so that the hockey-stick divergence to and from her
law is no larger, by convexity.

**The worst pair.** c = 0: with K ~ Bin(M, 2 / b) blanket messages of either kind, T = K + 1 and A = 1 + Bin(K, 1/2)
against Bin(K, 1/2) of them of x: the loss is log(A / (T - A)) (infinite at A = T). It is a dominating pair, so that
levels, which are independent, compose by convolution of the loss's law (Zhu, Dong, Wang 2022). Smaller T are worse
(another fair coin is post-processing), so values of T are binned downwards; losses are rounded up, by more than values
that are uniform only up to 2^-48 can change; what is cut off counts as infinite.

Source: the protocol: Luo, Wang, Yi 2022 (Frequency estimation in the shuffle model with almost a single message);
blankets: Balle, Bell, Gascon, Nissim 2019; the proof is derived above.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import ClassVar

import numpy as np

from cloister.core.reproducible_math import more_bits_within
from cloister.plugin import (
    Budget,
    Floats,
    Ints,
    InvalidInput,
    Measure,
    QuestionContext,
    Shuffled,
    Space,
    component,
    option,
)
from cloister.plugins.oracles.local.hashing import LARGEST
from cloister.plugins.oracles.shuffled.tagged import BlanketChannel

NAME = "blanket-histogram"
DELTA_BITS = 10
"""Bits of the declared delta: a transform's bits differ between machines from the 20th on."""

CHOICES = tuple(2**i for i in range(2, 13))
MAX_BLANKETS = CHOICES[-1]
ENOUGH = 16
"""Hash values that suffice: an unrelated message agrees with a bucket one time in 16."""


@component
class BlanketHistogram:
    """Counts from shuffled hash values among uniform ones, for domains of any size."""

    trust = Shuffled
    measure: ClassVar[Measure] = "pure"
    uses_delta = True
    asks_all_users = True
    honest: float = option(
        default=0.9,
        low=0.0,
        high=1.0,
        above=True,
        help="smallest share of the planned users who send their blanket messages",
    )
    blankets: int | None = option(
        default=None,
        low=1,
        high=MAX_BLANKETS,
        unit="messages",
        help="uniform messages that every user sends beside her own, per level; none: 4, or more for few users",
    )

    def open(self, space: Space, budget: Budget, context: QuestionContext) -> BlanketChannel:
        if not budget.delta > 0:
            raise InvalidInput(
                f"'{NAME}' spends delta, and its budget has none: pass delta (less than one over the number of users)"
            )
        if context.rows < context.people:
            raise InvalidInput(f"'{NAME}' asks all users: set the method's option share=budget")
        honest_users, epsilon = math.ceil(self.honest * context.people), budget.epsilon

        def enough(blankets: int) -> bool:
            return delta_of(epsilon, blankets * honest_users, ENOUGH, space.levels) <= budget.delta

        blankets = self.blankets or next((t for t in CHOICES if enough(t)), MAX_BLANKETS)
        values = max_values(epsilon, budget.delta, blankets * honest_users, space.levels, LARGEST)
        if values < 2:
            raise InvalidInput(
                f"'{NAME}' cannot hide one of {honest_users} honest users with {blankets} blanket messages of each: "
                f"give this question a larger share of the budget, or raise the option blankets"
            )
        delta = delta_of(epsilon, blankets * honest_users, values, space.levels)
        delta = more_bits_within(delta, budget.delta, DELTA_BITS)
        seed = context.seed.child("hash")
        return BlanketChannel(NAME, budget, space, context.people, honest_users, blankets, values, delta, seed)

    def variance(self, space: Space, budget: Budget, context: QuestionContext) -> float:
        return self.open(space, budget, context).deviation ** 2


BINS = 128
"""Bins of the number K of messages of either kind."""

REACH = 8.5
"""Standard deviations of K, and of its split, beyond which a loss counts as infinite."""

FINE, COARSE = 1000, 15
"""Range of epsilon over the rounding of all levels' losses together: less than ``FINE`` only if memory requires it."""

MAX_STEPS = 2**25
"""Limit of steps of the composed law: half a gigabyte while it is transformed."""

NEAR = 100
"""Inverse relative precision of the search for b."""

ROUNDING = 1e-13
"""Bound on the error of floating-point transforms."""


@lru_cache(1024)
def delta_of(epsilon: float, blankets: int, values: int, levels: int = 1) -> float:
    """Return the delta of one user's messages, one on each level, rounded up.

    Args:
        epsilon: nats, > 0.
        blankets: M, on each level.
        values: b >= 2.
        levels: number of levels.
    """
    fine = FINE
    step = epsilon / (fine * levels)
    lowest, masses = losses(blankets, values, step)
    while len(masses) * levels > MAX_STEPS:  # rounding losses up to coarser steps never makes a delta too small
        fine //= 2
        if fine < COARSE:
            return 1.0
        step = epsilon / (fine * levels)
        lowest, masses = losses(blankets, values, step)
    chances, start = _composed(masses, levels), lowest * levels
    at = (start + np.arange(len(chances))) * step
    beyond = at > epsilon
    gain = -np.expm1(epsilon - at[beyond])
    lost = 1 - float(np.sum(masses)) if levels == 1 else -math.expm1(levels * math.log(min(1.0, float(np.sum(masses)))))
    return min(1.0, float(np.maximum(chances[beyond], 0.0) @ gain) + max(0.0, lost) + ROUNDING)


def losses(blankets: int, values: int, step: float) -> tuple[int, Floats]:
    """Return the law of one level's loss in steps, rounded up: the smallest loss, and the probabilities from there on.

    What they lack to 1 is the probability of an infinite loss.
    """
    from scipy.stats import binom

    chance = min(1.0, 2 / values)
    mean, width = blankets * chance, REACH * math.sqrt(blankets * chance * (1 - chance)) + REACH
    low, high = max(1, math.floor(mean - width)), min(blankets, math.ceil(mean + width))
    if high < low:
        return 0, np.zeros(1)
    edges = np.unique(np.linspace(low, high + 1, BINS + 1).astype(np.int64))
    weights = np.diff(binom.cdf(edges - 1, blankets, chance))
    pieces = [_given(int(k), step) for k in edges[:-1]]
    lowest, highest = min(int(at[0]) for at, _ in pieces), max(int(at[-1]) + 1 for at, _ in pieces)
    total = np.zeros(highest - lowest)
    for weight, (at, p) in zip(weights, pieces, strict=True):
        total[at - lowest] += weight * p
    return lowest, total


def _given(k: int, step: float) -> tuple[Ints, Floats]:
    """Return the same law given K = k messages of either kind, beside hers: distinct losses and their probabilities."""
    from scipy.special import bdtr, bdtrc, gammaln

    spread = REACH * math.sqrt(k) / 2 + REACH
    first, last = max(0, math.floor(k / 2 - spread)), min(k - 1, math.ceil(k / 2 + spread))
    heads = np.arange(first, last + 1, dtype=np.float64)
    logs = math.lgamma(k + 1) - k * math.log(2) - gammaln(heads + 1) - gammaln(k - heads + 1)
    loss = np.ceil(np.log((heads + 1) / (k - heads)) / step + 1e-9).astype(np.int64)
    chances = np.asarray(np.bincount(loss - loss[0], weights=np.exp(logs)), np.float64)
    chances[0] += bdtr(first - 1, k, 0.5) if first else 0.0  # smaller losses count as this one
    at = loss[np.append(True, loss[1:] > loss[:-1])]
    # rescaled, since logarithms of large factorials are off by as much as 1e-8
    return at, chances[at - loss[0]] * ((1 - bdtrc(last, k, 0.5)) / chances.sum())


def _composed(masses: Floats, levels: int) -> Floats:
    """Return the law of the sum of one independent loss per level."""
    if levels == 1:
        return masses
    size = levels * (len(masses) - 1) + 1
    padded = 2 ** math.ceil(math.log2(size))
    composed: Floats = np.fft.irfft(np.fft.rfft(masses, padded) ** levels, padded)[:size]
    return composed


@lru_cache(256)
def max_values(epsilon: float, delta: float, blankets: int, levels: int, limit: int) -> int:
    """Return the largest b <= ``limit`` at which messages are (epsilon, delta)-DP, less at most 1%; 1 if none is."""

    def private(values: int) -> bool:
        return delta_of(epsilon, blankets, values, levels) <= delta

    if private(limit):
        return limit
    good, bad = 1, limit
    while bad - good > max(1, good // NEAR):
        middle = math.isqrt(good * bad) if bad > 2 * good else (good + bad) // 2
        good, bad = (middle, bad) if private(middle) else (good, middle)
    return good
