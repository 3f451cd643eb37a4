"""Zero-concentrated differential privacy and (epsilon, delta).

A mechanism is rho-zCDP when its Renyi divergence of every order a > 1 between neighbouring data sets is at most a rho.
rho adds under adaptive composition. The discrete Gaussian with L2 sensitivity D is (D / sigma)^2 / 2 - zCDP exactly as
the continuous one, and an epsilon-DP mechanism is epsilon^2 / 2 - zCDP. For every order a > 1 such a mechanism is
(epsilon, delta)-DP with

    delta = exp((a - 1)(a rho - epsilon)) / (a - 1) * (1 - 1 / a)^a,

and the best a is found by bisection (log delta is convex in a). A poor a could only make delta too large. Answers err
to the safe side: deltas and epsilons are rounded up, rho is rounded down.

Source: Canonne, Kamath and Steinke 2020, Corollary 13; Bun and Steinke 2016, Propositions 1.4 and 1.6.
"""

from __future__ import annotations

import math

from cloister.accounting.bisection import largest, smallest
from cloister.accounting.checks import MIN_DELTA, checked_amount, checked_delta, checked_epsilon

_ROUNDING = 1e-11
"""Bounds the sum of the rounding errors of log delta."""

_LEAST_ORDER = 1e-300
"""Smallest a - 1: below it rho exceeds epsilon by 690 and nothing is promised; 1 / x would overflow soon."""


def delta_of_rho(rho: float, epsilon: float) -> float:
    """A delta at which every rho-zCDP mechanism is (epsilon, delta)-DP, rounded up (never below 1e-305).

    Args: rho (>= 0), epsilon (nats, >= 0).
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
    return max(math.exp(min(_log_delta(rho, epsilon, x) + _ROUNDING, 0.0)), MIN_DELTA * 1e-5)


def epsilon_of_rho(rho: float, delta: float) -> float:
    """The smallest epsilon, in nats, that the conversion gives a rho-zCDP mechanism at ``delta``, rounded up.

    Args: rho (>= 0; infinite gives infinity), delta (probability in [1e-300, 1)).
    """
    checked_amount(rho, "rho")
    checked_delta(delta)
    return math.inf if math.isinf(rho) else smallest(lambda epsilon: delta_of_rho(rho, epsilon) <= delta)


def rho_of(epsilon: float, delta: float) -> float:
    """The largest rho that the conversion admits at (epsilon, delta), rounded down.

    Args: epsilon (nats, >= 0), delta (probability in [1e-300, 1)).
    """
    checked_epsilon(epsilon)
    checked_delta(delta)
    return largest(lambda rho: delta_of_rho(rho, epsilon) <= delta)


def rho_of_pure(epsilon: float) -> float:
    """The rho of an epsilon-DP mechanism: epsilon^2 / 2.

    Args: epsilon (nats, >= 0; infinite gives infinity).

    Source: Bun and Steinke 2016, Proposition 1.4.
    """
    return checked_amount(epsilon, "epsilon") * epsilon / 2


def _log_delta(rho: float, epsilon: float, x: float) -> float:
    """log delta at order a = 1 + x: x (a rho - epsilon) + a log(1 - 1/a) - log x, where 1 - 1/a = 1 / (1 + 1/x)."""
    return x * ((x + 1) * rho - epsilon) - (x + 1) * math.log1p(1 / x) - math.log(x)
