"""Paths of slots and options ("start.counts", "grid-means.side"): which are open, and what lies below one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeVar

from cloister.core.registry.components import Choices, Role, Slot
from cloister.core.registry.compose import describe_fields, slot_role, slot_trust
from cloister.core.registry.registry import Registry

C = TypeVar("C")


def oracle_slots(
    registry: Registry, method: str, wires: Mapping[str, str], path: str = ""
) -> Iterator[tuple[str, Role]]:
    """Paths and roles of a method's slots for oracles of any trust that ``wires`` does not name, those of methods in
    its slots too."""
    spec = registry.spec("Method", method)
    for name, facts, _, hint in describe_fields(registry.load(spec)):
        where = f"{path}{name}"
        if isinstance(facts, Choices):
            for s in registry.candidates(str(spec.presets.get(name, facts.default))):
                chosen = wires.get(f"{path}{s.name}", s.name)
                if chosen != "none":
                    yield from oracle_slots(registry, chosen, wires, f"{path}{s.name}.")
        elif isinstance(facts, Slot) and slot_role(hint) in ("FrequencyOracle", "VectorSumOracle"):
            if slot_trust(hint) is None and where not in wires:
                yield where, slot_role(hint)
        elif isinstance(facts, Slot) and slot_role(hint) == "Method":
            inner = wires.get(where, spec.presets.get(name, facts.default))
            yield from oracle_slots(registry, str(inner), wires, f"{where}.")


def below(paths: Mapping[str, C], name: str) -> dict[str, C]:
    """What is given by path for the component in the slot ``name``, by its own paths."""
    return {path.removeprefix(f"{name}."): value for path, value in paths.items() if path.startswith(f"{name}.")}
