"""A component's options, slots, guarantee and source as plain data, read off the class that declares them."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from typing import Any, get_type_hints

from cloister.core.registry.components import CandidateSlot, Option, Slot, Spec, fields, slots_of, trust_of
from cloister.core.registry.compose import compose, slot_role, slot_trust
from cloister.core.registry.registry import Registry
from cloister.core.trust import TRUSTS


def describe_fields(cls: type[Any]) -> Iterator[tuple[str, Option | Slot, Any, Any]]:
    """(name, facts, default, annotation) of every option and slot."""
    hints = get_type_hints(cls)
    for field in fields(cls):
        yield field.name, field.metadata["cloister"], field.default, hints[field.name]


def trusts_of(cls: type[Any]) -> tuple[str, ...]:
    """Return the trust models under which a component can run: its own, its slots' common one, or all."""
    if own := trust_of(cls):
        return (own,)
    hints = get_type_hints(cls)
    fixed = {slot_trust(hints[name]) for name in slots_of(cls)} - {None}
    return tuple(sorted(t for t in fixed if t is not None)) or tuple(TRUSTS)


def describe(registry: Registry, spec: Spec) -> dict[str, Any]:
    """Return the data that ``cloister describe`` prints."""
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
            if isinstance(facts, CandidateSlot):
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
