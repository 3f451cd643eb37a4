"""Privacy amplification by shuffling: the cost of n reports of an eps0-DP randomiser, once shuffled.

Setting. n users send one report each, all by one randomiser R that is eps0-DP (pure, replace one input), with coins of
their own; a shuffler permutes the reports. Two inputs differ in one user, who has x or x'. Write P, P' for her two
distributions, p = e^eps0, e = e^eps.

**A blanket.** Let w be a measure with w <= R(z) for every input z. Every other user's report is, with probability |w|,
one from w / |w|, and the changed user's is worth P / w or P' / w among them. Given the other users' remaining reports,
the reports of the users in the blanket and hers are all that matters, and their multiset has density sum_j (P / w)(y_j)
/ n under n draws from w, so that (Balle, Bell, Gascon, Nissim 2019)

    delta(eps) <= E[(X_1 + .. + X_n)_+] / n,
    X_i independent: (P - e P')(Y) / w(Y) with Y from w, probability |w|;  0 otherwise.

The mean of X_i is 1 - e, whatever R is. So the distribution of X_i that is largest in convex order is the worst, since
convex order is kept by sums and the positive part is convex.

**Any randomiser.** Where P > P' write (P, P') = u (p, 1) + v (1, 1), elsewhere u' (1, p) + v' (1, 1): u, v >= 0 as the
ratio is at most p. As P, P' <= p R(z), w = max(P, P') / p is a blanket. With a = |u| = |u'| <= 1 / (p + 1), the
positive part being sublinear, the worst X_i takes

    p - e and -(p e - 1) with probability a each,   -p (e - 1) with probability (1 - (p + 1) a) / p,   0 otherwise.

More a adds probability at the outer two of the four values and takes it from the inner two, at the same mean: it is
larger in convex order. So a = 1 / (p + 1), randomised response on two values, is the worst of all, and

    delta(eps) <= E[((p - e) N - (p e - 1) N')_+] / n,      (N, N', rest) ~ Multinomial(n; 1/(p+1), 1/(p+1), rest).

This is the bound of the 'stronger clone' (Feldman, McMillan, Talwar 2023, Theorem 3.1): n - 1 others, each a clone of
either value with probability 1 / (p + 1). Their errata restrict its proof, for users with different randomisers who see
what came before, to some randomisers; for one randomiser, no interaction, the argument above has no such restriction.
It is checked by enumeration.

**Plain k-ary randomised response** (also on a public hash, the hash being part of the report; also from users in no
bucket, who send a uniform value): w = 1 / (p + k - 1) on each value, and

    p - e and -(p e - 1) with probability 1 / (p + k - 1) each,   -(e - 1) with (k - 2) / (p + k - 1),   0 otherwise.

Inputs of one hash, or none, are smaller in convex order by the same count of signs, and so are more values k.

**Mixtures.** A whole encoder which first draws a role, then uses the randomiser of that role, is one eps0-DP
randomiser, with eps0 the largest of its roles': the general bound holds for it. The k-ary bound does so only if every
user answers that question.

**What must hold**: ``users`` counts those who answered honestly, the changed one among them, apart from whom anybody
may collude; reports carry no trace of their senders; the shuffle is uniform. If the shuffler is not honest, eps0 holds.

Figures err to the safe side (below 1e-28 by much): where the sums are binned the fewest clones of a bin stand for all
(more clones are post-processing), what is cut off is counted whole, and one part in 10^6 covers rounding (the tests
find less than 10^-9).

Source: derived above; Balle, Bell, Gascon, Nissim 2019, section 5; Feldman, McMillan, Talwar 2021 and 2023; Wang et al.
2024 (variation-ratio reduction); Shaked, Shanthikumar: Stochastic Orders, 3.A.44 (count of signs) and 3.A.12 (sums).

**The sums** are hockey-stick divergences of counts of clones, as upper bounds. With n users, E[(X_1 + .. + X_n)_+] / n
is a sum over the number c of clones among the n - 1 others, of probability |w| each, of

    h(c) = |w| / m * E[(X_1 + .. + X_m)_+ | all of X_1 .. X_m in the blanket],     m = c + 1,

the divergence given c clones. It falls with c, since whoever sees the rest can draw one more clone. So the fewest
clones of a bin may stand for all of them, and with 1,000 bins that costs next to nothing.
"""

from __future__ import annotations

import functools
import math

import numpy as np

from cloister.accounting.conversions import checked_amount, checked_delta, checked_epsilon, largest, smallest
from cloister.core.errors import InvalidInput
from cloister.core.types import Floats

BINS = 1024
"""Largest number of bins for the number of clones."""

CELLS = 16_000
"""Largest number of pairs of counts for k-ary response. Beyond it, the general bound is used."""
MIN_BINS = 24
"""Smallest number of bins for k-ary response. With fewer, the general bound is used."""

REACH = 12.0
"""Standard deviations that the bins cover either way; the rest falls in the outer bins."""


def general_delta(local: float, epsilon: float, users: int) -> float:
    """Return E[((p - e) N - (p e - 1) N')_+] / n, N, N' of probability 1 / (p + 1) each: the bound for any randomiser.

    Given m = N + N', N is binomial with probability 1/2 and the sum is (p - 1)(e + 1) (N - K m),
    K = 1/2 + tanh(eps / 2) / (2 tanh(eps0 / 2)).
    """
    clones, chances = bins(users - 1, 2 / (math.exp(local) + 1), BINS)
    m = clones + 1
    beyond = m * math.tanh(epsilon / 2) / (2 * math.tanh(local / 2))
    scale = 2 * math.tanh(local / 2) * (math.exp(epsilon) + 1)
    return float(np.sum(chances * scale / m * excess(m, beyond)))


def response_delta(local: float, epsilon: float, users: int, values: int) -> float:
    """Return the bound for k-ary response; infinity if the sum would be too long.

    That is E[((p - e) N - (p e - 1) N' - (e - 1) N'')_+] / n. Given m in the blanket, C = N + N' is binomial with
    probability 2 / k; given that, N with 1/2. With C = c the sum is (p - 1)(e + 1) (N - c / 2 - beyond),
    beyond = (e - 1)((p - 1) c / 2 + m) / ((p - 1)(e + 1)).
    """
    from scipy.special import betainc

    p, e = math.exp(local), math.exp(epsilon)
    scale, chance = (p - 1) * (e + 1), values / (p + values - 1)
    mean = 2 * users / (p + values - 1)
    room = REACH * math.sqrt(mean) + _MIN_ROOM
    low, high = max(0, math.floor(mean - room)), min(users, math.ceil(mean + room))
    bins_left = CELLS // (high - low + 1)
    if bins_left < MIN_BINS:
        return math.inf
    clones, weights = bins(users - 1, chance, bins_left)
    keep = weights > _NEGLIGIBLE
    lost = float(weights[~keep].sum())
    m, pairs = (clones[keep] + 1)[:, None], np.arange(low, high + 1, dtype=float)
    shares = np.exp(_log_binomial(m, pairs, 2 / values))
    excesses = shares * excess(np.broadcast_to(pairs, shares.shape), (e - 1) * ((p - 1) * pairs / 2 + m) / scale)
    outside = np.where(m > high, betainc(high + 1.0, np.maximum(m - high, 1.0), 2 / values), 0.0)
    if low > 0:
        below = betainc(np.maximum(m - low + 1, 1.0), float(low), 1 - 2 / values)
        outside = outside + np.where(m >= low, below, 1.0)
    per_bin = excesses.sum(axis=1) / m[:, 0] + outside[:, 0] / 2
    return scale * chance * (float(np.sum(weights[keep] * per_bin)) + lost / 2)


_MIN_ROOM = 40.0
_NEGLIGIBLE = 1e-40


def bins(trials: int, chance: float, max_bins: int) -> tuple[Floats, Floats]:
    """Return bins of a binomial distribution, about ``max_bins`` at most: their least counts and probabilities."""
    from scipy.special import betainc

    mean = trials * chance
    room = REACH * math.sqrt(mean * (1 - chance)) + _MIN_ROOM
    low, high = max(0, math.floor(mean - room)), min(trials, math.ceil(mean + room))
    step = max(1, -(-(high - low + 1) // max_bins))  # single counts if they are few enough
    lowest = np.unique(np.append(np.arange(low, high + 1, step), 0)).astype(float)
    # P(count >= least)
    above = np.append(np.where(lowest > 0, betainc(np.maximum(lowest, 0.5), trials - lowest + 1, chance), 1.0), 0.0)
    below = np.append(np.where(lowest > 0, betainc(trials - lowest + 1, np.maximum(lowest, 0.5), 1 - chance), 0.0), 1.0)
    return lowest, np.maximum(np.where(lowest > mean, above[:-1] - above[1:], below[1:] - below[:-1]), 0.0)


def excess(trials: Floats, beyond: Floats) -> Floats:
    """Return E[(N - m / 2 - beyond)_+], N ~ Bin(m, 1/2), for m >= 0 and beyond > 0.

    With k the least integer above: sum_{j >= k} (j - m / 2) b(j) = k b(k) / 2 (de Moivre), less beyond times the tail.
    """
    from scipy.special import betainc

    k = np.ceil(trials / 2 + beyond)
    inside = k <= trials
    m, j = np.where(inside, trials, 2.0), np.where(inside, np.maximum(k, 1.0), 1.0)
    tail = betainc(j, m - j + 1, 0.5)
    expected = j / 2 * np.exp(_log_binomial(m, j, 0.5)) - beyond * tail
    return np.where(inside & (trials > 0), np.maximum(expected, 0.0), 0.0)


def _log_binomial(m: Floats, k: Floats, chance: float) -> Floats:
    """Return log P(Bin(m, chance) = k), k >= 0, to about 14 digits of P (Loader 2000); minus infinity for k > m."""
    failures = m - k
    inner = (k > 0) & (failures > 0)
    of, a, b = np.where(inner, m, 2.0), np.where(inner, k, 1.0), np.where(inner, failures, 1.0)
    away = a - of * chance
    deviance = a * np.log1p(away / (of * chance)) + b * np.log1p(-away / (of * (1 - chance)))
    middle = 0.5 * np.log(of / (2 * np.pi * a * b)) - deviance + _stirling(of) - _stirling(a) - _stirling(b)
    ends = np.where(k == 0, m * math.log1p(-chance), np.where(failures == 0, m * math.log(chance), -np.inf))
    return np.where(inner, middle, ends)


def _stirling(x: Floats) -> Floats:
    """Return log x! less Stirling's formula."""
    from scipy.special import gammaln

    small = np.minimum(x, 16.0)
    exact = gammaln(small + 1) - (small + 0.5) * np.log(small) + small - 0.5 * math.log(2 * math.pi)
    y = 1 / (x * x)
    series = (1 / 12 - y * (1 / 360 - y * (1 / 1260 - y * (1 / 1680 - y / 1188)))) / x
    return np.where(x < 16, exact, series)


MAX_USERS = 2**40
"""Largest number of users: counts stay exact integers in float64 with room to spare."""

_ROUNDING = 1e-6
_PRECISION = 1e-6
"""Relative precision at which searches stop, on the safe side."""

_RESPONSE_PRECISION = 1e-3
"""The same for what k-ary response adds to eps0."""


def delta_of_shuffled(local: float, epsilon: float, users: int, values: int | None = None) -> float:
    """Return the delta at ``epsilon`` of shuffling the reports of ``users`` honest users, rounded up.

    Args:
        local: eps0 of each report, nats, >= 0; infinite gives 1.
        epsilon: nats, >= 0.
        users: number of honest reports shuffled, the changed user's included, >= 1.
        values: k, where reports are k-ary randomised response and nothing else; None for any randomiser.

    Raises:
        InvalidInput: a figure is out of range.
    """
    checked_amount(local, "the local epsilon")
    checked_epsilon(epsilon)
    _checked_users(users)
    if values is not None and values < 2:
        raise InvalidInput(f"randomised response has at least 2 values, not {values}")
    if local <= epsilon:
        return 0.0
    if local > _FAR:
        return 1.0
    bounds = [general_delta(local, epsilon, users)]
    if values is not None and values > 2:
        bounds.append(response_delta(local, epsilon, users, values))
    return min(1.0, min(bounds) * (1 + _ROUNDING))


_FAR = 300.0
"""e^(2 * 300) is a float. With fewer than 2^40 users nobody has a clone long before this eps0."""


@functools.lru_cache(4096)
def epsilon_of_shuffled(local: float, delta: float, users: int, values: int | None = None) -> float:
    """Return the smallest epsilon, in nats, at which the shuffled reports are (epsilon, delta)-DP, rounded up.

    It is at most ``local``. Arguments as in ``delta_of_shuffled``; delta is in [1e-300, 1).
    """
    checked_delta(delta)
    return smallest(lambda epsilon: delta_of_shuffled(local, epsilon, users, values) <= delta, _PRECISION)


@functools.lru_cache(4096)
def local_of_shuffled(epsilon: float, delta: float, users: int, values: int | None = None) -> float:
    """Return the largest eps0 per user, in nats, whose shuffled reports are (epsilon, delta)-DP, rounded down.

    Arguments as in ``delta_of_shuffled``; delta is in [1e-300, 1).
    """
    checked_epsilon(epsilon)
    checked_delta(delta)
    _checked_users(users)
    if values is None or values == 2:
        return max(epsilon, largest(lambda local: delta_of_shuffled(local, epsilon, users) <= delta, _PRECISION))
    any_randomiser = local_of_shuffled(epsilon, delta, users)
    return any_randomiser + largest(
        lambda increase: delta_of_shuffled(any_randomiser + increase, epsilon, users, values) <= delta,
        _RESPONSE_PRECISION,
    )


def _checked_users(users: int) -> None:
    if not 1 <= users <= MAX_USERS:
        raise InvalidInput(f"{users} users: expected 1 to {MAX_USERS}")
