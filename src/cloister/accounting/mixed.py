"""The cost of pure and Gaussian questions together, with privacy loss distributions.

**What dominates what.** A pair of distributions (P, Q) dominates a mechanism when H(x; P, Q) = sup_S P(S) - e^x Q(S) is
at least that of its outputs on any two neighbours, in either direction, for every real x. Two facts are used:

* An epsilon-DP mechanism is dominated by randomised response R(epsilon), which tells one bit truly with probability
  e^epsilon / (1 + e^epsilon) (Kairouz, Oh and Viswanath 2015, Theorem 2.1). Discrete Laplace noise on a count that one
  row changes by one is no better: P(x) / P(x - 1) takes the two values e^(+-epsilon) only, so nothing is lost there. A
  mu-GDP mechanism is dominated by G(mu) = (N(mu, 1), N(0, 1)), by definition.
* Adaptive composition is dominated by the product of the pairs (Zhu, Dong and Wang 2022, Theorem 10): R(epsilon_1) x
  ... x R(epsilon_m) x G(mu), where Gaussian events are one with mu^2 their sum.

**The product in closed form.** Let L be the sum of the losses of the randomised responses under P: independent +-
epsilon_i, the plus with probability e^epsilon_i / (1 + e^epsilon_i). Given their outcomes the likelihood ratio of the
product is e^L times that of G(mu), so that

    delta(x) = E[H(x - L; G(mu))],       H(y; G(mu)) = Phi(-u) - e^y Phi(-v),   u = y / mu - mu / 2,  v = u + mu,

for y of either sign: where y < 0, H(y) = 1 - e^y + e^y H(-y), as the pair G(mu) is symmetric; without Gaussian events
H(y) = max(0, 1 - e^y). All pairs here are symmetric, so one direction is enough.

**Rounding.** H falls in y, so delta(x) rises in every value of L: replacing a loss by a larger one only overstates it.
L is exact while it has at most ``ATOMS`` values; beyond, each is moved *up* to the next of ``ATOMS`` equally spaced
ones. What is overstated is thus at most one spacing of the final epsilon for each such step, of which there is at most
one an event; the smallest losses are moved up the same way when all of them together have probability ``LOST``. H is
computed with Mills' ratios as in ``conversions``, and rounded up by ``_MARGIN`` and by what rounded losses may do.

The library dp-accounting composes the same distributions on a grid by fast Fourier transforms. It is the witness of the
tests, which hold these figures between its two bounds, and no part of a run: its grid rounds every Gaussian loss, where
this formula has none to round.

Source: as above; tight composition of pure mechanisms: Kairouz, Oh and Viswanath 2015, Theorem 3.3.
"""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Sequence

import numpy as np

from cloister.accounting.conversions import checked_amount, checked_delta, legendre, smallest
from cloister.core.types import Floats

ATOMS = 2048
"""Largest number of distinct losses."""

LOST = 1e-20
"""Total probability of the smallest losses, which are rounded up to one value."""

_MARGIN = 1e-10
"""Relative margin of H: a thousand times the worst error that the tests find against 60-digit arithmetic."""

_FAR = 39.0
"""Cut-off of u, as in ``conversions``: beyond, H counts as e^-760. So log H falls by at most 39 / mu a nat."""

_ULPS = 2.0**-50
"""Relative rounding error of a sum of losses and of a factorial's logarithm."""

_ROOT_HALF_PI = math.sqrt(math.pi / 2)

WITHIN = 1e-9
"""Relative precision of an epsilon, on the safe side."""


def delta_of_mixed(pures: Sequence[float], mu: float, epsilon: float) -> float:
    """Return the delta at ``epsilon`` of pure mechanisms and a mu-GDP one together, rounded up (never below 1e-305).

    Args:
        pures: an epsilon for each pure mechanism, > 0, finite.
        mu: >= 0.
        epsilon: nats, >= 0.
    """
    losses, chances = _losses(tuple(sorted(pures)))
    return _delta(losses, chances, checked_amount(mu, "mu"), epsilon)


def epsilon_of_mixed(pures: Sequence[float], mu: float, delta: float) -> float:
    """Return the smallest epsilon, in nats, at which these are (epsilon, delta)-DP together, rounded up.

    ``pures`` and ``mu`` are as in ``delta_of_mixed``, infinite ones give infinity; ``delta`` is in [1e-300, 1).
    """
    return _epsilon(tuple(sorted(pures)), mu, checked_delta(delta))


@functools.lru_cache(256)
def _epsilon(pures: tuple[float, ...], mu: float, delta: float) -> float:
    if not math.isfinite(math.fsum(pures) + checked_amount(mu, "mu")):
        return math.inf
    losses, chances = _losses(pures)
    return smallest(lambda epsilon: _delta(losses, chances, mu, epsilon) <= delta, WITHIN)


def _delta(losses: Floats, chances: Floats, mu: float, epsilon: float) -> float:
    margin = _MARGIN + (_FAR * _ULPS * (epsilon + losses[-1]) / mu if mu else 0.0)  # a loss is off by some ulps
    return min(1.0, max(float(chances @ _hockey_stick(epsilon - losses, mu)) * (1 + margin), 1e-305))


@functools.lru_cache(64)
def _losses(pures: tuple[float, ...]) -> tuple[Floats, Floats]:
    """Return the values (m,) of L in rising order, and their probabilities."""
    losses, chances = np.zeros(1), np.ones(1)
    for epsilon, times in Counter(pures).items():
        signs, sign_chances = _repeated(epsilon, times)
        losses = (losses[:, None] + signs).ravel()
        chances = (chances[:, None] * sign_chances).ravel()
        order = np.argsort(losses, kind="stable")
        losses, chances = _thinned(losses[order], chances[order])
    return losses, chances


def _repeated(epsilon: float, times: int) -> tuple[Floats, Floats]:
    """Return the losses of ``times`` responses of one epsilon, and their binomial probabilities."""
    true = np.arange(times + 1.0)
    log_odds = np.array([math.lgamma(times + 1) - math.lgamma(i + 1) - math.lgamma(times - i + 1) for i in true])
    log_chances = log_odds + true * epsilon - times * (epsilon + math.log1p(math.exp(-epsilon)))
    return _thinned((2 * true - times) * epsilon, np.exp(log_chances + _ULPS * math.lgamma(times + 2)))


def _thinned(losses: Floats, chances: Floats) -> tuple[Floats, Floats]:
    """Return at most ``ATOMS`` of the rising losses, the others moved up."""
    if len(losses) <= ATOMS:
        return losses, chances
    lowest = losses[np.searchsorted(chances.cumsum(), LOST)]
    lattice = np.linspace(lowest, losses[-1], ATOMS)
    lattice[-1] = losses[-1]
    places = np.searchsorted(lattice, losses)  # the first that is at least as large
    return lattice, np.bincount(places, chances, minlength=ATOMS).astype(np.float64)


def _hockey_stick(y: Floats, mu: float) -> Floats:
    """Return H(y; G(mu)) at each y (m,)."""
    if mu == 0:
        return np.asarray(np.maximum(0.0, -np.expm1(y)), np.float64)
    positive = _hockey_stick_above_zero(np.abs(y), mu)
    negative = np.minimum(y, 0.0)
    return np.asarray(-np.expm1(negative) + np.exp(negative) * positive, np.float64)


def _hockey_stick_above_zero(y: Floats, mu: float) -> Floats:
    """Return H for y >= 0: density(u) (R(u) - R(v)) with Mills' ratio R; for small mu the integral of its slope."""
    from scipy.special import erfcx, ndtr

    def ratio(x: Floats) -> Floats:
        return np.asarray(_ROOT_HALF_PI * erfcx(x / math.sqrt(2)), np.float64)

    u = y / mu - mu / 2
    clipped = np.minimum(u, _FAR)
    density = np.exp(-clipped * clipped / 2) / math.sqrt(2 * math.pi)
    if mu < 1:
        nodes, weights = map(np.asarray, legendre())
        x = clipped[:, None] + mu * nodes
        values = density * mu * ((1 - x * ratio(x)) @ weights)
    else:
        after = density * ratio(clipped + mu)
        values = np.where(clipped < 0, ndtr(-clipped) - after, density * ratio(np.maximum(clipped, 0.0)) - after)
    return np.asarray(np.where(u < _FAR, values, 1e-330), np.float64)
