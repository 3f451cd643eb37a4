"""Skellam noise on parties' masked sums: every party draws a share, so that nobody knows the noise.

Guarantee (Aggregated; add-or-remove one row of one party): of M parties up to t may collude with each other and the
coordinator and share everything they know, their own rows and shares included. Hidden from them are the h = M - t
other shares of noise, and these alone are calibrated to the budget; the t shares make the released numbers noisier by
sqrt(M / h) in standard deviation. With t = 0 a party that subtracts its own share learns more than the budget allows:
t = 1 is the minimum against a single curious party.

Trust (Diaa et al. 2024, section 3): a semi-honest adversary who controls the coordinator and any t parties learns the
private centres and no more. With more than t parties the guarantee degrades with the shares that remain. A party that
sends no share spoils the others' privacy (semi-honest means that it does not).

**Accounting.** Sk(V) has variance V and is infinitely divisible. The law of a share with V_s = s^2 is within e^(+-b),
b = ``skellam_ratio(V_s)``, of the discrete Gaussian N_Z(0, s^2), at every integer. Hence h shares together are within
e^(+-h b) of a sum of h discrete Gaussians, which is within e^(+-tau), tau = 10 sum_{k<h} exp(-2 pi^2 s^2 k / (k + 1)),
of N_Z(0, h s^2) (Kairouz, Liu, Steinke 2021, the theorem on sums of discrete Gaussians). As s >= 2^22, tau is 0 to more
than a million digits and h b below h * 1e-10.

*As Gaussian noise.* On |x| <= 14 sigma the noise is within e^(+-(eta + h b)) of a rounded real Gaussian;
``cloister.accounting.composition`` pays for that at every number that a row touches (``Event.ratio``), out of the same
ten-thousandth of the budget.

*As zCDP.* Let B = touched * h * b and rho0 the discrete Gaussian's. The densities' ratio gives
D_a <= a rho0 + (2 + 1 / (a - 1)) B for every order a. For a >= 1 + c that is at most a (rho0 + (2 + 1/c) B), and for
smaller a the divergence is no larger than at 1 + c, so the release is rho-zCDP with
rho = (1 + c) rho0 + (2 + 1/c) B. Noise is calibrated to that with c = 2^-10, which costs 0.05% in sigma, and s is so
wide that B's term, which grows with the number of columns and of parties, costs another 0.2% at most.

The bound of Agarwal, Kairouz and Liu (2021), a D2^2 / 2V + min(((2 a - 1) D2^2 + 6 D1) / 4 V^2, 3 D1 / 2V), holds for
integer orders only and needs the L1 sensitivity D1 as well. Here the number of touched integers takes its place, and
s >= 2^22 makes it vanish.

Source: Agarwal, Kairouz, Liu 2021 (Skellam in shares); Kairouz, Liu, Steinke 2021; the rest is derived above.
"""

from __future__ import annotations

import math

from cloister.plugin import (
    UP,
    AdditiveNoise,
    Aggregated,
    Bound,
    Budget,
    InvalidInput,
    Measure,
    RingChannel,
    Sensitivity,
    Skellam,
    Space,
    component,
    enough_bits,
    most_rows_option,
    option,
    skellam_ratio,
)

MIN_SHARE = 2.0**22
"""Smallest standard deviation s of a share, in integers; wider where a row touches many numbers or parties are many."""

C = 2.0**-10
"""c of the zCDP bound."""

MAX_PRICE = 2.0**-8
"""Largest share of rho that B's term may cost."""


@component
class SkellamShares(AdditiveNoise):
    """Pooled counts and vector sums with a share of Skellam noise from every party."""

    trust = Aggregated
    mechanism = "skellam"
    parties: int = option(default=2, low=1, high=1024, help="number of parties that pool their rows and draw noise")
    colluding: int = option(
        default=1, low=0, help="t: number of them that may collude with each other and the coordinator"
    )
    most_rows: int = most_rows_option()

    @property
    def measure(self) -> Measure:
        return "gaussian"

    @property
    def honest(self) -> int:
        """Number h of parties that must not collude.

        Raises:
            InvalidInput: all parties may collude.
        """
        honest = self.parties - self.colluding
        if honest < 1:
            raise InvalidInput(
                f"colluding is {self.colluding} of {self.parties} parties: at least one party must not collude"
            )
        return honest

    def min_share(self, sensitivity: Sensitivity, budget: Budget) -> tuple[float, float]:
        """Return the smallest sigma of a share, in integers, and the price in rho of a share's ratio of 1."""
        price = (2 + 1 / C) * sensitivity.l0 * self.honest
        return max(MIN_SHARE, math.sqrt(price * skellam_ratio(1.0) / (MAX_PRICE * budget.mu**2 / 2))), price

    def noise(self, sensitivity: Sensitivity, budget: Budget) -> tuple[Skellam, int]:
        """Return the noise, scaled up until a share is wide enough, and the bits of that scaling.

        Raises:
            InvalidInput: the budget is too small for Skellam's law to pass for a Gaussian.
        """
        min_sigma, price = self.min_share(sensitivity, budget)
        rho = (budget.mu**2 / 2 - price * skellam_ratio(min_sigma**2)) / (1 + C)
        if not rho > budget.mu**2 / 4:
            raise InvalidInput(
                "the budget of this question is too small for Skellam noise in shares: increase it, or use "
                "masked-gaussian, where the coordinator draws the noise"
            )
        share = sensitivity.l2 / math.sqrt(2 * rho * self.honest) * UP
        shift = enough_bits(share, min_sigma)
        return Skellam(share * 2.0**shift, self.parties, self.honest), shift

    def channel(self, space: Space, bound: Bound | None, budget: Budget, unit: float) -> RingChannel:
        min_sigma, _ = self.min_share(Sensitivity.of(space, bound), budget)
        ratio = self.honest * skellam_ratio(min_sigma**2)
        return self.pooled(space, bound, budget, unit, self.parties, self.most_rows, ratio)
