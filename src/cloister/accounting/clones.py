"""The sums of ``amplification``: hockey-stick divergences of counts of clones, as upper bounds.

With n users, E[(X_1 + .. + X_n)_+] / n is a sum over the number c of clones among the n - 1 others, of chance |w| each,
of

    h(c) = |w| / m * E[(X_1 + .. + X_m)_+ | all of X_1 .. X_m in the blanket],     m = c + 1,

the divergence given c clones. It falls with c, since whoever sees the rest can draw one more clone. So the fewest
clones of a bin may stand for all of them, and with 1,000 bins that costs next to nothing.
"""

from __future__ import annotations

import math

import numpy as np

from cloister.core.types import Floats

BINS = 1024
"""Most bins for the number of clones."""

CELLS = 16_000
MIN_BINS = 24
"""For k-ary response: most pairs of counts, and fewest bins of the number of clones. Beyond either the general bound is
used."""

REACH = 12.0
"""Bins cover this many standard deviations either way; the rest falls in the outer bins."""


def general_delta(local: float, epsilon: float, users: int) -> float:
    """E[((p - e) N - (p e - 1) N')_+] / n, N, N' of chance 1 / (p + 1) each: the bound for any randomiser.

    Given m = N + N', N is binomial with chance 1/2 and the sum is (p - 1)(e + 1) (N - K m), K = 1/2 + tanh(eps / 2) /
    (2 tanh(eps0 / 2)).
    """
    clones, chances = bins(users - 1, 2 / (math.exp(local) + 1), BINS)
    m = clones + 1
    beyond = m * math.tanh(epsilon / 2) / (2 * math.tanh(local / 2))
    scale = 2 * math.tanh(local / 2) * (math.exp(epsilon) + 1)
    return float(np.sum(chances * scale / m * excess(m, beyond)))


def response_delta(local: float, epsilon: float, users: int, values: int) -> float:
    """E[((p - e) N - (p e - 1) N' - (e - 1) N'')_+] / n for k-ary response; infinite if the sum would be too long.

    Given m in the blanket, C = N + N' is binomial with chance 2 / k; given that, N with chance 1/2. With C = c the sum
    is (p - 1)(e + 1) (N - c / 2 - beyond), beyond = (e - 1)((p - 1) c / 2 + m) / ((p - 1)(e + 1)).
    """
    from scipy.special import betainc

    p, e = math.exp(local), math.exp(epsilon)
    scale, chance = (p - 1) * (e + 1), values / (p + values - 1)
    mean = 2 * users / (p + values - 1)
    room = REACH * math.sqrt(mean) + _ROOM
    low, high = max(0, math.floor(mean - room)), min(users, math.ceil(mean + room))
    bins_left = CELLS // (high - low + 1)
    if bins_left < MIN_BINS:
        return math.inf
    clones, weights = bins(users - 1, chance, bins_left)
    keep = weights > _NOTHING
    lost = float(weights[~keep].sum())
    m, pairs = (clones[keep] + 1)[:, None], np.arange(low, high + 1, dtype=float)
    shares = np.exp(_log_binomial(m, pairs, 2 / values))
    found = shares * excess(np.broadcast_to(pairs, shares.shape), (e - 1) * ((p - 1) * pairs / 2 + m) / scale)
    outside = 1 - betainc(high + 1.0, np.maximum(m - high, 0.5), 2 / values)
    outside = np.where(m > high, 1 - outside, 0.0)
    if low > 0:
        outside = outside + betainc(np.maximum(m - low + 1, 0.5), float(low), 1 - 2 / values)
    each = found.sum(axis=1) / m[:, 0] + outside[:, 0] / 2
    return scale * chance * (float(np.sum(weights[keep] * each)) + lost / 2)


_ROOM = 40.0
_NOTHING = 1e-40


def bins(trials: int, chance: float, most: int) -> tuple[Floats, Floats]:
    """Bins of a binomial law, at most about ``most``: the least count of each, and its chance. Single counts if they
    are few enough."""
    from scipy.special import betainc

    mean = trials * chance
    room = REACH * math.sqrt(mean * (1 - chance)) + _ROOM
    low, high = max(0, math.floor(mean - room)), min(trials, math.ceil(mean + room))
    step = max(1, -(-(high - low + 1) // most))
    least = np.unique(np.append(np.arange(low, high + 1, step), 0)).astype(float)
    # P(count >= least)
    above = np.append(np.where(least > 0, betainc(np.maximum(least, 0.5), trials - least + 1, chance), 1.0), 0.0)
    below = np.append(np.where(least > 0, betainc(trials - least + 1, np.maximum(least, 0.5), 1 - chance), 0.0), 1.0)
    return least, np.maximum(np.where(least > mean, above[:-1] - above[1:], below[1:] - below[:-1]), 0.0)


def excess(trials: Floats, beyond: Floats) -> Floats:
    """E[(N - m / 2 - beyond)_+], N ~ Bin(m, 1/2), for m >= 0 and beyond > 0.

    With k the least integer above: sum_{j >= k} (j - m / 2) b(j) = k b(k) / 2 (de Moivre), less beyond times the tail.
    """
    from scipy.special import betainc

    k = np.ceil(trials / 2 + beyond)
    inside = k <= trials
    m, j = np.where(inside, trials, 2.0), np.where(inside, np.maximum(k, 1.0), 1.0)
    tail = betainc(j, m - j + 1, 0.5)
    found = j / 2 * np.exp(_log_half(m, j)) - beyond * tail
    return np.where(inside & (trials > 0), np.maximum(found, 0.0), 0.0)


def _log_half(m: Floats, k: Floats) -> Floats:
    return _log_binomial(m, k, 0.5)


def _log_binomial(m: Floats, k: Floats, chance: float) -> Floats:
    """log P(Bin(m, chance) = k), 0 <= k; good to about 14 digits of the probability (Loader 2000). Minus infinity for k
    > m."""
    rest = m - k
    inner = (k > 0) & (rest > 0)
    of, a, b = np.where(inner, m, 2.0), np.where(inner, k, 1.0), np.where(inner, rest, 1.0)
    away = a - of * chance
    deviance = a * np.log1p(away / (of * chance)) + b * np.log1p(-away / (of * (1 - chance)))
    middle = 0.5 * np.log(of / (2 * np.pi * a * b)) - deviance + _stirling(of) - _stirling(a) - _stirling(b)
    ends = np.where(k == 0, m * math.log1p(-chance), np.where(rest == 0, m * math.log(chance), -np.inf))
    return np.where(inner, middle, ends)


def _stirling(x: Floats) -> Floats:
    """log x! less Stirling's formula."""
    from scipy.special import gammaln

    near = np.minimum(x, 16.0)
    exact = gammaln(near + 1) - (near + 0.5) * np.log(near) + near - 0.5 * math.log(2 * math.pi)
    y = 1 / (x * x)
    series = (1 / 12 - y * (1 / 360 - y * (1 / 1260 - y * (1 / 1680 - y / 1188)))) / x
    return np.where(x < 16, exact, series)
