"""Composing components by name, with the checks that an editor makes on Python code.

``--with slot=name`` and ``--with slot.inner=name`` fill slots; ``--set option=value`` and ``--set slot.option=value``
set options. Trust is read from the same annotations that mypy reads.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Any, Literal, TypeAlias, TypeVar, Union, cast, get_args, get_origin, get_type_hints

import attrs

from cloister.core.budget import Measure, PrivacyNotion
from cloister.core.errors import CloisterError, InvalidInput, UnknownName, WrongComposition
from cloister.core.registry.components import (
    ROLES,
    CandidateSlot,
    Role,
    Slot,
    Spec,
    options_of,
    slots_of,
    trust_of,
)
from cloister.core.registry.registry import Registry

V = TypeVar("V")


@cache
def hints_of(cls: Any) -> dict[str, Any]:
    """Return a class's annotations, evaluated once: that takes longer than to compose it."""
    return get_type_hints(cls)


@attrs.frozen
class Unregistered(Spec):
    """Stands for the Spec of a class that no installed plugin offers. It runs, but no record can name it."""


@attrs.frozen
class Composed:
    """A component with all its slots filled.

    Args:
        value: the instance.
        spec: what it was made from.
        inner: the components in its slots, by slot name.
        trust: the trust model that all its slots share; None if it works under any.
        unable: why other candidates of a ``choices`` slot cannot be composed, by name.
        unguarded: slots that the name's presets fill with parts without a guarantee.
    """

    value: Any
    spec: Spec
    inner: Mapping[str, Composed]
    trust: str | None
    unable: Mapping[str, str] = attrs.field(factory=dict, eq=False)
    unguarded: tuple[str, ...] = attrs.field(default=(), eq=False)

    @property
    def currencies(self) -> frozenset[PrivacyNotion]:
        """How the oracles in here count privacy, asked or not. An inner oracle spends what the outer one declares."""
        if hasattr(self.value, "measure"):
            return frozenset({PrivacyNotion.of(self.value)})
        return frozenset[PrivacyNotion]().union(*(part.currencies for part in self.inner.values()))

    @property
    def measures(self) -> frozenset[Measure]:
        """Measures of all slots; a run's questions decide in which it pays (``accounting.privacy_target``)."""
        return frozenset(currency.measure for currency in self.currencies)

    @property
    def uses_delta(self) -> bool:
        """Whether an oracle in here spends a delta of its own, asked or not."""
        return any(currency.uses_delta for currency in self.currencies)

    @property
    def private(self) -> bool:
        """True if every part claims a guarantee and no oracle counts its budget as 'exact'.

        A name that claims none because of its presets is as private as the parts that replace them.
        """
        blamed = [name for name in self.unguarded if self.inner[name].spec.name != self.spec.presets[name]]
        claimed = self.spec.private or (bool(blamed) and len(blamed) == len(self.unguarded))
        return claimed and "exact" not in self.measures and all(part.private for part in self.inner.values())

    @property
    def unregistered(self) -> str:
        """Name of the first class in here that no installed plugin offers; empty if all are known."""
        own = self.spec.name if isinstance(self.spec, Unregistered) else ""
        return own or next(filter(None, (part.unregistered for part in self.inner.values())), "")

    def config(self) -> dict[str, Any]:
        """Names and options of all components, nested, as plain data: how a plan or a result records its method."""
        options = {name: getattr(self.value, name) for name in options_of(type(self.value))}
        slots = {name: part.config() for name, part in self.inner.items()}
        return {"name": self.spec.name, "options": options, "slots": slots}


Composing: TypeAlias = Callable[[Mapping[str, str]], Composed]
"""Composes a component with these component names, by its own slot paths, beside those that it has anyway."""

MakesCandidate: TypeAlias = Callable[[str, Mapping[str, str], Composing, bool], Composed | None]
"""Composes a candidate of a ``choices`` slot; None: it is none here. It is told the method's name, what its slots are
named already, how to compose it, and whether the caller named it or anything in it."""


def for_a_curator(name: str, wires: Mapping[str, str], composing: Composing, named: bool) -> Composed | None:
    """Return the candidate, unless its trust is not Central and the caller did not name it."""
    found = composing({})
    return found if named or found.trust in (None, "Central") else None


def compose(
    registry: Registry,
    role: Role,
    name: str,
    wires: Mapping[str, str],
    values: Mapping[str, Any],
    parts: Mapping[str, Composed] = {},
    candidate: MakesCandidate = for_a_curator,
) -> Composed:
    """Build a component by name.

    A slot that is not named holds the name's preset or the slot's default; ``oracle_resolver`` fills slots for a trust
    model.

    Args:
        registry: the installed plugins.
        role: role of the component.
        name: its registry name.
        wires: component name per slot path ("counts", "sums.randomiser").
        values: value, or text to be parsed, per option path ("rounds", "counts.levels").
        parts: components that are made already, per slot path.
        candidate: makes each candidate of a ``choices`` slot. One that cannot be made is left out, unless the caller
            named it or anything in it.

    Raises:
        UnknownName: no such component, slot or option, with the nearest names.
        WrongComposition: trust models that do not fit, or an empty slot.
        InvalidInput: an option value out of its bounds.
    """
    wires, values = dict(wires), dict(values)
    composed = _Composer(registry, wires, values, parts, candidate).composed(role, name, "")
    for path in wires:
        _check_path(composed, path, "slot")
    for path in values:
        _check_path(composed, path, "option")
    return composed


@attrs.frozen
class _Composer:
    """One call of ``compose``. Args: as it has them."""

    registry: Registry
    wires: dict[str, str]
    values: dict[str, Any]
    parts: Mapping[str, Composed]
    candidate: MakesCandidate

    def composed(self, role: Role, name: str, path: str) -> Composed:
        spec = self.registry.spec(role, name)
        cls: Any = self.registry.load(spec)
        hints, inner, arguments = dict(hints_of(cls)), dict[str, Composed](), dict[str, Any]()
        unable = dict[str, str]()
        for field, facts in slots_of(cls).items():
            if isinstance(facts, CandidateSlot):
                every, unable = self._candidates(str(spec.presets.get(field, facts.default)), path)
                arguments[field] = {title: part.value for title, part in every.items()}
                inner |= every
                hints |= dict.fromkeys(every, one_of(hints[field]))
            else:
                inner[field] = self._slot(spec, field, facts, hints[field], path)
                arguments[field] = inner[field].value
        for field in options_of(cls):
            where = f"{path}{field}"
            if where in self.values:
                arguments[field] = parse(where, self.values[where], hints[field])
            elif field in spec.presets:
                arguments[field] = spec.presets[field]
        agreed = agreed_trust(self.registry, name, path, hints, inner)
        return Composed(cls(**arguments), spec, inner, trust_of(cls) or agreed, unable, self._unguarded(spec, inner))

    def _unguarded(self, spec: Spec, inner: Mapping[str, Composed]) -> tuple[str, ...]:
        preset = [name for name in spec.presets if name in inner]
        return tuple(n for n in preset if not self.registry.spec(inner[n].spec.role, str(spec.presets[n])).private)

    def _slot(self, spec: Spec, field: str, facts: Slot, hint: Any, path: str) -> Composed:
        where, role = f"{path}{field}", slot_role(hint)
        if where in self.parts:
            return self.parts[where]
        chosen = self.wires.get(where, spec.presets.get(field, facts.default))
        if chosen is None:
            offer = ", ".join(s.name for s in self.registry.specs(role)) or "none is installed"
            raise WrongComposition(
                f"slot '{where}' of '{spec.name}' is empty: fill it by --with {where}=NAME, NAME one of: {offer}"
            )
        try:
            return self.composed(role, str(chosen), f"{where}.")
        except UnknownName as error:
            if (error.kind, error.name) == (role, chosen):
                raise WrongComposition(f"slot '{where}' of '{spec.name}' takes a {role}: {error}") from error
            raise

    def _candidates(self, objective: str, path: str) -> tuple[dict[str, Composed], dict[str, str]]:
        """Return the candidates of a ``choices`` slot, and why others cannot be."""
        every = list(self.registry.predicting(objective))
        known = [spec.name for spec, broken in every if not broken]
        unable = {spec.name: broken for spec, broken in every if broken}
        named = {where.removeprefix(path): to for where, to in self.wires.items() if where.startswith(path)}
        methods = {s.name for s in self.registry.specs("Method")}
        only = {title: to for title, to in named.items() if "." not in title and to in methods}
        left_out = [title for title in (*known, *unable) if named.get(title) == "none"]
        for title in left_out:
            del self.wires[f"{path}{title}"]
            unable.pop(title, None)
        found = dict[str, Composed]()
        unable = {} if only else unable
        for title, name in (only or {t: t for t in known if t not in left_out}).items():
            where = f"{path}{title}"
            mentioned = where in self.wires or any(at.startswith(f"{where}.") for at in (*self.wires, *self.values))
            try:
                part = self.candidate(name, below(self.wires, where), partial(self._at, where, name), mentioned)
            except CloisterError as error:
                if mentioned:
                    raise
                unable[title] = str(error)
                continue
            if part is not None:
                found[title] = part
        if not found:
            raise WrongComposition(
                f"no method is left to choose from: of {', '.join(known) or 'no candidates'} none runs as composed "
                f"under the trust model asked for (Central if none was), or all are left out"
            )
        return found, unable

    def _at(self, path: str, name: str, more: Mapping[str, str]) -> Composed:
        """Return the method at this path, with more of its slots named."""
        wires = {**{f"{path}.{slot}": to for slot, to in more.items()}, **self.wires}
        return attrs.evolve(self, wires=wires).composed("Method", name, f"{path}.")


def below(paths: Mapping[str, V], name: str) -> dict[str, V]:
    """Values given by path for the component in the slot ``name``, by its own paths."""
    return {path.removeprefix(f"{name}."): value for path, value in paths.items() if path.startswith(f"{name}.")}


def slot_role(hint: Any) -> Role:
    """Return the role that a slot's annotation names."""
    hint = one_of(hint)
    role = getattr(get_origin(hint) or hint, "__name__", "")
    if role not in ROLES:
        raise TypeError(f"a slot must be annotated with a role ({', '.join(ROLES)}), not {hint!r}")
    return cast(Role, role)


def one_of(hint: Any) -> Any:
    """Return the annotation of one component of a slot that holds many by name."""
    return get_args(hint)[1] if get_origin(hint) is Mapping else hint


def slot_trust(hint: Any) -> str | None:
    """Return the trust model that a slot's annotation fixes; None for a type variable or a role without one."""
    arguments = get_args(one_of(hint))
    return arguments[0].__name__ if arguments and isinstance(arguments[0], type) else None


def agreed_trust(
    registry: Registry, name: str, path: str, hints: dict[str, Any], inner: Mapping[str, Composed]
) -> str | None:
    """Return the one trust model of the slots, or raise WrongComposition, which names the slot and its choices."""
    agreed: tuple[str, Composed] | None = None
    for field, part in inner.items():
        hint = hints[field]
        if not get_args(hint) or part.trust is None:  # a component without questions fits any trust model
            continue
        need, via = slot_trust(hint), ""
        if need is None and isinstance(get_args(hint)[0], TypeVar) and agreed is not None:
            need, via = agreed[1].trust, f" because slot '{path}{agreed[0]}' holds '{agreed[1].spec.name}'"
        if need is not None and part.trust != need:
            offer = ", ".join(s.name for s in registry.specs(part.spec.role) if s.trust == need) or "none is installed"
            raise WrongComposition(
                f"slot '{path}{field}' of '{name}' is {need}{via}; '{part.spec.name}' is {part.trust}. {need} "
                f"choices: {offer}"
            )
        agreed = agreed or (field, part)
    return agreed[1].trust if agreed else None


def _check_path(composed: Composed, path: str, kind: str) -> None:
    *steps, last = path.split(".")
    for step in steps:
        if step not in composed.inner:
            raise UnknownName("slot", step, composed.inner, f"(in '{path}', of '{composed.spec.name}')")
        composed = composed.inner[step]
    cls = type(composed.value)
    known: Mapping[str, Any] = composed.inner if kind == "slot" else options_of(cls)
    if last not in known:
        hint = f"('{composed.spec.name}' has none)" if not known else f"(of '{composed.spec.name}')"
        if any(isinstance(facts, CandidateSlot) for facts in slots_of(cls).values()):
            hint = f"(of '{composed.spec.name}': write NAME.{last} for a candidate's, or choose a method by --method)"
        raise UnknownName(kind, last, known, hint)


def parse(name: str, value: Any, hint: Any) -> Any:
    """Parse an option's text by its annotation, or raise InvalidInput; other values pass through."""
    if not isinstance(value, str):
        return value
    if get_origin(hint) in (Union, types.UnionType):
        if value.lower() == "none" and type(None) in get_args(hint):
            return None
        hint = next(h for h in get_args(hint) if h is not type(None))
    if get_origin(hint) is Literal or hint is str:
        return value
    try:
        if hint is bool:
            return {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}[value.lower()]
        number = float(value) if hint is int and "e" in value.lower() else None  # 1e6, as --rows takes it
        return hint(value) if number is None or not number.is_integer() else int(number)
    except (ValueError, KeyError, TypeError):
        kind = "a whole number" if hint is int else "a number" if hint is float else getattr(hint, "__name__", hint)
        raise InvalidInput(f"option '{name}' is '{value}': it takes {kind}") from None
