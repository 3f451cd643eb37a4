"""The cost of discrete Gaussian noise beside the analytic Gaussian that the accounting assumes.

The discrete Gaussian is not mu-GDP: used at the analytic Gaussian's sigma on raw counts its delta is too large, by a
factor of 1.1 at (2, 1e-5) and 3 at (8, 1e-6). When sigma is large in integers the difference is tiny, and this module
pays for it.

**One coordinate.** Let P(x) = exp(-x^2 / 2 s^2) / N be the discrete distribution, with N = sum_x exp(-x^2 / 2 s^2) =
sqrt(2 pi) s (1 + 2 e^(-2 pi^2 s^2) + ...) by Poisson summation, and Q the distribution of a real Gaussian N(0, s^2)
rounded to the nearest integer. With u uniform on [-1/2, 1/2],

    Q(x) / P(x) = N / (sqrt(2 pi) s) * E_u[exp(-(2 x u + u^2) / (2 s^2))].

*Below*: N is at least sqrt(2 pi) s, and by Jensen the mean is at least exp(-E[u^2] / (2 s^2)) = exp(-1 / (24 s^2)).
*Above*: u is symmetric and e^(-u^2 / 2 s^2) <= 1, so the mean is at most E[cosh(x u / s^2)], and as cosh z <= exp(z^2 /
2) at most E[exp(x^2 u^2 / (2 s^4))]. On |x| <= t s this is at most E[exp(c u^2)] with c = t^2 / (2 s^2). If s^2 >= t^4
/ 2 and t >= 1 then c <= 1 / t^2 <= 1 and c^2 <= 1 / (2 s^2), and with e^z <= 1 + z + 0.65 z^2 on [0, 1/4], E[u^2] =
1/12 and E[u^4] = 1/80 its logarithm is at most c / 12 + 0.0082 c^2 <= t^2 / (24 s^2) + 0.0041 / s^2. The normaliser
adds 3 e^(-2 pi^2 s^2), which is less than 0.03 / s^2. As 1 / 24 > 0.0341, on |x| <= t s

    e^-eta <= Q(x) / P(x) <= e^eta,        eta = (t^2 + 1) / (24 s^2).

*Beyond*: P(|X| > t s) <= 2 e^(-t^2 / 2), as the discrete Gaussian is sub-Gaussian: E[e^(l X)] = e^(l^2 s^2 / 2) times
sum_x exp(-(x - l s^2)^2 / 2 s^2) / N, and by Poisson summation no shift makes that sum larger than N. The rounded one
is beyond only if the real one is beyond t s - 1/2, which is less likely than that, too, for t >= 2.

**A run.** Fix neighbours D, D'. Given the transcript so far, the next question's true answers on D and D' are fixed
integers; call a coordinate *touched* when they differ. Run M adds discrete noise to all. Let H add rounded real noise
to touched and discrete noise to untouched coordinates. H(D) against H(D') is mu-GDP: rounding commutes with integer
shifts, so touched coordinates are post-processing of the analytic Gaussian, and an untouched coordinate has one
distribution under both, so that it is added randomness that tells nothing; adaptivity changes neither, since the
argument is per step. M and H differ on touched coordinates only: untouched factors are the same and cancel, whatever
their number. So on transcripts whose touched noises all lie within t s the likelihoods of M(D) and H(D) differ by at
most e^(+-drift), with

    drift = sum of touched * eta(sigma),      tail = sum of touched * 2 e^(-t^2 / 2)

over the run's events (each touches at most ``l0_sensitivity`` coordinates, on every path). If H is (eps0, delta0)-DP,
going from M(D) to H(D) to H(D') to M(D') and cutting the tails at each end,

    P[M(D) in S] <= e^(2 drift + eps0) P[M(D') in S] + e^drift delta0 + (1 + e^(drift + eps0)) tail.

So a run pays epsilon = eps0 + 2 drift and delta = e^drift delta0 + (1 + e^epsilon) tail. Pure questions of the same run
are the same in M and in H, so that (eps0, delta0) is then that of both kinds together (``mixed``).

Source: derived above; adaptive composition of mu-GDP: Dong, Roth and Su 2022, Corollary 3.3; the discrete Gaussian:
Canonne, Kamath and Steinke 2020.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from cloister.accounting.conversions import MIN_DELTA, checked_amount, checked_delta, epsilon_of_mu
from cloister.accounting.mixed import epsilon_of_mixed

REACH = 14.0
"""t: the number of standard deviations within which the two distributions are compared."""

BEYOND = 2 * math.exp(-(REACH**2) / 2)
"""Bound on the probability that one noise, of either distribution, lies beyond t standard deviations: 5.5e-43."""

_LOG_HUGE = 700.0
"""e^700 is still a float."""


def eta(sigma: float) -> float:
    """Return a bound on the |log| of the ratio of the rounded to the discrete distribution on |x| <= 14 sigma.

    Args:
        sigma: standard deviation in integers, > 0; infinite gives 0.

    Returns:
        (t^2 + 1) / (24 sigma^2), or infinity where that is not proved (sigma below t^2 / sqrt(2), about 139).
    """
    checked_amount(sigma, "sigma")
    square = sigma * sigma
    return (REACH**2 + 1) / (24 * square) if square >= REACH**4 / 2 else math.inf


def epsilon_of_discrete(mu: float, drift: float, tail: float, delta: float, pures: Sequence[float] = ()) -> float:
    """Return the epsilon, in nats, of a run of discrete Gaussian releases at ``delta``, rounded up.

    Args:
        mu: the run's mu with real noise: root of the sum of squares.
        drift: sum of touched * eta(sigma).
        tail: sum of touched * ``BEYOND``.
        delta: probability in [1e-300, 1).
        pures: the epsilons of pure releases in the same run.

    Returns:
        Infinity where drift and tail are too large for this comparison to say anything useful.
    """
    checked_delta(delta)

    def real(delta: float) -> float:
        """Return the epsilon with real noise."""
        return epsilon_of_mixed(pures, mu, delta) if pures else epsilon_of_mu(mu, delta)

    if drift == tail == 0:
        return real(delta)
    if delta < 2 * MIN_DELTA:
        return math.inf
    # Half of delta bounds epsilon; that bounds the cost of the tails, and the rest of delta is the Gaussian's.
    upper = real(delta / 2) + 2 * drift
    if upper > _LOG_HUGE:
        return math.inf
    remaining = math.exp(-drift) * (delta - (1 + math.exp(upper)) * tail)
    return real(remaining) + 2 * drift if remaining >= delta / 2 else math.inf
