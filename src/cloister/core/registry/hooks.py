"""The hook that plugins implement, and calling it on one plugin. The only module that knows pluggy."""

from __future__ import annotations

from collections.abc import Iterable

import pluggy

from cloister.core.registry.components import GROUP, ROLES, Spec

hookspec = pluggy.HookspecMarker(GROUP)
hookimpl = pluggy.HookimplMarker(GROUP)
"""Marks a plugin's own ``cloister_components``."""


class Hooks:
    """The hooks a plugin may implement."""

    @hookspec
    def cloister_components(self) -> Iterable[Spec]:  # type: ignore[empty-body]  # a hook specification has no body
        """Return the components of this plugin. Import nothing heavy here: a Spec names its class as text."""


def offered(module: object, name: str) -> tuple[Spec, ...]:
    """Return the components of one plugin, asked in a plugin manager of its own, so that it can only break itself.

    Raises:
        Exception: whatever the plugin raises; TypeError for a value that is no Spec or has no known role.
    """
    manager = pluggy.PluginManager(GROUP)
    manager.add_hookspecs(Hooks)
    manager.register(module, name=name)
    manager.check_pending()
    specs = tuple(spec for found in manager.hook.cloister_components() for spec in found)
    for spec in specs:
        if not isinstance(spec, Spec):
            raise TypeError(f"cloister_components returned {spec!r}, which is not a Spec: return Specs")
        if spec.role not in ROLES:
            raise TypeError(f"'{spec.name}' has the role '{spec.role}': roles are {', '.join(ROLES)}")
    return specs
