"""The cost of a run: events added up, in every measure at once.

**Deltas of mechanisms.** Let D' be D and one more row. An event with a delta says that, given any history, the
mechanism's law on D' is at least (1 - delta) P'' pointwise, where P'' and its law P on D keep what ``spent`` says, in
both directions. Multiplied out over a run: with delta the sum of the events' deltas, the law P' of all that is released
on D' is at least (1 - delta) P'', where P and P'' are as far apart as the laws of a run without deltas, (epsilon,
delta') by the composition below. For every set S

    P'(S) <= (1 - delta) P''(S) + delta <= e^epsilon P(S) + delta' + delta,
    P(S) <= min(1, y / (1 - delta) + delta'),      y = e^epsilon P'(S).

The second is at most y + delta' + delta as well: where y <= (1 - delta)(1 - delta'), because y delta / (1 - delta) <=
delta; beyond, because 1 - y <= delta + delta'. So deltas of mechanisms add to that of the conversion, in every measure
(for zCDP: Bun and Steinke 2016, section 8). That is for add-or-remove: one row that is replaced could fail on both
sides.

**Both sides.** A local report that is (epsilon_i, delta_i)-DP may fail for either of two rows. Any two laws Q, Q' that
are (epsilon_i, delta_i)-close in both directions are (1 - delta_i) A + delta_i B and (1 - delta_i) A' + delta_i B' with
A, A' within e^(+-epsilon_i) pointwise (Kairouz, Oh, Viswanath 2015: they are what one mechanism makes of randomised
response that gives itself away with probability delta_i). So, over a run, P >= (1 - delta) P_0 and P' >= (1 - delta)
P_0' with the *same* delta, and

    P(S) <= (1 - delta) P_0(S) + delta <= (1 - delta)(e^epsilon P_0'(S) + delta') + delta
         <= e^epsilon P'(S) + delta' + delta.

Deltas that are not the same on both sides (thresholds under replacement) need the larger one on both.

**Under Shuffled trust** (replace one row) an event with a delta that is (eps, delta)-close both ways is of that kind.
So is one of which there are sub-laws A <= Q and A' <= Q', each of mass at least 1 - delta, that, with an outcome
'failed' for what they lack, keep what ``spent`` says: with P_0, P_0' the runs that never fail, the two inequalities
above hold as they stand, in every measure (split-and-mix with Gaussian noise declares such a delta). People divide
themselves over roles, privately, and send one role's messages: a row pays for the role that costs most, delta included.

The price of discrete Gaussian noise where the accounting assumes the analytic Gaussian.

The discrete Gaussian is not mu-GDP: used at the analytic Gaussian's sigma on raw counts its delta is too large, by a
factor of 1.1 at (2, 1e-5) and 3 at (8, 1e-6). When sigma is large in integers the difference is tiny, and this module
pays for it.

**One coordinate.** Let P(x) = exp(-x^2 / 2 s^2) / N be the discrete law, with N = sum_x exp(-x^2 / 2 s^2)
= sqrt(2 pi) s (1 + 2 e^(-2 pi^2 s^2) + ...) by Poisson summation, and Q the law of a real Gaussian N(0, s^2) rounded to
the nearest integer. With u uniform on [-1/2, 1/2],

    Q(x) / P(x) = N / (sqrt(2 pi) s) * E_u[exp(-(2 x u + u^2) / (2 s^2))].

*Below*: N is at least sqrt(2 pi) s, and by Jensen the mean is at least exp(-E[u^2] / (2 s^2)) = exp(-1 / (24 s^2)).
*Above*: u is symmetric and e^(-u^2 / 2 s^2) <= 1, so the mean is at most E[cosh(x u / s^2)], and as
cosh z <= exp(z^2 / 2) at most E[exp(x^2 u^2 / (2 s^4))]. On |x| <= t s this is at most E[exp(c u^2)] with
c = t^2 / (2 s^2). If s^2 >= t^4 / 2 and t >= 1 then c <= 1 / t^2 <= 1 and c^2 <= 1 / (2 s^2), and with
e^z <= 1 + z + 0.65 z^2 on [0, 1/4], E[u^2] = 1/12 and E[u^4] = 1/80 its logarithm is at most
c / 12 + 0.0082 c^2 <= t^2 / (24 s^2) + 0.0041 / s^2. The normaliser adds 3 e^(-2 pi^2 s^2), which is less than
0.03 / s^2. As 1 / 24 > 0.0341, on |x| <= t s

    e^-eta <= Q(x) / P(x) <= e^eta,        eta = (t^2 + 1) / (24 s^2).

*Beyond*: P(|X| > t s) <= 2 e^(-t^2 / 2), as the discrete Gaussian is sub-Gaussian: E[e^(l X)] = e^(l^2 s^2 / 2) times
sum_x exp(-(x - l s^2)^2 / 2 s^2) / N, and by Poisson summation no shift makes that sum larger than N. The rounded one
is beyond only if the real one is beyond t s - 1/2, which is less likely than that, too, for t >= 2.

**A run.** Fix neighbours D, D'. Given the transcript so far, the next question's true answers on D and D' are fixed
integers; call a coordinate *touched* when they differ. Run M adds discrete noise to all. Let H add rounded real noise
to touched and discrete noise to untouched coordinates. H(D) against H(D') is mu-GDP: rounding commutes with integer
shifts, so touched coordinates are post-processing of the analytic Gaussian, and an untouched coordinate has one law
under both, so that it is added randomness that tells nothing; adaptivity changes neither, since the argument is per
step. M and H differ on touched coordinates only: untouched factors are the same and cancel, whatever their number. So
on transcripts whose touched noises all lie within t s the likelihoods of M(D) and H(D) differ by at most e^(+-drift),
with

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
from collections.abc import Iterable, Sequence
from typing import Any, final

import attrs

from cloister.accounting.conversions import (
    MIN_DELTA,
    ROUNDING,
    checked_amount,
    checked_delta,
    epsilon_of_mu,
    epsilon_of_rho,
    rho_of_pure,
)
from cloister.accounting.mixed import epsilon_of_mixed
from cloister.core.budget import Event, Measure
from cloister.core.errors import InvalidInput
from cloister.core.randomness import PublicRng

REACH = 14.0
"""t: the number of standard deviations within which the two laws are compared."""

BEYOND = 2 * math.exp(-(REACH**2) / 2)
"""Bound on the probability that one noise, of either law, lies beyond t standard deviations: 5.5e-43."""

_LOG_HUGE = 700.0
"""e^700 is still a float."""


def eta(sigma: float) -> float:
    """The largest |log| of the ratio of the rounded to the discrete law on |x| <= 14 sigma.

    Args: sigma (standard deviation in integers, > 0; infinite gives 0).

    Returns: (t^2 + 1) / (24 sigma^2), or infinity where the bound is not proved (sigma below t^2 / sqrt(2), about 139).
    """
    checked_amount(sigma, "sigma")
    square = sigma * sigma
    return (REACH**2 + 1) / (24 * square) if square >= REACH**4 / 2 else math.inf


def epsilon_of_discrete(mu: float, drift: float, tail: float, delta: float, pures: Sequence[float] = ()) -> float:
    """The epsilon, in nats, of a run of discrete Gaussian releases at ``delta``, rounded up.

    Half of delta first gives a bound on epsilon; that bounds the cost of the tails, and the rest of delta is the
    Gaussian's.

    Args:
        mu: the run's mu with real noise: root of the sum of squares.
        drift: sum of touched * eta(sigma).
        tail: sum of touched * ``BEYOND``.
        delta: probability in [1e-300, 1).
        pures: the epsilons of pure releases in the same run.

    Returns: infinity where drift and tail are too large for this comparison to say anything useful.
    """
    checked_delta(delta)

    def real(delta: float) -> float:
        """With real noise."""
        return epsilon_of_mixed(pures, mu, delta) if pures else epsilon_of_mu(mu, delta)

    if drift == tail == 0:
        return real(delta)
    if not (drift < 1 and delta >= 2 * MIN_DELTA):
        return math.inf
    most = real(delta / 2) + 2 * drift
    if most > _LOG_HUGE:
        return math.inf
    rest = math.exp(-drift) * (delta - (1 + math.exp(most)) * tail)
    return real(rest) + 2 * drift if rest >= delta / 2 else math.inf


@final
@attrs.frozen
class Spent:
    """The cost of a set of events to one row. Every figure adds under sequential and adaptive composition.

    Args:
        pures: the epsilons of events that are pure, whatever they are paid in.
        mu_squared: sum of mu^2 of events stated in mu^2.
        rho: sum of rho of events stated in rho that are not known to be pure.
        all_rho: everything in rho: epsilon^2 / 2, mu^2 / 2 and rho.
        drift, tail: the cost of discrete noise beside the analytic Gaussian (see ``discrete``).
        delta: sum of the mechanisms' own deltas.
        epsilon_without_shuffler: the row's epsilon if a shuffler that it relies on is not honest; infinite where
            nothing holds, or where there is no shuffler.
    """

    pures: tuple[float, ...] = ()
    mu_squared: float = 0.0
    rho: float = 0.0
    all_rho: float = 0.0
    drift: float = 0.0
    tail: float = 0.0
    delta: float = 0.0
    epsilon_without_shuffler: float = 0.0

    @classmethod
    def on(cls, events: Iterable[Event]) -> Spent:
        """An upper bound on what one row pays for all the events.

        Events add. Those whose ``user_share`` are shares of one key are asked of users whose keyed hash falls in
        [low, high): a user pays for the intervals that hold her hash, so the worst hash counts, under both neighbouring
        relations (a row that is replaced keeps its user number). Shares of different keys add. Where events of one key
        differ in measure, each figure takes its own worst hash, which can only say too much; what that hash pays in
        pure events counts as one of their sum, which costs no less (Kairouz, Oh and Viswanath 2015).
        """
        shared: dict[PublicRng, list[Event]] = {}
        total = cls()
        for event in events:
            if event.spent.user_share is None:
                total = total.plus(_price(event))
            else:
                shared.setdefault(event.spent.user_share.rng, []).append(event)
        for group in shared.values():
            total = total.plus(_worst(group))
        return total

    def plus(self, other: Spent) -> Spent:
        """The cost of both, one after the other."""
        return Spent(*(a + b for a, b in zip(self._figures(), other._figures(), strict=True)))

    @property
    def pure(self) -> float:
        """Sum of the epsilons of pure events."""
        return sum(self.pures)

    def _figures(self) -> tuple[Any, ...]:
        return attrs.astuple(self, recurse=False)

    def epsilon(self, delta: float) -> float:
        """The smallest epsilon, in nats, that this module can prove at ``delta``, rounded up.

        The smallest of three bounds: zCDP for everything; basic composition of the pure events, which need no delta,
        with the rest; and the distribution of the privacy loss of pure and Gaussian events together (``mixed``), where
        there are no others. The rest is exact Gaussian composition where all of it is Gaussian, else zCDP; discrete
        noise has its price in both. The mechanisms' own deltas come off ``delta`` first.

        Args: delta (probability, 0 or in [1e-300, 1)).

        Returns: infinity where there is no guarantee: exact events, or noise that needs more delta than there is.
        """
        if delta != 0:
            checked_delta(delta)
        left = delta - self.delta
        if math.isinf(self.all_rho) or not left >= 0:
            return math.inf
        if left < MIN_DELTA:
            return math.inf if self.needs_delta else self.pure
        bounds = [epsilon_of_rho(self.all_rho, left), self.pure + epsilon_of_rho(self.rho + self.mu_squared / 2, left)]
        if not self.rho:
            bounds.append(self.pure + self._gaussian(left, ()))
            if self.mu_squared and 0 < self.pure < math.inf:
                bounds.append(self._gaussian(left, self.pures))
        return min(bounds)

    def _gaussian(self, delta: float, pures: tuple[float, ...]) -> float:
        """The epsilon of the Gaussian events and of these pure ones."""
        return epsilon_of_discrete(math.sqrt(self.mu_squared), self.drift, self.tail, delta, pures)

    @property
    def needs_delta(self) -> bool:
        """Whether any noise is not covered by a finite epsilon at delta = 0, apart from the mechanisms' own deltas."""
        return self.mu_squared > 0 or self.rho > 0

    def amount(self, measure: Measure) -> float:
        """The cost in one measure (for zCDP, of everything)."""
        match measure:
            case "pure":
                return self.pure
            case "gaussian":
                return self.mu_squared
            case "zcdp":
                return self.all_rho
            case "exact":
                return math.inf


def compose(events: Iterable[Event], delta: float) -> float:
    """The epsilon of all the events together at ``delta``, under sequential and adaptive composition.

    Args: events (as mechanisms declare them), delta (probability, 0 or in [1e-300, 1)).
    """
    return Spent.on(events).epsilon(delta)


def _worst(group: list[Event]) -> Spent:
    """The most that one hash pays, figure by figure: sums over intervals can be largest only where one begins."""
    starts = {e.spent.user_share.low for e in group if e.spent.user_share}
    sums = (
        _sum(e for e in group if e.spent.user_share and e.spent.user_share.low <= u < e.spent.user_share.high)
        for u in starts
    )
    alone = (attrs.evolve(one, pures=(one.pure,) if one.pures else ()) for one in sums)
    return Spent(*(max(figure) for figure in zip(*(one._figures() for one in alone), strict=True)))


def _sum(events: Iterable[Event]) -> Spent:
    total = Spent()
    for event in events:
        total = total.plus(_price(event))
    return total


def _price(event: Event) -> Spent:
    if not 0 <= event.delta < 1:
        raise InvalidInput(f"'{event.mechanism}' declares delta = {event.delta}, expected a probability in [0, 1)")
    if not event.epsilon_without_shuffler >= 0:
        raise InvalidInput(
            f"'{event.mechanism}' declares epsilon_without_shuffler = {event.epsilon_without_shuffler}, expected an "
            f"epsilon >= 0 or infinity"
        )
    return attrs.evolve(_amounts(event), delta=event.delta, epsilon_without_shuffler=event.epsilon_without_shuffler)


def _amounts(event: Event) -> Spent:
    amount = event.spent.amount
    match event.spent.measure:
        case "pure":
            return Spent((amount,), all_rho=rho_of_pure(amount))
        case "zcdp" if math.isfinite(event.pure):
            if not rho_of_pure(event.pure) <= amount * ROUNDING:
                raise InvalidInput(
                    f"'{event.mechanism}' declares epsilon = {event.pure} for a rho of {amount}: epsilon^2 / 2 is at "
                    f"most rho"
                )
            return Spent((event.pure,), all_rho=amount)
        case "zcdp" if event.l0_sensitivity and math.isfinite(event.sigma):
            return attrs.evolve(_noised(event, 2 * amount), all_rho=amount)
        case "zcdp":
            return Spent(rho=amount, all_rho=amount)
        case "exact":
            return Spent((math.inf,), all_rho=math.inf)
        case "gaussian":
            return _noised(event, amount)


def _noised(event: Event, mu_squared: float) -> Spent:
    """The cost of Gaussian noise. Raises: InvalidInput: a declaration that does not say how discrete it is."""
    if event.l0_sensitivity < 0 or (event.l0_sensitivity > 0) != math.isfinite(event.sigma):
        raise InvalidInput(
            f"'{event.mechanism}' declares l0_sensitivity = {event.l0_sensitivity} with sigma = {event.sigma}: "
            f"discrete Gaussian noise declares both, continuous noise neither"
        )
    if not 0 <= event.ratio < 1:
        raise InvalidInput(f"'{event.mechanism}' declares a ratio of {event.ratio}, expected one in [0, 1)")
    drift = event.l0_sensitivity * (eta(event.sigma) + event.ratio)
    tail = event.l0_sensitivity * BEYOND * math.exp(event.ratio)
    return Spent(mu_squared=mu_squared, all_rho=mu_squared / 2, drift=drift, tail=tail)
