"""Counts over any number of buckets from a few short messages per user, nearly as exact as a curator's.

Every user sends, for each level, one message (v, h_v(x)): a private uniform number v, which names a public hash into b
values, and the hash of her bucket x; and t *blanket* messages (v, y), both uniform, that look the same. In no bucket
she sends one blanket message more.

Guarantee (Shuffled; replace one row, or have none; (eps, delta)): of ``people`` users at least ``min_honest_users`` =
ceil(honest * people) send their blanket messages and do not say which they are. Then all shuffled messages together are
(eps, delta)-DP at the budget's eps and delta: below is the exact divergence for M = t * least, its proof for
any hash, and the composition over levels; b is the largest for which it holds, and no asymptotic bound enters. If the
shuffler is not honest nothing holds: her one message is among t others.

Unbiased, over v: of N messages at a level from n = N / (1 + t) users, N_x have h_v(x) = y. Those of other users, and
all blanket messages, do with chance 1 / b, independently. Estimate (N_x - N / b) / (1 - 1 / b), variance (N - n_x) / b
/ (1 - 1 / b) for a bucket with n_x rows. With M / b = lambda, which is 40 to 50 at (1, 1e-6) whatever n and the domain
are, the standard deviation is sqrt(lambda (1 + 1 / (honest t))) and more: 8 rows; levels make lambda grow in
proportion.

Why this protocol: of the published ones it is the one whose messages do not grow with the domain, with error that does
not either. Count sketches with public buckets (Ghazi, Golowich, Kumar, Pagh, Velingker 2021) take poly-logarithmically
many messages, with large constants; blankets of each bucket (Balcer, Cheu 2020) and bits of each bucket (Cheu, Zhilyaev
2022) as many as there are buckets, or hashes of them. Luo, Wang and Yi (2022) send one message and o(1) blankets; here
t is 4 by default, for an error 10% above that of many, and hashes are those of ``oracles.local.hashing``, of 63-bit
ids.

For a few hundred buckets ``split-and-mix-counts`` is more exact, at more messages; it composes with other Gaussian
noise without loss.

**The blanket** that a hash value hides in is M uniform messages. A user in bucket x sends (v, h_v(x)), v a private
uniform number that names a public hash into b values. A *blanket* message is (v, y), both uniform, and so is what a
user in no bucket sends. Let her message be mixed with M blanket messages of honest users. (What other messages there
are is drawn without her, and can be taken off by whoever knows it.)

**Exactly.** Against M + 1 blanket messages, her law for x has the density b N_x / (M + 1), N_x the number of messages
(v, y) with h_v(x) = y. So with N messages drawn uniformly, and e = e^eps, for rows x and x'

    delta(eps) = b / (M + 1) * E[(N_x - e N_x')_+],

a sum of M + 1 independent terms that are 1, -e or 1 - e with chances (1 - c) / b, (1 - c) / b and c / b, c the chance
that h_v(x) = h_v(x').

**Any hash.** More c takes equal chances from 1 and -e, and gives them to 1 - e and 0, which lie between and have the
same sum: smaller in convex order, which sums keep. So c = 0 is the worst, whatever the hash family is. A user in no
bucket is the mean of b hash functions that are constant, so that the hockey-stick divergence to and from her law is no
larger, by convexity.

**The worst pair.** c = 0: with K ~ Bin(M, 2 / b) blanket messages of either kind, T = K + 1 and A = 1 + Bin(K, 1/2)
against Bin(K, 1/2) of them of x: the loss is log(A / (T - A)) (infinite at A = T). It is a dominating pair, so that
levels, which are independent, compose by convolution of the loss's law (Zhu, Dong, Wang 2022). Fewer T are worse
(another fair coin is post-processing), so numbers of T are binned downwards; losses are rounded up, by more than values
that are uniform up to 2^-48 can make out; what is cut off counts as infinite.

Source: the protocol: Luo, Wang, Yi 2022 (Frequency estimation in the shuffle model with almost a single message);
blankets: Balle, Bell, Gascon, Nissim 2019; the proof is derived above.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import ClassVar

import numpy as np

from cloister.core.buckets import QuestionContext, Space
from cloister.core.budget import Budget, Measure
from cloister.core.errors import InvalidInput
from cloister.core.registry.components import component, option
from cloister.core.reproducible_math import more_bits_within
from cloister.core.trust import Shuffled
from cloister.core.types import Floats, Ints
from cloister.plugins.oracles.local.hashing import LARGEST
from cloister.plugins.oracles.shuffled.tagged import BlanketChannel

NAME = "blanket-histogram"
DELTA_BITS = 10
"""Bits of the delta that is declared: those of a transform differ between machines from the 20th on."""

CHOICES = tuple(2**i for i in range(2, 13))
MAX_BLANKETS = CHOICES[-1]
ENOUGH = 16
"""Hash values: with so many, a message that says nothing of a bucket agrees with it one time in 16."""


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
        help="at least this share of the planned users send their blanket messages",
    )
    blankets: int | None = option(
        default=None,
        low=1,
        high=MAX_BLANKETS,
        unit="messages",
        help="uniform messages that every user sends beside her own, per level; none: 4, more where few users must "
        "hide each other",
    )

    def open(self, space: Space, budget: Budget, context: QuestionContext) -> BlanketChannel:
        if not budget.delta > 0:
            raise InvalidInput(
                f"'{NAME}' spends a delta of its own, and its budget has none: pass delta (less than one over the "
                f"number of users)"
            )
        if context.rows < context.people:
            raise InvalidInput(
                f"'{NAME}' asks everyone: divide the budget and not the users (option share=budget of the method)"
            )
        least, epsilon = math.ceil(self.honest * context.people), budget.epsilon

        def enough(blankets: int) -> bool:
            return delta_of(epsilon, blankets * least, ENOUGH, space.levels) <= budget.delta

        blankets = self.blankets or next((t for t in CHOICES if enough(t)), MAX_BLANKETS)
        values = most_values(epsilon, budget.delta, blankets * least, space.levels, LARGEST)
        if values < 2:
            raise InvalidInput(
                f"'{NAME}' cannot hide one of {least} honest users with {blankets} blanket messages of each: give "
                f"this question a larger share of the budget, or set the option blankets"
            )
        delta = delta_of(epsilon, blankets * least, values, space.levels)
        delta = more_bits_within(delta, budget.delta, DELTA_BITS)
        seed = context.seed.child("hash")
        return BlanketChannel(NAME, budget, space, context.people, least, blankets, values, delta, seed)

    def variance(self, space: Space, budget: Budget, context: QuestionContext) -> float:
        return self.open(space, budget, context).deviation ** 2


BINS = 128
"""Bins of the number of messages of either kind."""

REACH = 8.5
"""Standard deviations; what is beyond counts as lost."""

FINE, COARSE = 1000, 15
"""Steps of all levels' rounding together in epsilon: as many as memory allows, and the fewest."""

MOST = 2**25
"""Most steps of the composed law: half a gigabyte while it is transformed."""

NEAR = 100
"""A search stops so near."""

ROUNDING = 1e-13
"""More than floating-point transforms may be off."""


@lru_cache(1024)
def delta_of(epsilon: float, blankets: int, values: int, levels: int = 1) -> float:
    """The delta of one user's messages, one on each level, rounded up.

    Args:
        epsilon: nats, > 0.
        blankets: M, on each level.
        values: b >= 2.
        levels: how many.
    """
    fine = FINE
    step = epsilon / (fine * levels)
    lowest, masses = losses(blankets, values, step)
    while len(masses) * levels > MOST:  # losses are rounded up to coarser steps, which never makes a delta too small
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
    """The law of one level's loss in steps, rounded up: the lowest, and the chance of each from there. What is missing
    is infinite."""
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
    """The same with K = k messages of either kind, beside hers: losses in steps, sorted, each once, and their
    chances."""
    from scipy.special import bdtr, bdtrc, gammaln

    spread = REACH * math.sqrt(k) / 2 + REACH
    first, last = max(0, math.floor(k / 2 - spread)), min(k - 1, math.ceil(k / 2 + spread))
    heads = np.arange(first, last + 1, dtype=np.float64)
    logs = math.lgamma(k + 1) - k * math.log(2) - gammaln(heads + 1) - gammaln(k - heads + 1)
    loss = np.ceil(np.log((heads + 1) / (k - heads)) / step + 1e-9).astype(np.int64)
    found = np.asarray(np.bincount(loss - loss[0], weights=np.exp(logs)), np.float64)
    found[0] += bdtr(first - 1, k, 0.5) if first else 0.0  # smaller losses count as this one
    at = loss[np.append(True, loss[1:] > loss[:-1])]
    # logarithms of large factorials are off by as much as 1e-8
    return at, found[at - loss[0]] * ((1 - bdtrc(last, k, 0.5)) / found.sum())


def _composed(masses: Floats, levels: int) -> Floats:
    """The law of the sum of as many independent losses."""
    if levels == 1:
        return masses
    size = levels * (len(masses) - 1) + 1
    padded = 2 ** math.ceil(math.log2(size))
    found: Floats = np.fft.irfft(np.fft.rfft(masses, padded) ** levels, padded)[:size]
    return found


@lru_cache(256)
def most_values(epsilon: float, delta: float, blankets: int, levels: int, limit: int) -> int:
    """The most hash values b, less a hundredth, at which messages are (epsilon, delta)-DP, at most ``limit``; 1 if not
    even two are."""

    def private(values: int) -> bool:
        return delta_of(epsilon, blankets, values, levels) <= delta

    if private(limit):
        return limit
    good, bad = 1, limit
    while bad - good > max(1, good // NEAR):
        middle = math.isqrt(good * bad) if bad > 2 * good else (good + bad) // 2
        good, bad = (middle, bad) if private(middle) else (good, middle)
    return good
