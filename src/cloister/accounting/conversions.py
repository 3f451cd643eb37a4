"""Conversions between (epsilon, delta)-DP, Gaussian DP (mu) and zero-concentrated DP (rho), in both directions.

Every answer is conservative: deltas and epsilons are rounded up, mu and rho are rounded down. A condition that turns
at some point is searched by bisection to the last float, and the answer is a float at which it was seen to hold.

**Gaussian DP.** A mechanism is mu-GDP when telling two neighbouring data sets apart from its output is no easier than
telling N(0, 1) from N(mu, 1). One Gaussian release with L2 sensitivity D and standard deviation sigma is
(D / sigma)-GDP, and mu^2 adds under adaptive composition, without loss. It is (epsilon, delta)-DP exactly for

    delta(epsilon) = Phi(-u) - e^epsilon Phi(-v),        u = epsilon / mu - mu / 2,   v = epsilon / mu + mu / 2.

The difference cancels badly, so it is computed as phi(u) (R(u) - R(v)) with Mills' ratio R = (1 - Phi) / phi, because
e^epsilon phi(v) = phi(u). For small mu even that cancels, and the integral of -R'(x) = 1 - x R(x) > 0 over [u, v] is
taken instead.

Source: Balle and Wang 2018, Theorem 8; Dong, Roth and Su 2022, Corollary 2.13 and Corollary 3.3.

**Zero-concentrated DP.** A mechanism is rho-zCDP when its Renyi divergence of every order a > 1 between neighbouring
data sets is at most a rho. rho adds under adaptive composition. The discrete Gaussian with L2 sensitivity D is
(D / sigma)^2 / 2 - zCDP exactly as the continuous one, and an epsilon-DP mechanism is epsilon^2 / 2 - zCDP. For every
order a > 1 such a mechanism is (epsilon, delta)-DP with

    delta = exp((a - 1)(a rho - epsilon)) / (a - 1) * (1 - 1 / a)^a,

and the best a is found by bisection (log delta is convex in a). A poor a could only make delta too large.

Source: Canonne, Kamath and Steinke 2020, Corollary 13; Bun and Steinke 2016, Propositions 1.4 and 1.6.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

from cloister.core.errors import InvalidInput

MIN_DELTA = 1e-300
"""Smallest delta: below it floating point cannot tell a delta from zero; pure noise needs none."""

ROUNDING = 1 + 1e-9
"""Factor by which shares of a budget may exceed it: room for rounding in sums of many shares, not for privacy."""


def checked_epsilon(value: float) -> float:
    """Return a finite epsilon >= 0, in nats.

    Raises:
        InvalidInput: it is NaN, negative or infinite.
    """
    if not 0 <= value < math.inf:
        raise InvalidInput(f"epsilon is {value}, expected a finite number >= 0 (in nats)")
    return value


def checked_delta(value: float) -> float:
    """Return a delta in [1e-300, 1).

    Raises:
        InvalidInput: it is NaN or outside.
    """
    if not MIN_DELTA <= value < 1:
        raise InvalidInput(f"delta is {value}, expected a probability in [1e-300, 1): for delta = 0 use pure noise")
    return value


def checked_amount(value: float, name: str) -> float:
    """Return a number >= 0 that may be infinite, such as mu or rho.

    Raises:
        InvalidInput: it is NaN or negative.
    """
    if not value >= 0:
        raise InvalidInput(f"{name} is {value}, expected a number >= 0")
    return value


_HUGE = 2.0**1000


def largest(holds: Callable[[float], bool], within: float = 0.0) -> float:
    """Return the largest x > 0 at which ``holds``, a condition that is true below some point and false above it.

    Args:
        holds: the condition.
        within: relative precision, on the safe side, at which to stop: for conditions that are slow to evaluate.

    Returns:
        A float at which ``holds`` was seen to be true, or 0.0 if it was true nowhere.
    """
    x = 1.0
    while holds(x):
        if x > _HUGE:
            return x
        x *= 2
    while not holds(x):
        x /= 2
        if x == 0:
            return 0.0
    return _bisected(x, 2 * x, holds, within)


def smallest(holds: Callable[[float], bool], within: float = 0.0) -> float:
    """Return the smallest x >= 0 at which ``holds``, a condition that is false below some point and true above it.

    Args:
        holds: the condition.
        within: as in ``largest``.

    Returns:
        A float at which ``holds`` was seen to be true, or infinity if it was true nowhere.
    """
    if holds(0.0):
        return 0.0
    x = 1.0
    while not holds(x):
        if x > _HUGE:
            return float("inf")
        x *= 2
    while holds(x / 2):
        x /= 2
    return _bisected(x, x / 2, holds, within)


def _bisected(good: float, bad: float, holds: Callable[[float], bool], within: float) -> float:
    """Return the last float from ``good`` to ``bad``, or one near enough, at which ``holds`` was seen to be true."""
    while True:
        middle = good + (bad - good) / 2
        if middle in (good, bad) or abs(bad - good) < within * good:
            return good
        if holds(middle):
            good = middle
        else:
            bad = middle


_ROUNDING = 1e-11
"""Relative margin for rounding: a hundred times the worst error that the tests find against 60-digit arithmetic."""

_FAR = 39.0
"""Cut-off of u: phi(39) < 1e-330, smaller than any delta that a caller may give."""


def delta_of_mu(mu: float, epsilon: float) -> float:
    """Return the delta of a mu-GDP mechanism at ``epsilon``, rounded up (by one part in 10^11; never below 1e-305).

    Args:
        mu: sensitivity over standard deviation, >= 0.
        epsilon: nats, >= 0.
    """
    checked_amount(mu, "mu")
    checked_epsilon(epsilon)
    if mu == 0:
        return 0.0
    if math.isinf(mu):
        return 1.0
    u, v = epsilon / mu - mu / 2, epsilon / mu + mu / 2
    delta = 0.0 if u > _FAR else _gap(u, v, mu)
    return min(1.0, max(delta * (1 + _ROUNDING), MIN_DELTA * 1e-5))


@functools.lru_cache(1024)
def epsilon_of_mu(mu: float, delta: float) -> float:
    """Return the smallest epsilon, in nats, at which a mu-GDP mechanism is (epsilon, delta)-DP, rounded up.

    ``mu`` is as in ``delta_of_mu``; infinity gives infinity. ``delta`` is in [1e-300, 1).
    """
    checked_amount(mu, "mu")
    checked_delta(delta)
    return math.inf if math.isinf(mu) else smallest(lambda epsilon: delta_of_mu(mu, epsilon) <= delta)


@functools.lru_cache(1024)
def mu_of(epsilon: float, delta: float) -> float:
    """Return the largest mu whose mechanisms are (epsilon, delta)-DP, rounded down.

    ``epsilon`` is in nats, >= 0, and ``delta`` in [1e-300, 1). ``delta_of_mu`` of the result is at most ``delta``.
    """
    checked_epsilon(epsilon)
    checked_delta(delta)
    return largest(lambda mu: delta_of_mu(mu, epsilon) <= delta)


def _gap(u: float, v: float, mu: float) -> float:
    """Return Phi(-u) - e^epsilon Phi(-v), where v - u = mu."""
    density = math.exp(-u * u / 2) / math.sqrt(2 * math.pi)
    if mu < 1:
        nodes, weights = legendre()
        slopes = (_mills(u + mu * x)[1] * w for x, w in zip(nodes, weights, strict=True))
        return density * mu * math.fsum(slopes)
    if u < 0:
        return math.erfc(u / math.sqrt(2)) / 2 - density * _mills(v)[0]
    return density * (_mills(u)[0] - _mills(v)[0])


def _mills(x: float) -> tuple[float, float]:
    """Return Mills' ratio R(x) = (1 - Phi(x)) / phi(x) and minus its slope, 1 - x R(x), for x > -1.

    Beyond 4 by Laplace's continued fraction R = 1 / (x + K), K = 1 / (x + 2 / (x + 3 / ...)), where the slope is
    K / (x + K) without any cancellation.
    """
    if x < 4:
        ratio = math.sqrt(math.pi / 2) * math.exp(x * x / 2) * math.erfc(x / math.sqrt(2))
        return ratio, 1 - x * ratio
    tail = 0.0
    for i in range(50, 0, -1):
        tail = i / (x + tail)
    return 1 / (x + tail), tail / (x + tail)


@functools.cache
def legendre() -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return ten Gauss-Legendre nodes and weights for [0, 1]: exact here to the last digit (the slope is entire)."""
    from numpy.polynomial.legendre import leggauss

    nodes, weights = leggauss(10)
    return tuple(float(x) / 2 + 0.5 for x in nodes), tuple(float(w) / 2 for w in weights)


_LOG_ROUNDING = 1e-11
"""Bound on the sum of the rounding errors of log delta."""

_LEAST_ORDER = 1e-300
"""Smallest a - 1: below it rho exceeds epsilon by 690 and nothing is promised; 1 / x would overflow soon."""


def delta_of_rho(rho: float, epsilon: float) -> float:
    """Return a delta at which every rho-zCDP mechanism is (epsilon, delta)-DP, rounded up (never below 1e-305).

    ``epsilon`` is in nats, >= 0.
    """
    checked_amount(rho, "rho")
    checked_epsilon(epsilon)
    if rho == 0:
        return 0.0
    if math.isinf(rho):
        return 1.0
    x = largest(lambda x: (2 * x + 1) * rho - epsilon - math.log1p(1 / x) < 0)
    if x < _LEAST_ORDER:
        return 1.0
    return max(math.exp(min(_log_delta(rho, epsilon, x) + _LOG_ROUNDING, 0.0)), MIN_DELTA * 1e-5)


@functools.lru_cache(1024)
def epsilon_of_rho(rho: float, delta: float) -> float:
    """Return the smallest epsilon, in nats, that the conversion gives a rho-zCDP mechanism at ``delta``, rounded up.

    Infinite rho gives infinity; ``delta`` is in [1e-300, 1).
    """
    checked_amount(rho, "rho")
    checked_delta(delta)
    return math.inf if math.isinf(rho) else smallest(lambda epsilon: delta_of_rho(rho, epsilon) <= delta)


@functools.lru_cache(1024)
def rho_of(epsilon: float, delta: float) -> float:
    """Return the largest rho that the conversion admits at (epsilon, delta), rounded down.

    ``epsilon`` is in nats, >= 0, and ``delta`` in [1e-300, 1).
    """
    checked_epsilon(epsilon)
    checked_delta(delta)
    return largest(lambda rho: delta_of_rho(rho, epsilon) <= delta)


def rho_of_pure(epsilon: float) -> float:
    """Return the rho of an epsilon-DP mechanism: epsilon^2 / 2 (Bun and Steinke 2016, Proposition 1.4)."""
    return checked_amount(epsilon, "epsilon") * epsilon / 2


def _log_delta(rho: float, epsilon: float, x: float) -> float:
    """Return log delta at order a = 1 + x.

    That is x (a rho - epsilon) + a log(1 - 1/a) - log x, where 1 - 1/a = 1 / (1 + 1/x).
    """
    return x * ((x + 1) * rho - epsilon) - (x + 1) * math.log1p(1 / x) - math.log(x)
