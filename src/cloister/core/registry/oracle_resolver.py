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
from functools import partial

import attrs

from cloister.core.errors import CloisterError, InvalidInput
from cloister.core.registry.components import Role, options_of
from cloister.core.registry.compose import Composed, Composing
from cloister.core.registry.draft import ORACLES, Draft
from cloister.core.registry.registry import Registry
from cloister.core.trust import TRUSTS, Central


def anything(composed: Composed) -> None:
    """Asks for nothing beyond what composes."""


@attrs.frozen
class OracleResolver:
    """Fills the slots that drafts leave open.

    Args:
        trust: the trust model whose oracles fill slots; None: presets and defaults do, and candidates are a curator's.
        parties: how many pool their rows, which sets the noise shares and the ring of oracles; 0: not said.
        pays: raises a CloisterError where an oracle, or the oracles of a method, cannot be paid.
        runs: raises one where a method cannot run, or not be paid.
    """

    trust: str | None = None
    parties: int = 0
    pays: Callable[[Composed], object] = anything
    runs: Callable[[Composed], object] = anything

    def filled(self, draft: Draft, lazily: bool = False) -> Composed:
        """Return a component with all its slots filled.

        Args: draft, of the component; lazily, a method that fits as it is need only be paid.

        Raises: as ``compose``. InvalidInput: nothing of this trust fits.
        """
        if draft.made is not None:  # as it was put together: no name could compose it again
            if self.trust is not None:
                self.check_trust(draft.made)
            return draft.made

        def composing(oracles: Mapping[str, str]) -> Composed:
            asked = attrs.evolve(draft, names={**oracles, **draft.names})
            return self._pooled(asked).composed(partial(self._candidate, draft.registry))

        if self.trust is None or draft.spec.role != "Method" or draft.chooses:
            return composing({})
        return self._fitting(draft, composing, lazily)

    def check_trust(self, composed: Composed) -> None:
        """Raise InvalidInput if a method is of another trust model than the one asked for."""
        if composed.trust not in (None, self.trust):
            raise InvalidInput(
                f"'{composed.spec.name}' as composed is {composed.trust}, and the trust model asked for is "
                f"{self.trust}: leave its oracles open, or name {self.trust} ones"
            )

    def _candidate(
        self, registry: Registry, name: str, wires: Mapping[str, str], composing: Composing, named: bool
    ) -> Composed | None:
        """Return a candidate of ``auto``; one for people's own reports keeps its trust, unless the caller named it."""
        filler, found = attrs.evolve(self, trust=self.trust or "Central"), composing({})
        if found.trust in (None, filler.trust):
            return found
        if TRUSTS[found.trust].relation != Central.relation and not named:
            return None
        return filler._fitting(Draft(registry, registry.spec("Method", name), wires), composing, lazily=True)

    def _fitting(self, draft: Draft, composing: Composing, lazily: bool) -> Composed:
        """Return a method as it is, if it fits; else with the trust's oracles in its open slots."""
        slots, name = dict(draft.open_oracles()), draft.spec.name
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

        return self._searched(draft, slots, tried)

    def _searched(self, draft: Draft, slots: Mapping[str, Role], tried: Composing) -> Composed:
        """Return the first composition that runs.

        It has one count oracle and one vector oracle for all open slots, the earliest in their orders; then, slot by
        slot, an earlier one that runs too.
        """
        roles = dict.fromkeys(slots.values())
        orders: dict[Role, list[str]] = {role: list(self._payable(draft.registry, role)) for role in roles}
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
        raise first or InvalidInput(
            f"no {self.trust} oracles fit '{draft.spec.name}': none can be paid, or is installed"
        )

    def _payable(self, registry: Registry, role: Role) -> Iterator[str]:
        """Yield the trust's oracles of a role, in order, except those that cannot be paid."""
        for spec in registry.in_order(role, self.trust):
            with suppress(CloisterError):
                self.pays(Draft(registry, spec).composed())
                yield spec.name

    def _pooled(self, draft: Draft) -> Draft:
        """Return the draft with the number of parties for every oracle that asks how many there are."""
        if not self.parties:
            return draft
        asking = [path for path, name in draft.names.items() if _asks_parties(draft.registry, name)]
        return attrs.evolve(draft, options={**{f"{path}.parties": self.parties for path in asking}, **draft.options})


def _asks_parties(registry: Registry, name: str) -> bool:
    """Return True for the name of an oracle that asks how many parties there are."""
    with suppress(CloisterError):
        oracles = [spec for spec in registry.find(name) if spec.role in ORACLES]
        return bool(oracles) and "parties" in options_of(registry.load(oracles[0]))
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
