"""Drafts: components as they were asked for, before presets or a trust model fill what they leave open.

Names end here. Whoever reads names (the command line, config and plan files, estimators) makes a draft of them
(``making.drafted``); a run composes drafts, and finds those that it needs beside its method's in the ``Kit``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Self, final

import attrs

from cloister.core.errors import InvalidInput, WrongComposition
from cloister.core.registry.components import CandidateSlot, Role, Spec, slots_of
from cloister.core.registry.compose import (
    Composed,
    MakesCandidate,
    below,
    compose,
    for_a_curator,
    hints_of,
    slot_role,
    slot_trust,
)
from cloister.core.registry.records import paths_in
from cloister.core.registry.registry import Registry

ORACLES: tuple[Role, ...] = "FrequencyOracle", "VectorSumOracle"
"""Roles whose slots a trust model fills."""


@final
@attrs.frozen
class Draft:
    """A component as it was asked for.

    Args:
        registry: where it and its parts are offered.
        spec: its declaration.
        names: component name per slot path ("counts", "start.counts"); slots that it lacks are open.
        options: value, or text to be parsed, per option path ("rounds", "counts.levels").
        parts: components that are made already, per slot path.
        made: the component itself, if it holds a class that no plugin offers: names could not compose it again.
    """

    registry: Registry = attrs.field(repr=False, eq=False)
    spec: Spec
    names: Mapping[str, str] = attrs.field(factory=dict)
    options: Mapping[str, Any] = attrs.field(factory=dict)
    parts: Mapping[str, Composed] = attrs.field(factory=dict)
    made: Composed | None = None

    @property
    def kit(self) -> Kit:
        """The other components that are offered with it."""
        return Kit(self.registry)

    @property
    def cls(self) -> type[Any]:
        """Class of the component. Raises: InvalidInput: it cannot be loaded."""
        return self.registry.load(self.spec) if self.made is None else type(self.made.value)

    @property
    def chooses(self) -> bool:
        """True if it chooses among methods, as ``auto`` does."""
        return any(isinstance(facts, CandidateSlot) for facts in slots_of(self.cls).values())

    def open_oracles(self, path: str = "") -> Iterator[tuple[str, Role]]:
        """Yield paths and roles of the oracle slots that it leaves open, those of its inner methods too.

        Args: path, of the method in here whose slots are meant, as a prefix.
        """
        named = {path: part.spec.name for path, part in self.parts.items()} | dict(self.names)
        cls: Any = self.cls
        hints = hints_of(cls)
        for name, facts in slots_of(cls).items():
            preset, role = str(self.spec.presets.get(name, facts.default)), slot_role(hints[name])
            if isinstance(facts, CandidateSlot):
                inner = {
                    spec.name: named.get(f"{path}{spec.name}", spec.name) for spec in self.registry.candidates(preset)
                }
            else:
                inner = {name: named.get(f"{path}{name}", preset)} if role == "Method" else {}
            if role in ORACLES and slot_trust(hints[name]) is None and f"{path}{name}" not in named:
                yield f"{path}{name}", role
            for slot, method in inner.items():
                if method != "none":
                    spec = self.registry.spec("Method", method)
                    yield from attrs.evolve(self, spec=spec).open_oracles(f"{path}{slot}.")

    def composed(self, candidate: MakesCandidate = for_a_curator) -> Composed:
        """Return the component, with presets and defaults in open slots. Args and errors: as of ``compose``."""
        if self.made is not None:
            return self.made
        return compose(self.registry, self.spec.role, self.spec.name, self.names, self.options, self.parts, candidate)

    def given(
        self,
        names: Mapping[str, str] = {},
        options: Mapping[str, Any] = {},
        parts: Mapping[str, Composed] = {},
    ) -> Self:
        """Return the draft with further names, options and parts.

        Raises: WrongComposition: it holds a class that no plugin offers, and cannot be composed again.
        """
        if self.made is not None:
            raise WrongComposition(
                f"'{self.spec.name}' holds {self.made.unregistered}, which no installed plugin offers: register it"
            )
        return attrs.evolve(
            self,
            names={**self.names, **names},
            options={**self.options, **options},
            parts={**self.parts, **parts},
        )

    def repeating(self, slot: str, part: Composed) -> Self:
        """Return the draft with the names and options of a composed part in a slot."""
        return self.given(*paths_in({"options": {}, "slots": {slot: part.config()}}))

    def candidate(self, title: str, part: Composed) -> Draft:
        """Return the draft of a candidate that this one holds, composed or not."""
        if self.made is not None:
            return drafted_again(self.registry, part)
        return Draft(self.registry, part.spec, below(self.names, title), below(self.options, title))


@final
@attrs.frozen
class Kit:
    """Drafts of the components that a run may need beside its method. Args: registry (where they are offered)."""

    registry: Registry = attrs.field(repr=False)

    def wrapper(self, adds: str) -> Draft:
        """Return the method that wraps others to add this, or raise InvalidInput if none is installed."""
        found = [spec for spec in self.registry.specs("Method") if spec.adds == adds]
        return self._first(found, f"wraps another one to add a {adds}: leave out what asks for one")

    def starter(self) -> Draft:
        """Return the method that compares a start with the pick of ``auto``, or raise InvalidInput if there is none."""
        found = [draft.spec for draft in self.methods if draft.spec.starts]
        return self._first(found, "compares a start with another method's centres: leave the start out")

    @property
    def methods(self) -> list[Draft]:
        """All methods, in order of names."""
        return [Draft(self.registry, spec) for spec in self.registry.specs("Method")]

    @property
    def counters(self) -> list[Draft]:
        """The oracles of counts that a curator's slots are filled with, in the order of trial."""
        return [Draft(self.registry, spec) for spec in self.registry.in_order("FrequencyOracle", "Central")]

    @property
    def exact_counters(self) -> list[Draft]:
        """The oracles of counts that give no guarantee."""
        return [Draft(self.registry, spec) for spec in self.registry.specs("FrequencyOracle") if not spec.private]

    def _first(self, found: list[Spec], words: str) -> Draft:
        """Return the method with the lowest ``fills``, or raise InvalidInput if none has any."""
        known = [spec for spec in found if spec.fills is not None]
        if not known:
            raise InvalidInput(f"no installed method {words}")
        return Draft(self.registry, min(known, key=lambda spec: (spec.fills or 0, spec.name)))


def drafted_again(registry: Registry, composed: Composed) -> Draft:
    """Return the draft that composes a component again, with nothing left open."""
    if composed.unregistered:
        return Draft(registry, composed.spec, made=composed)
    return Draft(registry, composed.spec, *paths_in(composed.config()))
