"""Skellam noise on sums that parties pool behind masks: every party draws a share, so that nobody knows the noise.

Guarantee (Aggregated; add-or-remove one row of one party): of M parties up to t may tell each other, and the coordinator,
everything they know, their own rows and shares included. What is left hidden from them are h = M - t shares of noise, and these
alone are calibrated to the budget; the other t make the released numbers noisier by sqrt(M / h) in standard deviation. With t = 0
a party that takes its own share off has more than the budget says: 1 is the least that covers a single curious party.

Who learns what, in the words of Diaa et al. 2024, section 3: a semi-honest adversary who controls the coordinator and any t
parties learns the private centres and no more. With more than t parties the guarantee degrades with the shares that are left.
A party that sends no share spoils the others' privacy (semi-honest means that it does not).

**Accounting.** Sk(V) has variance V and is infinitely divisible. A share with V_s = s^2 is drawn with a law that is within
e^(+-b), b = ``skellam_ratio(V_s)``, of the discrete Gaussian N_Z(0, s^2), at every integer. Hence h shares together are within
e^(+-h b) of a sum of h discrete Gaussians, which is within e^(+-tau), tau = 10 sum_{k<h} exp(-2 pi^2 s^2 k / (k + 1)), of N_Z(0, h s^2)
(Kairouz, Liu, Steinke 2021, the theorem on sums of discrete Gaussians); as s >= 2^22, tau is 0 to more than a million digits and h b below h * 1e-10.

*As Gaussian noise.* On |x| <= 14 sigma the noise is within e^(+-(eta + h b)) of a rounded real Gaussian; ``cloister.accounting.discrete``
pays that for every number that a row touches (``Event.ratio``), out of the same ten-thousandth of the budget.

*As zCDP.* Let B = touched * h * b and rho0 the discrete Gaussian's. The densities' ratio gives D_a <= a rho0 + (2 + 1 / (a - 1)) B for
every order a. For a >= 1 + c that is at most a (rho0 + (2 + 1/c) B), and for smaller a the divergence is no larger than at 1 + c, so
the release is rho-zCDP with rho = (1 + c) rho0 + (2 + 1/c) B. Noise is calibrated to that with c = 2^-10, which costs 0.05% in sigma,
and s is so wide that B's term, which grows with the number of columns and of parties, costs another 0.2% at most.

The bound of Agarwal, Kairouz and Liu (2021), a D2^2 / 2V + min(((2 a - 1) D2^2 + 6 D1) / 4 V^2, 3 D1 / 2V), holds for whole orders only
and needs the L1 sensitivity D1 as well; here the number of touched integers plays its part, and a lattice of s >= 2^22 makes it vanish.

Source: Agarwal, Kairouz, Liu 2021 (Skellam in shares); Kairouz, Liu, Steinke 2021; the rest is derived above.
"""

from __future__ import annotations

import math
from typing import Any

from cloister.core.buckets import Setting, Space
from cloister.core.budget import Budget, Measure
from cloister.core.errors import InvalidInput
from cloister.core.lattice import Bound
from cloister.core.randomness import skellam_ratio
from cloister.core.registry.components import component, option
from cloister.core.trust import Aggregated
from cloister.plugins.oracles.aggregated.ring_channel import RingChannel, most_rows_option
from cloister.plugins.oracles.central.additive import UP, Skellam, enough_bits, sensitivity_of
from cloister.plugins.oracles.central.dense import TensorChannel

LEAST_SHARE = 2.0**22
"""s: the least standard deviation of a share, in integers; wider where many numbers or shares are counted together."""

C = 2.0**-10

MOST_PRICE = 2.0**-8
"""Of rho: what B's term may cost."""


def channel(
    space: Space, bound: Bound | None, budget: Budget, unit: float, parties: int, colluding: int, most_rows: int
) -> RingChannel:
    """Shares whose honest part is worth the budget.

    Raises:
        InvalidInput: no party would be left to count on, or the budget is too small for Skellam's law to pass for a Gaussian.
    """
    honest = parties - colluding
    if honest < 1:
        raise InvalidInput(f"{colluding} of {parties} parties may collude: one at least must be counted on")
    touched = space.levels * (bound.dimension if bound else 1)
    each = (2 + 1 / C) * touched * honest  # of a share's ratio, what it costs in rho
    least = max(LEAST_SHARE, math.sqrt(each * skellam_ratio(1.0) / (MOST_PRICE * budget.mu**2 / 2)))
    ratio = honest * skellam_ratio(least**2)
    rho = (budget.mu**2 / 2 - each * skellam_ratio(least**2)) / (1 + C)
    if not rho > budget.mu**2 / 4:
        raise InvalidInput(
            "the budget of this question is too small for noise in shares: give it more, or let the coordinator draw it "
            "(masked-gaussian)"
        )
    share = sensitivity_of(space, bound) / math.sqrt(2 * rho * honest) * UP
    shift = enough_bits(share, least)
    law = Skellam(share * 2.0**shift, parties, honest)
    return RingChannel(TensorChannel("skellam", budget, space, bound, law, shift, unit), parties, most_rows, ratio)


def parties_option() -> Any:
    """The option ``parties``: exactly so many, each of whom draws a share."""
    return option(default=2, low=1, high=1024, help="how many parties pool their rows and draw noise")


def colluding_option() -> Any:
    """The option ``colluding``."""
    return option(default=1, low=0, help="t: how many of them may tell each other and the coordinator all they know")


@component
class SkellamCounts:
    """Pooled counts with a share of Skellam noise from every party."""

    trust = Aggregated
    parties: int = parties_option()
    colluding: int = colluding_option()
    most_rows: int = most_rows_option()

    @property
    def measure(self) -> Measure:
        return "gaussian"

    def open(self, space: Space, budget: Budget, setting: Setting) -> RingChannel:
        return channel(space, None, budget, 1.0, self.parties, self.colluding, self.most_rows)

    def variance(self, space: Space, budget: Budget, setting: Setting) -> float:
        return self.open(space, budget, setting).deviation ** 2


@component
class SkellamSums:
    """Pooled vector sums with a share of Skellam noise from every party."""

    trust = Aggregated
    parties: int = parties_option()
    colluding: int = colluding_option()
    most_rows: int = most_rows_option()

    @property
    def measure(self) -> Measure:
        return "gaussian"

    def open(self, space: Space, bound: Bound, budget: Budget, setting: Setting) -> RingChannel:
        return channel(space, bound, budget, setting.unit, self.parties, self.colluding, self.most_rows)

    def variance(self, space: Space, bound: Bound, budget: Budget, setting: Setting) -> float:
        return self.open(space, bound, budget, setting).deviation ** 2
