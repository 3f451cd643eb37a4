"""Checks of what an oracle declares to the accountant."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from cloister.core.budget import Budget, Event
from cloister.core.errors import CloisterError
from cloister.core.plain_data import digest
from cloister.core.randomness import NoiseRng
from cloister.testing.check import require, role_of
from cloister.testing.probes import PAYABLE, Probe, budget_of, narrow_shapes, spread, wide_shapes, worst_vectors
from cloister.testing.statistics import step_of
from cloister.testing.stubs import digest_elsewhere

ROUNDING = 1 + 1e-9
"""Shares of a budget may add up to this times the budget: what floating-point sums may be off."""

EPSILONS = (0.05, 1.0, 6.0)


def spent(events: Sequence[Event]) -> Budget:
    """The sum of what events spend. Different measures are added up in rho."""
    measures = {event.spent.measure for event in events}
    if len(measures) == 1:
        return Budget(events[0].spent.measure, sum(event.spent.amount for event in events))
    return Budget("zcdp", sum(rho_of(event.spent) for event in events))


def rho_of(spent: Budget) -> float:
    """Bun and Steinke 2016, Propositions 1.4 and 1.6."""
    rho = {"pure": spent.amount**2 / 2, "gaussian": spent.amount / 2, "zcdp": spent.amount, "exact": math.inf}
    return rho[spent.measure]


def probes(oracle: Any, epsilons: Sequence[float] = EPSILONS) -> list[Probe]:
    """The oracle opened for every narrow shape, in every measure that it can be paid in."""
    return [
        Probe.of(oracle, shape, budget_of(measure, epsilon))
        for shape in narrow_shapes(role_of(oracle))
        for measure in PAYABLE[oracle.measure]
        for epsilon in epsilons
    ]


def events_cover_the_budget_and_no_more(oracle: Any) -> None:
    """A channel declares at least one event; they are in the budget's measure, and add up to at most the budget; so do
    their deltas, which only an oracle that says so (``uses_delta``) has. Only pure noise that is paid in rho says its
    epsilon: sqrt(2 rho)."""
    for probe in probes(oracle):
        events = probe.channel.events
        require(
            isinstance(events, tuple) and events, f"{probe.shape}: events are {events!r}, not a tuple of at least one"
        )
        for event in events:
            amount, measure = event.spent.amount, event.spent.measure
            require(measure == probe.budget.measure, f"opened with {probe.budget}, it declares an event in {measure}")
            require(amount > 0, f"{probe.shape}: an event spends {amount}")
            require(event.delta >= 0, f"{probe.shape}: an event has delta {event.delta}")
            require(
                math.isinf(event.pure)
                or (oracle.measure == "pure" and measure == "zcdp" and event.pure * ROUNDING >= math.sqrt(2 * amount)),
                f"opened with {probe.budget}, an oracle of the measure {oracle.measure} declares an event of pure "
                f"epsilon {event.pure}",
            )
        total = spent(events).amount
        require(
            total <= probe.budget.amount * ROUNDING,
            f"{probe.shape}: its events add up to {total:.6g}, it was opened with {probe.budget.amount:.6g} "
            f"({probe.budget.measure})",
        )
        delta = sum(event.delta for event in events)
        most = probe.budget.delta if oracle.uses_delta else 0.0
        require(
            delta <= most * ROUNDING,
            f"{probe.shape}: its events' deltas add up to {delta:.6g}, it may spend {most:.6g}",
        )


def budgets_in_a_foreign_measure_are_refused(oracle: Any) -> None:
    """Pure noise is not paid in mu^2, nor Gaussian noise in epsilon: ``open`` refuses such a budget."""
    for measure in ("pure", "gaussian"):
        if measure in PAYABLE[oracle.measure] or oracle.measure == "exact":
            continue
        try:
            Probe.of(oracle, narrow_shapes(role_of(oracle))[0], Budget(measure, 1.0))
        except CloisterError:
            continue
        require(False, f"an oracle of the measure {oracle.measure} was opened with a {measure} budget")


def what_it_costs_is_known_before_any_row(oracle: Any) -> None:
    """Opening is a pure function of public facts: it gives an equal digest twice, here and in another process, and no
    row changes it or its events."""
    for probe in probes(oracle, EPSILONS[1:2]):
        again = Probe.of(oracle, probe.shape, probe.budget)
        before = digest(probe.channel)
        require(before == digest(again.channel), f"{probe.shape}: opened twice, it has two digests")
        declared = probe.channel.events
        rng = NoiseRng.for_tests(1)
        probe.table(probe.summary(spread(probe.shape), rng), rng)
        require(probe.channel.events == declared, f"{probe.shape}: its events changed when it had seen rows")
        require(digest(probe.channel) == before, f"{probe.shape}: its digest changed when it had seen rows")
    last = probes(oracle, EPSILONS[1:2])[-1].channel
    require(digest_elsewhere(last) == digest(last), "another process computes another digest of an equal channel")


def discreteness_is_declared_truthfully(oracle: Any) -> None:
    """``l0_sensitivity`` is at least the number of released integers that one row can change; ``sigma`` is at most the
    noise's standard deviation in released steps. Accounting compares the discrete law with a real Gaussian by these
    two."""
    for shape in wide_shapes(role_of(oracle), 300):
        probe, rng = Probe.of(oracle, shape, budget_of("gaussian", 1.0)), NoiseRng.for_tests(2)
        most = len(shape.sizes) * max(int(np.count_nonzero(v)) for v in worst_vectors(shape.bound))
        touched = sum(event.l0_sensitivity for event in probe.channel.events)
        require(touched >= most, f"{shape}: one row can change {most} integers, touched is {touched}")
        claimed = max(event.sigma for event in probe.channel.events)
        table = probe.table(probe.summary(spread(probe.shape), rng), rng)
        levels = zip(probe.by_level(probe.values(table)), probe.by_level(probe.errors(table)), strict=True)
        for level, (values, errors) in enumerate(levels):
            error = float(errors.min())
            step = step_of(values.ravel(), error)
            require(
                step > 0 and claimed <= error / step * 1.001,
                f"{shape}, level {level}: sigma is declared as {claimed:.6g} steps; the noise is {error:.6g} wide, "
                f"its step {step:.6g}",
            )


EVENTS = (
    events_cover_the_budget_and_no_more,
    budgets_in_a_foreign_measure_are_refused,
    what_it_costs_is_known_before_any_row,
)
"""For every oracle."""

GAUSSIAN = (discreteness_is_declared_truthfully,)
"""For Central oracles that are paid in mu^2."""
