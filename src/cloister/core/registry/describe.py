"""A component's options, slots, guarantee and source as plain data, read off the class that declares them.

Paths of slots and options ("start.counts", "grid-means.side"): which are open, and what lies below one.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

from cloister.core.registry.components import Choices, Option, Role, Slot, Spec
from cloister.core.registry.compose import compose, describe_fields, slot_role, slot_trust, trusts_of
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
    """Values given by path for the component in the slot ``name``, by its own paths."""
    return {path.removeprefix(f"{name}."): value for path, value in paths.items() if path.startswith(f"{name}.")}


def describe(registry: Registry, spec: Spec) -> dict[str, Any]:
    """The data that ``cloister describe`` prints."""
    cls = registry.load(spec)
    options, slots = [], []
    for name, facts, default, hint in describe_fields(cls):
        if isinstance(facts, Option):
            value = spec.presets.get(name, default)
            kind = getattr(hint, "__name__", None) if isinstance(hint, type) else str(hint).replace("typing.", "")
            options.append(
                {
                    "name": name,
                    "default": value,
                    "type": kind,
                    "range": facts.range,
                    "unit": facts.unit,
                    "help": facts.help,
                }
            )
        else:
            role, need = slot_role(hint), slot_trust(hint)
            takes = [s.name for s in registry.specs(role) if need is None or s.trust == need]
            if isinstance(facts, Choices):
                takes = [s.name for s in registry.candidates(str(spec.presets.get(name, facts.default)))]
            slots.append(
                {
                    "name": name,
                    "role": role,
                    "default": spec.presets.get(name, facts.default),
                    "takes": takes,
                    "help": facts.help,
                }
            )
    module = sys.modules[cls.__module__]
    trust = spec.trust or (compose(registry, spec.role, spec.name, {}, {}).trust if slots and _filled(slots) else None)
    return {
        "name": spec.name,
        "role": spec.role,
        "summary": spec.summary,
        "private": spec.private,
        "trust": trust,
        "runs under": list(trusts_of(cls)),
        "biased": bool(getattr(cls, "biased", False)),
        "paper": spec.paper,
        "target": spec.target,
        "documentation": "\n\n".join(filter(None, (inspect.getdoc(cls), inspect.cleandoc(module.__doc__ or "")))),
        "options": options,
        "slots": slots,
    }


def _filled(slots: list[dict[str, Any]]) -> bool:
    return all(slot["default"] is not None for slot in slots)
