"""Components made in Python: by name with keywords, and read back as the registry knows them.

A component that was put together in Python is recorded as if it had been given by name: under the name whose presets
and defaults it differs from in the fewest slots and options, with all its slots and options beside it.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_type_hints, overload

import attrs

from cloister.core.errors import CloisterError, InvalidInput, UnknownName, WrongComposition
from cloister.core.registry.components import CandidateSlot, Role, Spec, options_of, parts_of, slots_of, trust_of
from cloister.core.registry.compose import Composed, Unregistered, agreed_trust, one_of, slot_role
from cloister.core.registry.draft import Draft, drafted_again
from cloister.core.registry.oracle_resolver import OracleResolver
from cloister.core.registry.records import paths_in
from cloister.core.registry.registry import Registry, registry
from cloister.core.trust import trust_named

if TYPE_CHECKING:
    from cloister.core.roles import FrequencyOracle, NonPrivateSolver, TreeBuilder, VectorSumOracle
    from cloister.core.session import Method

C = TypeVar("C")

PLAYS: dict[Role, str] = {
    "Method": "cluster",
    "FrequencyOracle": "open",
    "VectorSumOracle": "open",
    "TreeBuilder": "open",
    "NonPrivateSolver": "solve",
}
"""A method that every class of a role has."""


@overload
def make(role: Literal["Method"], name: str, /, *, trust: str | None = None, **parts: Any) -> Method[Any]: ...
@overload
def make(
    role: Literal["FrequencyOracle"], name: str, /, *, trust: str | None = None, **parts: Any
) -> FrequencyOracle[Any]: ...
@overload
def make(
    role: Literal["VectorSumOracle"], name: str, /, *, trust: str | None = None, **parts: Any
) -> VectorSumOracle[Any]: ...
@overload
def make(role: Literal["TreeBuilder"], name: str, /, *, trust: str | None = None, **parts: Any) -> TreeBuilder: ...
@overload
def make(
    role: Literal["NonPrivateSolver"], name: str, /, *, trust: str | None = None, **parts: Any
) -> NonPrivateSolver: ...
@overload
def make(role: Role, name: str, /, *, trust: str | None = None, **parts: Any) -> Any: ...
def make(role: Role, name: str, /, *, trust: str | None = None, **parts: Any) -> Any:
    """Make an installed component by name: ``make("Method", "fastlloyd", sums="discrete-laplace", rounds=5)``.

    Slots not named hold the name's presets, else the declared defaults; where these are of another trust model than
    ``trust``, its first oracles. A run's request (``cloister.run.fit.Request``) knows the sizes asked too, and takes
    the first that can hold them.

    Args:
        role: role of the component.
        name: its registry name.
        trust: trust model whose oracles fill slots of another one.
        parts: by the name of a slot a component, or the registry name of one; by the name of an option its value.

    Raises: UnknownName: no such component, slot or option. WrongComposition: trust models or roles that do not fit.
        InvalidInput: an option value out of its bounds.
    """
    found = registry()
    spec = found.spec(role, name)
    cls = found.load(spec)
    slots, wires, values, held = slots_of(cls), dict[str, str](), dict[str, Any](), dict[str, Composed]()
    if unknown := [part for part in parts if part not in slots and part not in options_of(cls)]:
        raise UnknownName("slot or option", unknown[0], [*slots, *options_of(cls)], f"(of '{name}')")
    for part, given in parts.items():
        if part not in slots:
            values[part] = given
        elif isinstance(slots[part], CandidateSlot):
            for title, one in given.items():
                _wire(found, title, one, wires, values)
        elif isinstance(given, str):
            wires[part] = given
        else:
            held[part] = composed_of(found, slot_role(get_type_hints(cls)[part]), given)
    return OracleResolver(trust_named(trust)).filled(Draft(found, spec, wires, values, held)).value


def _wire(found: Registry, title: str, one: Any, wires: dict[str, str], values: dict[str, Any]) -> None:
    """Wire a candidate of ``choices`` by names."""
    if isinstance(one, str):
        wires[title] = one
        return
    composed = composed_of(found, "Method", one)
    if lost := composed.unregistered:
        raise WrongComposition(f"the candidate '{title}' holds {lost}, which no installed plugin offers: register it")
    names, options = paths_in({"options": {}, "slots": {title: composed.config()}})
    wires |= names
    values |= options


def filled(cls: type[C], **given: Any) -> C:
    """Make a component of this class with preferred parts in slots not given, or raise WrongComposition."""
    hints = get_type_hints(cls)
    for name, facts in slots_of(cls).items():
        if name not in given and facts.default is None:
            raise WrongComposition(f"slot '{name}' of {cls.__name__} has no preferred component: give {name}=...")
        if name not in given:
            given[name] = make(slot_role(hints[name]), str(facts.default))
    return cls(**given)


def composed_of(registry: Registry, role: Role, component: Any) -> Composed:
    """Return a component with everything in its slots, each by its registry name.

    Raises: InvalidInput: it is none of this role. WrongComposition: its slots are of two trust models.
    """
    cls = type(component)
    if isinstance(component, type) or not callable(getattr(component, PLAYS[role], None)):
        raise InvalidInput(
            f"{component!r} is no {role}: give the name of one (cloister list {role}) or a component, as "
            f"cloister.plugin.make({role!r}, name) makes it"
        )
    specs = _specs(registry, role, cls)
    if not specs and (other := [s for r in PLAYS for s in _specs(registry, r, cls)]):
        raise WrongComposition(f"'{other[0].name}' is a {other[0].role}: give a {role}")
    hints, inner = get_type_hints(cls) if slots_of(cls) else {}, dict[str, Composed]()
    for field, facts in slots_of(cls).items():
        held = getattr(component, field)
        for name, part in held.items() if isinstance(facts, CandidateSlot) else ((field, held),):
            inner[name] = composed_of(registry, slot_role(hints[field]), part)
            hints[name] = one_of(hints[field])
    title = f"{cls.__module__}.{cls.__qualname__}"
    spec = min(specs, key=lambda s: (_apart(registry, s, component, inner), not s.private, s.name), default=None)
    spec = spec or Unregistered(title, role, f"{cls.__module__}:{cls.__qualname__}", "not registered")
    return Composed(component, spec, inner, trust_of(cls) or agreed_trust(registry, spec.name, "", hints, inner))


def _specs(registry: Registry, role: Role, cls: type[Any]) -> list[Spec]:
    """Return the Specs by which a class is offered. A broken plugin offers nothing."""
    found = list[Spec]()
    for spec in registry.specs(role):
        if spec.target.rpartition(":")[2] == cls.__name__:
            with suppress(CloisterError):
                if registry.load(registry.spec(role, spec.name)) is cls:
                    found.append(spec)
    return found


def _apart(registry: Registry, spec: Spec, component: Any, inner: Mapping[str, Composed]) -> int:
    """How many slots and options differ from what this name stands for."""
    own = {name: spec.presets.get(name, default) for name, (_, default) in options_of(type(component)).items()}
    found = sum(bool(getattr(component, name) != value) for name, value in own.items())
    for name, facts in slots_of(type(component)).items():
        usual = spec.presets.get(name, facts.default)
        if isinstance(facts, CandidateSlot):
            found += bool({p.spec.name for p in inner.values()} - {s.name for s in registry.candidates(str(usual))})
        else:
            found += inner[name].spec.name != usual
    return found


def drafted(
    method: Any, components: Mapping[str, str] | None = None, options: Mapping[str, Any] | None = None
) -> Draft:
    """Return the draft of a method.

    A component becomes its registry name, with its components and options by path, so that records and answers equal
    those of a request by name.

    Args:
        method: registry name; or a component, or a draft, which have their own components and options.
        components: component name per slot path.
        options: value per option path.

    Raises:
        UnknownName: there is no such method. InvalidInput, WrongComposition: it is no method.
    """
    found = registry()
    if isinstance(method, str):
        return Draft(found, found.spec("Method", method), components or {}, options or {})
    if components or options:
        raise InvalidInput(
            "the method is a component, which has its parts and options: leave components and options out, or give "
            "its registry name"
        )
    return method if isinstance(method, Draft) else drafted_again(found, composed_of(found, "Method", method))


def altered(component: C, changes: Mapping[str, Any], role: Role) -> C:
    """Return a copy with other options and parts.

    Args: changes, by path ("rounds", "counts", "start__counts"): values of options; for slots components, or the
        registry names of some.

    Raises: UnknownName: it has no such option or slot. InvalidInput: the value is out of bounds, or no component.
    """
    cls: type[Any] = type(component)
    hints, slots, held = get_type_hints(cls) if slots_of(cls) else {}, slots_of(cls), parts_of(component)
    fresh, deeper = dict[str, Any](), dict[str, dict[str, Any]]()
    known = [*options_of(cls), *held]
    for path, value in changes.items():
        name, apart, rest = path.partition("__")
        if name not in known or (apart and name not in held):
            raise UnknownName("parameter", name, known, f"(of {cls.__name__})")
        if apart:
            deeper.setdefault(name, {})[rest] = value
        else:
            fresh[name] = value
    choices = next((field for field, facts in slots.items() if isinstance(facts, CandidateSlot)), None)
    for name in {n: None for n in (*fresh, *deeper) if n in held}:
        part_role = slot_role(hints[name if name in slots else str(choices)])
        part = fresh.get(name, held[name])
        part = make(part_role, part) if isinstance(part, str) else part
        composed_of(registry(), part_role, part)
        fresh[name] = altered(part, deeper.get(name, {}), part_role)
    many = {name: fresh.pop(name) for name in list(fresh) if name not in slots and name in held}
    if many and choices:
        fresh[choices] = {**getattr(component, choices), **many}
    given: Any = component
    made: C = attrs.evolve(given, **fresh) if fresh else component
    if fresh:
        composed_of(registry(), role, made)
    return made


def parameters(component: Any, path: str) -> dict[str, Any]:
    """All options and parts below a component, by path: "method__rounds", "method__counts", "method__start__share"."""
    found = {f"{path}__{name}": getattr(component, name) for name in options_of(type(component))}
    for name, part in parts_of(component).items():
        found |= {f"{path}__{name}": part, **parameters(part, f"{path}__{name}")}
    return found
