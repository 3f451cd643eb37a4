"""Gaussian differential privacy and (epsilon, delta): the exact relation, both ways.

A mechanism is mu-GDP when telling two neighbouring data sets apart from its output is no easier than telling N(0, 1)
from N(mu, 1). One Gaussian release with L2 sensitivity D and standard deviation sigma is (D / sigma)-GDP, and mu^2 adds
under adaptive composition, without loss. It is (epsilon, delta)-DP exactly for

    delta(epsilon) = Phi(-u) - e^epsilon Phi(-v),        u = epsilon / mu - mu / 2,   v = epsilon / mu + mu / 2.

The difference cancels badly, so it is computed as phi(u) (R(u) - R(v)) with Mills' ratio R = (1 - Phi) / phi, because
e^epsilon phi(v) = phi(u). For small mu even that cancels, and the integral of -R'(x) = 1 - x R(x) > 0 over [u, v] is
taken instead. Every answer errs to the safe side: deltas and epsilons are rounded up, mu is rounded down.

Source: Balle and Wang 2018, Theorem 8; Dong, Roth and Su 2022, Corollary 2.13 and Corollary 3.3.
"""

from __future__ import annotations

import functools
import math

from cloister.accounting.bisection import largest, smallest
from cloister.accounting.checks import MIN_DELTA, checked_amount, checked_delta, checked_epsilon

_ROUNDING = 1e-11
"""Relative safety margin: a hundred times the worst error that the tests find against 60-digit arithmetic."""

_FAR = 39.0
"""Cut-off of u: phi(39) < 1e-330, so that all beyond is smaller than any delta that a caller may give."""


def delta_of_mu(mu: float, epsilon: float) -> float:
    """The delta of a mu-GDP mechanism at ``epsilon``, rounded up (by one part in 10^11; never below 1e-305).

    Args: mu (sensitivity over standard deviation, >= 0), epsilon (nats, >= 0).
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


def epsilon_of_mu(mu: float, delta: float) -> float:
    """The smallest epsilon, in nats, at which a mu-GDP mechanism is (epsilon, delta)-DP, rounded up.

    Args: mu (sensitivity over standard deviation, >= 0; infinite gives infinity), delta (in [1e-300, 1)).
    """
    checked_amount(mu, "mu")
    checked_delta(delta)
    return math.inf if math.isinf(mu) else smallest(lambda epsilon: delta_of_mu(mu, epsilon) <= delta)


def mu_of(epsilon: float, delta: float) -> float:
    """The largest mu whose mechanisms are (epsilon, delta)-DP, rounded down: ``delta_of_mu`` of it is <= delta.

    Args: epsilon (nats, >= 0), delta (probability in [1e-300, 1)).
    """
    checked_epsilon(epsilon)
    checked_delta(delta)
    return largest(lambda mu: delta_of_mu(mu, epsilon) <= delta)


def _gap(u: float, v: float, mu: float) -> float:
    """Phi(-u) - e^epsilon Phi(-v), where v - u = mu."""
    density = math.exp(-u * u / 2) / math.sqrt(2 * math.pi)
    if mu < 1:
        nodes, weights = _legendre()
        slopes = (_mills(u + mu * x)[1] * w for x, w in zip(nodes, weights, strict=True))
        return density * mu * math.fsum(slopes)
    if u < 0:
        return math.erfc(u / math.sqrt(2)) / 2 - density * _mills(v)[0]
    return density * (_mills(u)[0] - _mills(v)[0])


def _mills(x: float) -> tuple[float, float]:
    """Mills' ratio R(x) = (1 - Phi(x)) / phi(x) and minus its slope, 1 - x R(x), for x > -1.

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
def _legendre() -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Ten Gauss-Legendre nodes and weights for [0, 1]: exact here to the last digit (the slope is entire)."""
    from numpy.polynomial.legendre import leggauss

    nodes, weights = leggauss(10)
    return tuple(float(x) / 2 + 0.5 for x in nodes), tuple(float(w) / 2 for w in weights)
