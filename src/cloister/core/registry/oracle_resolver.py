"""Resolution of open oracle slots for a trust model, of named methods and of candidates of ``auto`` alike.

A method that fits the trust model as it is stays so. Else its open slots for oracles, those of methods in slots too,
take that trust's oracles in their declared order (``Spec.fills``): one of counts and one of vectors for all slots, the
earliest that can be paid and with which the method runs; then, slot by slot, an earlier one that runs too. Slots that
the caller named stay as named.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any, get_type_hints

import attrs

from cloister.core.errors import CloisterError, InvalidInput
from cloister.core.registry.components import CandidateSlot, Role, Spec, options_of, slots_of
from cloister.core.registry.compose import Composed, Composing, compose, slot_role, slot_trust
from cloister.core.registry.registry import Registry
from cloister.core.trust import TRUSTS, Central

ORACLES: tuple[Role, ...] = "FrequencyOracle", "VectorSumOracle"
"""Roles whose slots a trust model fills."""


def anything(composed: Composed) -> None:
    """Asks for nothing beyond what composes."""


@attrs.frozen
class OracleResolver:
    """Fills the slots that names leave open.

    Args:
        registry: of the components.
        trust: the trust model whose oracles fill slots; None: presets and defaults do, and candidates are a curator's.
        parties: how many pool their rows, which sets the noise shares and the ring of oracles; 0: not said.
        pays: raises a CloisterError where an oracle, or the oracles of a method, cannot be paid.
        runs: raises one where a method cannot run, or not be paid.
    """

    registry: Registry
    trust: str | None = None
    parties: int = 0
    pays: Callable[[Composed], object] = anything
    runs: Callable[[Composed], object] = anything

    def filled(
        self,
        role: Role,
        name: str,
        wires: Mapping[str, str],
        values: Mapping[str, Any],
        parts: Mapping[str, Composed] = {},
        lazily: bool = False,
    ) -> Composed:
        """Return a component with all its slots filled.

        Args: as of ``compose``; lazily: a method that fits as it is need only be paid.

        Raises: as ``compose``. InvalidInput: nothing of this trust fits.
        """

        def composing(more: Mapping[str, str]) -> Composed:
            every = {**more, **wires}
            return compose(self.registry, role, name, every, self._pooled(every, values), parts, self._candidate)

        cls = self.registry.load(self.registry.spec(role, name))
        if self.trust is None or role != "Method" or any(isinstance(s, CandidateSlot) for s in slots_of(cls).values()):
            return composing({})
        named = {path: part.spec.name for path, part in parts.items()} | dict(wires)
        return self._fitting(name, named, composing, lazily)

    def check_trust(self, composed: Composed) -> None:
        """Raise InvalidInput if a method is of another trust model than the one asked for."""
        if composed.trust not in (None, self.trust):
            raise InvalidInput(
                f"'{composed.spec.name}' as composed is {composed.trust}, and the trust model asked for is "
                f"{self.trust}: leave its oracles open, or name {self.trust} ones"
            )

    def _candidate(self, name: str, wires: Mapping[str, str], composing: Composing, named: bool) -> Composed | None:
        """Return a candidate of ``auto``; one for people's own reports keeps its trust, unless the caller named it."""
        filler, found = attrs.evolve(self, trust=self.trust or "Central"), composing({})
        if found.trust in (None, filler.trust):
            return found
        if TRUSTS[found.trust].relation != Central.relation and not named:
            return None
        return filler._fitting(name, wires, composing, lazily=True)

    def _fitting(self, name: str, wires: Mapping[str, str], composing: Composing, lazily: bool) -> Composed:
        """Return a method as it is, if it fits; else with the trust's oracles in its open slots."""
        slots = dict(oracle_slots(self.registry, name, wires))
        try:
            as_it_is = composing({})
            if as_it_is.trust in (None, self.trust):
                (self.pays if lazily or not slots else self.runs)(as_it_is)
                return as_it_is
        except CloisterError:
            if not slots:
                raise

        def tried(oracles: Mapping[str, str]) -> Composed:
            composed = composing(oracles)
            try:
                self.check_trust(composed)
                self.runs(composed)
            except CloisterError as error:
                raise InvalidInput(f"no {self.trust} oracles fit '{name}': {error}") from error
            return composed

        return self._searched(name, slots, tried)

    def _searched(self, name: str, slots: Mapping[str, Role], tried: Composing) -> Composed:
        """Return the first composition that runs.

        It has one count oracle and one vector oracle for all open slots, the earliest in their orders; then, slot by
        slot, an earlier one that runs too.
        """
        orders: dict[Role, list[str]] = {role: list(self._payable(role)) for role in dict.fromkeys(slots.values())}
        first: CloisterError | None = None
        for each in sorted(itertools.product(*(range(len(order)) for order in orders.values())), key=sum):
            chosen = {role: order[i] for (role, order), i in zip(orders.items(), each, strict=True)}
            oracles = {path: chosen[role] for path, role in slots.items()}
            try:
                found = tried(oracles)
            except CloisterError as error:
                first = first or error
                continue
            return _improved(found, slots, orders, oracles, tried)
        raise first or InvalidInput(f"no {self.trust} oracles fit '{name}': none can be paid, or is installed")

    def _payable(self, role: Role) -> Iterator[str]:
        """Yield the trust's oracles of a role, in order, except those that cannot be paid."""
        for spec in self.registry.in_order(role, self.trust):
            with suppress(CloisterError):
                self.pays(compose(self.registry, role, spec.name, {}, {}))
                yield spec.name

    def _pooled(self, wires: Mapping[str, str], values: Mapping[str, Any]) -> dict[str, Any]:
        """Option values, completed by the number of parties for every oracle that asks how many there are."""
        if not self.parties:
            return dict(values)
        return {**{f"{path}.parties": self.parties for path, name in wires.items() if self._asks(name)}, **values}

    def _asks(self, name: str) -> bool:
        """Whether it is the name of an oracle that asks how many parties there are."""
        with suppress(CloisterError):
            oracles = [spec for spec in self.registry.find(name) if spec.role in ORACLES]
            return bool(oracles) and "parties" in options_of(self.registry.load(oracles[0]))
        return False


def _improved(
    found: Composed,
    slots: Mapping[str, Role],
    orders: Mapping[Role, list[str]],
    oracles: Mapping[str, str],
    tried: Composing,
) -> Composed:
    """Return the composition with the earliest oracle in each slot that runs, beginning with these by path."""
    for path, role in slots.items():
        for earlier in orders[role][: orders[role].index(oracles[path])]:
            with suppress(CloisterError):
                found, oracles = tried({**oracles, path: earlier}), {**oracles, path: earlier}
                break
    return found


def oracle_slots(
    registry: Registry, method: str, wires: Mapping[str, str], path: str = ""
) -> Iterator[tuple[str, Role]]:
    """Yield paths and roles of a method's oracle slots that ``wires`` does not name, those of inner methods too."""
    spec: Spec = registry.spec("Method", method)
    cls = registry.load(spec)
    hints = get_type_hints(cls)
    for name, facts in slots_of(cls).items():
        where, preset = f"{path}{name}", spec.presets.get(name, facts.default)
        if isinstance(facts, CandidateSlot):
            for candidate in registry.candidates(str(preset)):
                chosen = wires.get(f"{path}{candidate.name}", candidate.name)
                if chosen != "none":
                    yield from oracle_slots(registry, chosen, wires, f"{path}{candidate.name}.")
        elif slot_role(hints[name]) in ORACLES:
            if slot_trust(hints[name]) is None and where not in wires:
                yield where, slot_role(hints[name])
        elif slot_role(hints[name]) == "Method":
            yield from oracle_slots(registry, str(wires.get(where, preset)), wires, f"{where}.")
