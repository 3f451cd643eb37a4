"""Checks of what a component says of itself: options, slots, documentation, registry entry; of what an oracle declares
to the accountant."""

from __future__ import annotations

import inspect
import json
import math
import sys
from collections.abc import Iterator, Sequence
from typing import Any, get_type_hints

import attrs
import numpy as np

from cloister.core.budget import Budget, Event
from cloister.core.errors import CloisterError
from cloister.core.plain_data import digest
from cloister.core.randomness import NoiseRng
from cloister.core.registry.components import (
    ROLES,
    CandidateSlot,
    Option,
    Slot,
    Spec,
    fields,
    options_of,
    slots_of,
    trust_of,
)
from cloister.core.registry.compose import compose, parse, slot_role
from cloister.core.registry.registry import registry
from cloister.core.wrappers import METHOD, Wrapper
from cloister.testing.check import Broken, require, role_of, roles_of
from cloister.testing.probes import PAYABLE, Probe, budget_of, narrow_shapes, spread, wide_shapes, worst_vectors
from cloister.testing.statistics import step_of
from cloister.testing.stubs import digest_elsewhere


def every_option_and_slot_is_explained(component: Any) -> None:
    """Every field of a component is an ``option`` with help, or a ``slot`` with help and a role."""
    cls = type(component)
    hints = get_type_hints(cls)
    for field in fields(cls):
        facts = field.metadata.get("cloister")
        if not isinstance(facts, (Option, Slot)):
            raise Broken(f"'{field.name}' is neither an option() nor a slot()")
        require(facts.help.strip(), f"'{field.name}' has no help text")
        if isinstance(facts, Slot):
            slot_role(hints[field.name])


def options_keep_to_their_bounds(component: Any) -> None:
    """An option's default is within its bounds or choices; the constructor refuses what is not, NaN included."""
    cls = type(component)
    for name, (facts, default) in options_of(cls).items():
        try:
            facts.check(name, default)
        except CloisterError as error:
            require(False, f"its default breaks its own bounds: {error}")
        for value in _refused(facts):
            try:
                attrs.evolve(component, **{name: value})
            except CloisterError:
                continue
            require(False, f"option '{name}' takes {value!r}, but it must be {facts.range}")


def _refused(facts: Option) -> Iterator[Any]:
    """Values that an option with these facts must not take."""
    if facts.choices:
        yield "no such choice"
        return
    if facts.low is not None:
        yield facts.low if facts.above else facts.low - 1
    if facts.high is not None:
        yield facts.high + 1
    if facts.low is not None or facts.high is not None:
        yield math.nan


def options_can_be_given_as_text(component: Any) -> None:
    """``--set`` and configuration files say every option: its text gives the value again, and it is plain data."""
    hints = get_type_hints(type(component))
    for name in options_of(type(component)):
        value = getattr(component, name)
        require(json.loads(json.dumps(value)) == value, f"option '{name}' is {value!r}, which is not plain data")
        again = parse(name, str(value), hints[name])
        require(again == value, f"option '{name}' is {value!r}, but its text gives {again!r}")


def it_is_frozen_and_equal_to_its_rebuilt_self(component: Any) -> None:
    """A component is a value: frozen, hashable, and equal to what its options and slots build again."""
    cls = type(component)
    given = {name: getattr(component, name) for name in (*options_of(cls), *slots_of(cls))}
    again = cls(**given)
    require(again == component, f"{again!r} is not equal to {component!r}")
    require(hash(again) == hash(component), "equal components have different hashes")
    for name in given:
        try:
            setattr(component, name, given[name])
        except attrs.exceptions.FrozenInstanceError:
            continue
        require(False, f"'{name}' can be assigned: use @component, which freezes")


def the_guarantee_is_documented(component: Any) -> None:
    """An oracle's docstring, or its module's, states the trust model and the neighbouring relation, or says NOT
    private."""
    text = documentation(type(component))
    if component.measure == "exact":
        require(
            "not private" in text.lower(), "it adds no noise, and its docstring does not say that it is NOT private"
        )
        return
    trust = component.trust
    relation = trust.relation.removesuffix(" one row")
    require(trust.__name__.lower() in text.lower(), f"its docstring does not name the trust model, {trust.__name__}")
    require(relation in text.lower(), f"its docstring does not name the neighbouring relation, '{trust.relation}'")


def documentation(cls: type[Any]) -> str:
    """The class's docstring and its module's."""
    module = inspect.getdoc(sys.modules[cls.__module__]) or ""
    return f"{cls.__doc__ or ''}\n{module}"


def the_registry_says_what_the_class_is(component: Any) -> None:
    """An installed spec agrees with its class: role, trust, private or not, presets that name real options and
    slots."""
    cls = component if isinstance(component, type) else type(component)
    for spec in specs_of(cls):
        where = f"the spec '{spec.name}'"
        require(spec.role in ROLES, f"{where} has the role '{spec.role}'")
        require(registry().load(spec) is cls, f"{where} loads another class from {spec.target}")
        require(spec.summary.strip() and "\n" not in spec.summary, f"{where} has no summary of one line")
        require(spec.name == spec.name.lower() and " " not in spec.name, f"{where} is not kebab-case")
        if not isinstance(component, type):
            roles = roles_of(component)
            require(spec.role in roles, f"{where} says {spec.role}, the class is a {' and a '.join(roles)}")
        _check_trust(spec, component, where)
        _check_presets(spec, cls, where)


def specs_of(cls: type[Any]) -> tuple[Spec, ...]:
    """Under which names a class is installed."""
    target = f"{cls.__module__}:{cls.__qualname__}"
    return tuple(spec for spec in registry().specs() if spec.target == target)


def _check_trust(spec: Spec, component: Any, where: str) -> None:
    own = trust_of(component if isinstance(component, type) else type(component))
    require(own in (None, spec.trust), f"{where} says trust {spec.trust}, the class says {own}")
    exact = getattr(component, "measure", None) == "exact"
    require(not (exact and spec.private), f"{where} says private, the class adds no noise")


def _check_presets(spec: Spec, cls: type[Any], where: str) -> None:
    if not attrs.has(cls):
        require(not spec.presets, f"{where} has presets, the class has no options")
        return
    options, slots, hints = options_of(cls), slots_of(cls), get_type_hints(cls)
    held = METHOD in slots and slot_role(hints[METHOD]) == "Method"
    missing = [name for name in vars(Wrapper) if not name.startswith("_") and not hasattr(cls, name)]
    require(not spec.adds or held, f"{where} adds '{spec.adds}', the class has no slot '{METHOD}' for a method")
    require(not spec.adds or not missing, f"{where} adds '{spec.adds}', the class lacks {', '.join(missing)}")
    for name, value in spec.presets.items():
        require(name in options or name in slots, f"{where} sets '{name}', which is no option or slot of the class")
        try:
            if name in options:
                options[name][0].check(name, value)
            elif isinstance(slots[name], CandidateSlot):
                require(registry().candidates(value), f"no method has the objective '{value}'")
            else:
                registry().spec(slot_role(hints[name]), value)
        except CloisterError as error:
            require(False, f"{where} sets '{name}' to {value!r}: {error}")
    if all(spec.presets.get(name, facts.default) is not None for name, facts in slots.items()):
        for components in ({}, *spec.alternatives):
            compose(registry(), spec.role, spec.name, components, {})


DECLARED = (
    every_option_and_slot_is_explained,
    options_keep_to_their_bounds,
    options_can_be_given_as_text,
    it_is_frozen_and_equal_to_its_rebuilt_self,
)
"""For every component that is declared with ``@component``."""


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
    epsilon: sqrt(2 rho); only Gaussian noise says its sigma, since it then counts as mu^2, whatever it is paid in."""
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
                oracle.measure == "gaussian" or math.isinf(event.sigma),
                f"an oracle of the measure {oracle.measure} declares the sigma {event.sigma} of Gaussian noise",
            )
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
