"""The cost of a run: the sum of its events, in every measure at once.

**Deltas of mechanisms.** Let D' be D and one more row. An event with a delta says that, given any history, the
mechanism's distribution on D' is at least (1 - delta) P'' pointwise, where P'' and its distribution P on D keep what
``spent`` says, in both directions. Multiplied out over a run: with delta the sum of the events' deltas, the
distribution P' of all that is released on D' is at least (1 - delta) P'', where P and P'' are as far apart as the
distributions of a run without deltas, (epsilon, delta') by the composition below. For every set S

    P'(S) <= (1 - delta) P''(S) + delta <= e^epsilon P(S) + delta' + delta,
    P(S) <= min(1, y / (1 - delta) + delta'),      y = e^epsilon P'(S).

The second is at most y + delta' + delta as well: where y <= (1 - delta)(1 - delta'), because y delta / (1 - delta) <=
delta; beyond, because 1 - y <= delta + delta'. So deltas of mechanisms add to that of the conversion, in every measure
(for zCDP: Bun and Steinke 2016, section 8). That is for add-or-remove: one row that is replaced could fail on both
sides.

**Both sides.** A local report that is (epsilon_i, delta_i)-DP may fail for either of two rows. Any two distributions Q,
Q' that are (epsilon_i, delta_i)-close in both directions are (1 - delta_i) A + delta_i B and (1 - delta_i) A' + delta_i
B' with A, A' within e^(+-epsilon_i) pointwise (Kairouz, Oh, Viswanath 2015: they are what one mechanism makes of
randomised response that gives itself away with probability delta_i). So, over a run, P >= (1 - delta) P_0 and P' >= (1
- delta) P_0' with the *same* delta, and

    P(S) <= (1 - delta) P_0(S) + delta <= (1 - delta)(e^epsilon P_0'(S) + delta') + delta
         <= e^epsilon P'(S) + delta' + delta.

Deltas that are not the same on both sides (thresholds under replacement) need the larger one on both.

**Under Shuffled trust** (replace one row) an event with a delta that is (eps, delta)-close both ways is of that kind.
So is one of which there are sub-distributions A <= Q and A' <= Q', each of mass at least 1 - delta, that, with an
outcome 'failed' for what they lack, keep what ``spent`` says: with P_0, P_0' the runs that never fail, the two
inequalities above hold as they stand, in every measure (split-and-mix with Gaussian noise declares such a delta).
People divide themselves over roles, privately, and send one role's messages: a row pays for the role that costs most,
delta included.

Source: derived above.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import reduce
from typing import Any, final

import attrs

from cloister.accounting.conversions import (
    MIN_DELTA,
    ROUNDING,
    checked_delta,
    epsilon_of_rho,
    rho_of_pure,
)
from cloister.accounting.discrete import BEYOND, epsilon_of_discrete, eta
from cloister.core.budget import Event, Measure
from cloister.core.errors import InvalidInput
from cloister.core.randomness import PublicRng


@final
@attrs.frozen
class Spent:
    """Cost of a set of events to one row. Every figure adds under sequential and adaptive composition.

    Attributes:
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
        """Return an upper bound on what one row pays for all the events.

        Events add. Those with a ``user_share`` are asked of users whose keyed hash falls in [low, high): a user pays
        for the intervals that hold her hash, so the worst hash counts, under both neighbouring relations (a row that is
        replaced keeps its user number). Shares of different keys add. Where events of one key differ in measure, each
        figure takes its own worst hash, which can only overstate the cost.
        """
        costs, shared = list[Spent](), dict[PublicRng, list[Event]]()
        for event in events:
            if event.spent.user_share is None:
                costs.append(_price(event))
            else:
                shared.setdefault(event.spent.user_share.rng, []).append(event)
        return _sum([*costs, *map(_worst, shared.values())])

    def plus(self, other: Spent) -> Spent:
        """Return the cost of both, one after the other."""
        return Spent(*(a + b for a, b in zip(self._figures(), other._figures(), strict=True)))

    @property
    def pure(self) -> float:
        """Sum of the epsilons of pure events."""
        return sum(self.pures)

    def _figures(self) -> tuple[Any, ...]:
        return attrs.astuple(self, recurse=False)

    def epsilon(self, delta: float) -> float:
        """Return the smallest epsilon, in nats, that this module can prove at ``delta``, rounded up.

        The smallest of three bounds: zCDP for everything; basic composition of the pure events, which need no delta,
        with the rest; and the privacy loss distribution of pure and Gaussian events together (``mixed``), where there
        are no others. The rest is exact Gaussian composition where all of it is Gaussian, else zCDP; discrete noise has
        its price in both.

        Args:
            delta: probability, 0 or in [1e-300, 1), of which the mechanisms' own deltas are a part.

        Returns:
            Infinity where there is no guarantee: exact events, or noise that needs more delta than there is.
        """
        if delta != 0:
            checked_delta(delta)
        remaining = delta - self.delta
        if math.isinf(self.all_rho) or not remaining >= 0:
            return math.inf
        if remaining < MIN_DELTA:
            return math.inf if self.needs_delta else self.pure
        bounds = [
            epsilon_of_rho(self.all_rho, remaining),
            self.pure + epsilon_of_rho(self.rho + self.mu_squared / 2, remaining),
        ]
        if not self.rho:
            bounds.append(self.pure + self._gaussian(remaining, ()))
            if self.mu_squared and self.pure:
                bounds.append(self._gaussian(remaining, self.pures))
        return min(bounds)

    def _gaussian(self, delta: float, pures: tuple[float, ...]) -> float:
        """Return the epsilon of the Gaussian events and of these pure ones."""
        return epsilon_of_discrete(math.sqrt(self.mu_squared), self.drift, self.tail, delta, pures)

    @property
    def needs_delta(self) -> bool:
        """Whether any noise has no finite epsilon at delta = 0, apart from the mechanisms' own deltas."""
        return self.mu_squared > 0 or self.rho > 0

    def amount(self, measure: Measure) -> float:
        """Return the cost in one measure (for zCDP, of everything)."""
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
    """Return the epsilon of all the events together at ``delta`` (``Spent.epsilon``)."""
    return Spent.on(events).epsilon(delta)


def _worst(group: list[Event]) -> Spent:
    """Return the most that one hash pays, figure by figure."""
    # A sum over intervals can be largest only where one of them begins.
    shares = [(share, _price(event)) for event in group if (share := event.spent.user_share)]
    sums = (
        _sum(price for share, price in shares if share.low <= u < share.high)
        for u in {share.low for share, _ in shares}
    )
    # Pure events as one of their sum: that costs no less (Kairouz, Oh and Viswanath 2015).
    alone = (attrs.evolve(one, pures=(one.pure,) if one.pures else ()) for one in sums)
    return Spent(*(max(figure) for figure in zip(*(one._figures() for one in alone), strict=True)))


def _sum(costs: Iterable[Spent]) -> Spent:
    return reduce(Spent.plus, costs, Spent())


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
    """Return the cost of Gaussian noise.

    Raises:
        InvalidInput: the declaration does not say how discrete the noise is.
    """
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
