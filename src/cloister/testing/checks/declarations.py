"""Checks of a component's declarations: options, slots, documentation, registry entry, and an oracle's events."""

from __future__ import annotations

import inspect
import json
import math
import sys
from collections.abc import Iterator, Sequence
from typing import Any, get_type_hints

import attrs
import numpy as np

from cloister.core.plain_data import digest
from cloister.core.registry.components import ROLES, CandidateSlot, Option, Slot, fields, options_of, slots_of, trust_of
from cloister.core.registry.compose import compose, parse, slot_role
from cloister.core.registry.registry import registry
from cloister.core.wrappers import METHOD, Wrapper
from cloister.plugin import Budget, CloisterError, Event, NoiseRng, Spec
from cloister.testing.check import Violation, refuses, require, role_of, roles_of
from cloister.testing.probes import PAYABLE, Probe, budget_of, narrow_shapes, varied_rows, wide_shapes, worst_vectors
from cloister.testing.statistics import common_step
from cloister.testing.stubs import digest_in_another_process


def every_option_and_slot_is_explained(component: Any) -> None:
    """Every field of a component is an ``option`` with help, or a ``slot`` with help and a role."""
    cls = type(component)
    hints = get_type_hints(cls)
    for field in fields(cls):
        facts = field.metadata.get("cloister")
        if not isinstance(facts, (Option, Slot)):
            raise Violation(f"'{field.name}' is neither an option() nor a slot()")
        require(facts.help.strip(), f"'{field.name}' has no help text")
        if isinstance(facts, Slot):
            slot_role(hints[field.name])


def options_keep_to_their_bounds(component: Any) -> None:
    """Defaults of options are within their bounds or choices; the constructor refuses other values, NaN included."""
    cls = type(component)
    for name, (facts, default) in options_of(cls).items():
        try:
            facts.check(name, default)
        except CloisterError as error:
            require(False, f"its default breaks its own bounds: {error}")
        for value in _out_of_range(facts):
            require(
                refuses(CloisterError, attrs.evolve, component, **{name: value}),
                f"option '{name}' accepts {value!r}, but must be {facts.range}",
            )


def _out_of_range(facts: Option) -> Iterator[Any]:
    """Yield values that the option must refuse."""
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
    """Options are plain data, and their text in ``--set`` and configuration files gives the value again."""
    hints = get_type_hints(type(component))
    for name in options_of(type(component)):
        value = getattr(component, name)
        require(json.loads(json.dumps(value)) == value, f"option '{name}' is {value!r}, which is not plain data")
        again = parse(name, str(value), hints[name])
        require(again == value, f"option '{name}' is {value!r}, but its text gives {again!r}")


def it_is_frozen_and_equal_to_its_rebuilt_self(component: Any) -> None:
    """Components are values: frozen, hashable, and equal to what their options and slots build again."""
    cls = type(component)
    arguments = {name: getattr(component, name) for name in (*options_of(cls), *slots_of(cls))}
    again = cls(**arguments)
    require(again == component, f"{again!r} is not equal to {component!r}")
    require(hash(again) == hash(component), "equal components have different hashes")
    for name, value in arguments.items():
        frozen = refuses(attrs.exceptions.FrozenInstanceError, setattr, component, name, value)
        require(frozen, f"'{name}' can be assigned: use @component, which freezes")


def the_guarantee_is_documented(component: Any) -> None:
    """Docstrings of an oracle or its module state trust model and neighbouring relation, or NOT private."""
    text = documentation(type(component))
    if component.measure == "exact":
        require("not private" in text.lower(), "it adds no noise, and its docstring lacks 'NOT private'")
        return
    trust = component.trust
    relation = trust.relation.removesuffix(" one row")
    require(trust.__name__.lower() in text.lower(), f"its docstring does not name the trust model, {trust.__name__}")
    require(relation in text.lower(), f"its docstring does not name the neighbouring relation, '{trust.relation}'")


def documentation(cls: type[Any]) -> str:
    """Return the class's docstring and its module's."""
    module = inspect.getdoc(sys.modules[cls.__module__]) or ""
    return f"{cls.__doc__ or ''}\n{module}"


def the_registry_says_what_the_class_is(component: Any) -> None:
    """Installed specs agree with their class on role, trust, privacy, and presets of existing options and slots."""
    cls = component if isinstance(component, type) else type(component)
    for spec in specs_of(cls):
        label = f"the spec '{spec.name}'"
        require(spec.role in ROLES, f"{label} has the role '{spec.role}'")
        require(registry().load(spec) is cls, f"{label} loads another class from {spec.target}")
        require(spec.summary.strip() and "\n" not in spec.summary, f"{label} has no summary of one line")
        require(spec.name == spec.name.lower() and " " not in spec.name, f"{label} is not kebab-case")
        if not isinstance(component, type):
            roles = roles_of(component)
            require(spec.role in roles, f"{label} declares {spec.role}, the class is a {' and a '.join(roles)}")
        _check_trust(spec, component, label)
        _check_presets(spec, cls, label)


def specs_of(cls: type[Any]) -> tuple[Spec, ...]:
    """Return the specs that a class is installed under."""
    target = f"{cls.__module__}:{cls.__qualname__}"
    return tuple(spec for spec in registry().specs() if spec.target == target)


def _check_trust(spec: Spec, component: Any, label: str) -> None:
    class_trust = trust_of(component if isinstance(component, type) else type(component))
    require(class_trust in (None, spec.trust), f"{label} declares trust {spec.trust}, the class {class_trust}")
    exact = getattr(component, "measure", None) == "exact"
    require(not (exact and spec.private), f"{label} declares it private, the class adds no noise")


def _check_presets(spec: Spec, cls: type[Any], label: str) -> None:
    if not attrs.has(cls):
        require(not spec.presets, f"{label} has presets, the class has no options")
        return
    options, slots, hints = options_of(cls), slots_of(cls), get_type_hints(cls)
    has_method_slot = METHOD in slots and slot_role(hints[METHOD]) == "Method"
    missing = [name for name in vars(Wrapper) if not name.startswith("_") and not hasattr(cls, name)]
    require(
        not spec.adds or has_method_slot, f"{label} adds '{spec.adds}', the class has no slot '{METHOD}' for a method"
    )
    require(not spec.adds or not missing, f"{label} adds '{spec.adds}', the class lacks {', '.join(missing)}")
    for name, value in spec.presets.items():
        require(name in options or name in slots, f"{label} sets '{name}', which is no option or slot of the class")
        try:
            if name in options:
                options[name][0].check(name, value)
            elif isinstance(slots[name], CandidateSlot):
                require(registry().candidates(value), f"no method has the objective '{value}'")
            else:
                registry().spec(slot_role(hints[name]), value)
        except CloisterError as error:
            require(False, f"{label} sets '{name}' to {value!r}: {error}")
    if all(spec.presets.get(name, facts.default) is not None for name, facts in slots.items()):
        for components in ({}, *spec.alternatives):
            compose(registry(), spec.role, spec.name, components, {})


DECLARED = (
    every_option_and_slot_is_explained,
    options_keep_to_their_bounds,
    options_can_be_given_as_text,
    it_is_frozen_and_equal_to_its_rebuilt_self,
)
"""Checks of every component that is declared with ``@component``."""


ROUNDING = 1 + 1e-9
"""Factor by which shares may exceed a budget, for errors of floating-point sums."""

EPSILONS = (0.05, 1.0, 6.0)


def spent(events: Sequence[Event]) -> Budget:
    """Return the sum of what events spend, in rho if measures differ."""
    measures = {event.spent.measure for event in events}
    if len(measures) == 1:
        return Budget(events[0].spent.measure, sum(event.spent.amount for event in events))
    return Budget("zcdp", sum(rho_of(event.spent) for event in events))


def rho_of(spent: Budget) -> float:
    """Return a budget in rho (Bun and Steinke 2016, Propositions 1.4 and 1.6)."""
    rho = {"pure": spent.amount**2 / 2, "gaussian": spent.amount / 2, "zcdp": spent.amount, "exact": math.inf}
    return rho[spent.measure]


def probes(oracle: Any, epsilons: Sequence[float] = EPSILONS) -> list[Probe]:
    """Open the oracle for every narrow shape, in every measure that it accepts."""
    return [
        Probe.of(oracle, shape, budget_of(measure, epsilon))
        for shape in narrow_shapes(role_of(oracle))
        for measure in PAYABLE[oracle.measure]
        for epsilon in epsilons
    ]


def events_cover_the_budget_and_no_more(oracle: Any) -> None:
    """Channels declare at least one event, in the budget's measure; events add up to at most the budget.

    Deltas do too, and only an oracle with ``uses_delta`` has any. Only pure noise paid in rho declares its epsilon,
    sqrt(2 rho); only Gaussian noise declares its sigma, since it then counts as mu^2 whatever it is paid in.
    """
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
        max_delta = probe.budget.delta if oracle.uses_delta else 0.0
        require(
            delta <= max_delta * ROUNDING,
            f"{probe.shape}: its events' deltas add up to {delta:.6g}, it may spend {max_delta:.6g}",
        )


def budgets_in_a_foreign_measure_are_refused(oracle: Any) -> None:
    """Budgets in mu^2 for pure noise, or in epsilon for Gaussian noise, are refused by ``open``."""
    for measure in ("pure", "gaussian"):
        if measure in PAYABLE[oracle.measure] or oracle.measure == "exact":
            continue
        require(
            refuses(CloisterError, Probe.of, oracle, narrow_shapes(role_of(oracle))[0], Budget(measure, 1.0)),
            f"an oracle of the measure {oracle.measure} was opened with a {measure} budget",
        )


def what_it_costs_is_known_before_any_row(oracle: Any) -> None:
    """Channels are pure functions of public facts: opened twice, or in another process, they have one digest.

    No row changes it or the events.
    """
    for probe in probes(oracle, EPSILONS[1:2]):
        again = Probe.of(oracle, probe.shape, probe.budget)
        opening_digest = digest(probe.channel)
        require(opening_digest == digest(again.channel), f"{probe.shape}: opened twice, it has two digests")
        declared = probe.channel.events
        rng = NoiseRng.for_tests(1)
        probe.table(probe.summary(varied_rows(probe.shape), rng), rng)
        require(probe.channel.events == declared, f"{probe.shape}: rows changed its events")
        require(digest(probe.channel) == opening_digest, f"{probe.shape}: rows changed its digest")
    last = probes(oracle, EPSILONS[1:2])[-1].channel
    require(
        digest_in_another_process(last) == digest(last), "another process computes another digest of an equal channel"
    )


def discreteness_is_declared_truthfully(oracle: Any) -> None:
    """``l0_sensitivity`` is at least the number of released integers that one row can change.

    ``sigma`` is at most the noise's standard deviation in released steps. Accounting compares the discrete distribution
    with a real Gaussian by these two.
    """
    for shape in wide_shapes(role_of(oracle), 300):
        probe, rng = Probe.of(oracle, shape, budget_of("gaussian", 1.0)), NoiseRng.for_tests(2)
        max_touched = len(shape.sizes) * max(int(np.count_nonzero(v)) for v in worst_vectors(shape.bound))
        touched = sum(event.l0_sensitivity for event in probe.channel.events)
        require(
            touched >= max_touched, f"{shape}: one row can change {max_touched} integers, l0_sensitivity is {touched}"
        )
        claimed = max(event.sigma for event in probe.channel.events)
        table = probe.table(probe.summary(varied_rows(probe.shape), rng), rng)
        levels = zip(probe.by_level(probe.values(table)), probe.by_level(probe.errors(table)), strict=True)
        for level, (values, errors) in enumerate(levels):
            error = float(errors.min())
            step = common_step(values.ravel(), error)
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
"""Checks of every oracle."""

GAUSSIAN = (discreteness_is_declared_truthfully,)
"""Checks of Central oracles that are paid in mu^2."""
