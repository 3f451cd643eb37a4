"""``cloister list``, ``describe`` and ``plugins``: the installed components and plugins."""

from __future__ import annotations

from typing import Annotated

import typer

from cloister.commands.common import AsJson, print_json, show


def list_components(
    role: Annotated[
        str | None,
        typer.Argument(
            help="Role: Method, FrequencyOracle, VectorSumOracle, TreeBuilder, NonPrivateSolver or Population."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List the installed methods, oracles and trees."""
    from cloister.core.errors import UnknownName
    from cloister.core.registry.components import ANY_TRUST, ROLES, Role
    from cloister.core.registry.registry import registry

    roles: dict[str, Role] = {r.lower(): r for r in ROLES}
    if role is not None and role.lower().replace("-", "").rstrip("s") not in roles:
        raise UnknownName("role", role, ROLES)
    selected = None if role is None else roles[role.lower().replace("-", "").rstrip("s")]
    specs = registry().specs(selected)
    if as_json:
        print_json(
            [
                {
                    "name": s.name,
                    "role": s.role,
                    "trust": s.trust,
                    "summary": s.summary,
                    "paper": s.paper,
                    "private": s.private,
                }
                for s in specs
            ]
        )
        return
    width = max((len(s.name) for s in specs), default=0)
    for group in ROLES:
        members = [s for s in specs if s.role == group]
        if members:
            show(group)
            for s in members:
                show(f"  {s.name:<{width}}  {(s.trust or ANY_TRUST):<10}  {s.summary}")


def describe_component(
    name: Annotated[str, typer.Argument(help="Name of a component, as 'cloister list' prints it.")],
    as_json: AsJson = False,
) -> None:
    """Show a component: guarantee, options, slots and source."""
    from cloister.core.registry.describe import describe
    from cloister.core.registry.registry import registry

    components = [describe(registry(), spec) for spec in registry().find(name)]
    if as_json:
        print_json(components)
        return
    for facts in components:
        show(f"{facts['name']} ({facts['role']}): {facts['summary']}")
        show(
            f"trust: {facts['trust'] or 'any'}; runs under: {', '.join(facts['runs under'])}"
            + (f"; from {facts['paper']}" if facts["paper"] else "")
        )
        if facts["biased"]:
            show("biased: released values may be off on average; their standard error is a root mean squared error")
        show(f"\n{facts['documentation']}\n")
        if facts["slots"]:
            show(
                "Slots (what fills one has options of its own: --set SLOT.OPTION=...; 'cloister describe' lists them):"
            )
        for slot in facts["slots"]:
            show(
                f"  --with {slot['name']}={slot['default']}  {slot['help']} ({slot['role']}: "
                f"{', '.join(slot['takes'])})"
            )
        for option in facts["options"]:
            limits = ", ".join(filter(None, (option["range"], option["unit"])))
            show(f"  --set {option['name']}={option['default']}  {option['help']}" + (f" [{limits}]" if limits else ""))
        show("")


def list_plugins(as_json: AsJson = False) -> None:
    """List the plugins, their components, and their faults.

    Loads all plugins, which runs their code. A plugin can do whatever cloister can: install only those of people whom
    you would show the rows.
    """
    from cloister.core.registry.registry import registry

    built_in, *plugged_in = registry().plugins
    plugins = [
        (built_in, ()),
        *((p, registry().faults(p)) for p in plugged_in),
    ]  # built-in ones are tested, and load slowly
    if as_json:
        print_json(
            [
                {
                    "name": p.name,
                    "origin": p.origin,
                    "error": p.error,
                    "components": [s.name for s in p.specs],
                    "faults": list(faults),
                }
                for p, faults in plugins
            ]
        )
        return
    for p, faults in plugins:
        show(f"{p.name} ({p.origin}): " + (f"BROKEN: {p.error}" if p.error else f"{len(p.specs)} components"))
        for fault in faults:
            show(f"  BROKEN: {fault}")
