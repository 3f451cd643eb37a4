"""The registry of installed components: built-ins and third-party plugins, through one hook. Imports nothing heavy.

A broken plugin is reported, never fatal. Two components with one name are an error that names both plugins, raised when
the name is used. A client's encoder composes built-in components alone, without pluggy: ``built_in``.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.metadata import entry_points
from typing import Any

import attrs

from cloister.core.errors import CloisterError, InvalidInput, UnknownName, WrongComposition, plugin_errors
from cloister.core.registry.components import GROUP, ROLES, Role, Spec, trust_of

MANIFEST = "cloister.plugins.manifest"
BUILT_IN = "cloister.plugins.hook"


@attrs.frozen
class Plugin:
    """One installed plugin. Args: name, origin (distribution or module), specs, error (None if it loaded)."""

    name: str
    origin: str
    specs: tuple[Spec, ...] = ()
    error: str | None = None


@attrs.frozen
class Registry:
    """Components by role and name."""

    plugins: tuple[Plugin, ...]

    def specs(self, role: Role | None = None) -> tuple[Spec, ...]:
        """Return all components, or those of one role, in the order of roles and names."""
        every = [s for p in self.plugins for s in p.specs if role in (None, s.role)]
        return tuple(sorted(every, key=lambda s: (ROLES.index(s.role), s.name)))

    def spec(self, role: Role, name: str) -> Spec:
        """Return the component of that name, or raise UnknownName, or WrongComposition if two plugins offer it."""
        found = [(p, s) for p in self.plugins for s in p.specs if (s.role, s.name) == (role, name)]
        if len(found) > 1:
            owners = " and ".join(f"'{p.name}' ({p.origin})" for p, _ in found)
            raise WrongComposition(f"the {role} '{name}' is offered by two plugins, {owners}: uninstall one of them")
        if not found:
            others = [s.role for s in self.specs() if s.name == name]
            broken = [f"'{p.name}' ({p.origin})" for p in self.plugins if p.error]
            hint = f"('{name}' is a {others[0]})" if others else _unloaded(broken) if broken else ""
            raise UnknownName(role, name, (s.name for s in self.specs(role)), hint)
        return found[0][1]

    def find(self, name: str) -> tuple[Spec, ...]:
        """Return every component of that name, whatever its role, or raise UnknownName."""
        found = tuple(s for s in self.specs() if s.name == name)
        if not found:
            raise UnknownName("component", name, (s.name for s in self.specs()))
        return found

    def load(self, spec: Spec) -> type[Any]:
        """Import a component's class, or raise InvalidInput if that fails or the class contradicts its spec."""
        module, _, name = spec.target.partition(":")
        with plugin_errors(f"the {spec.role} '{spec.name}' cannot be loaded from {spec.target}"):
            cls: type[Any] = getattr(importlib.import_module(module), name)
        if (own := trust_of(cls)) and spec.trust not in (None, own):
            raise InvalidInput(f"the spec of '{spec.name}' says trust {spec.trust}, its class says {own}")
        return cls

    def candidates(self, objective: str) -> list[Spec]:
        """Return the private methods of this objective that predict their error, without those that cannot load."""
        return [spec for spec, broken in self.predicting(objective) if not broken]

    def predicting(self, objective: str) -> Iterator[tuple[Spec, str]]:
        """Yield the same with an empty text each, and those that cannot be loaded, each with the reason."""
        for spec in self.specs("Method"):
            if spec.objective == objective and spec.private:
                try:
                    if hasattr(self.load(self.spec("Method", spec.name)), "expected_error"):
                        yield spec, ""
                except CloisterError as error:
                    yield spec, str(error)

    def in_order(self, role: Role, trust: str | None) -> list[Spec]:
        """Return the oracles with which a trust model fills slots of this role, in the order of trial."""
        fit = [s for s in self.specs(role) if trust is not None and s.trust == trust and s.fills is not None]
        return sorted(fit, key=lambda s: (s.fills or 0, s.name))

    def reader(self, reads: str) -> Spec:
        """Return the population that reads these (``Spec.reads``), or raise InvalidInput if none is installed."""
        found = next((s for p in self.plugins for s in p.specs if s.role == "Population" and s.reads == reads), None)
        if found is None:
            raise InvalidInput(f"no installed population reads {reads}: reinstall cloister")
        return found

    def faults(self, plugin: Plugin) -> tuple[str, ...]:
        """Load all components of a plugin, and return a line for each that cannot be used."""
        found = list[str]()
        for spec in plugin.specs:
            try:
                self.load(self.spec(spec.role, spec.name))
            except CloisterError as error:
                found.append(str(error))
        return tuple(found)


def _unloaded(plugins: Sequence[str]) -> str:
    """Describe plugins that could not be loaded, and may offer what is missing."""
    many = len(plugins) > 1
    return (
        f"(or it is of {'one of the plugins' if many else 'the plugin'} {', '.join(plugins)}, which could not be "
        f"loaded: 'cloister plugins' says why)"
    )


def _plugin(name: str, origin: str, load: Any) -> Plugin:
    from cloister.core.registry.hooks import offered

    try:
        return Plugin(name, origin, offered(load(), name))
    except (Exception, SystemExit) as error:  # third-party code: report whatever it raises
        return Plugin(name, origin, error=f"{type(error).__name__}: {error}".splitlines()[0])


@cache
def built_in() -> Registry:
    """Return the built-in components, enough for most plans."""
    return Registry((Plugin("cloister", "built in", tuple(importlib.import_module(MANIFEST).components())),))


@cache
def registry() -> Registry:
    """Everything that is installed in this environment."""
    from cloister.core.registry.hooks import offered

    found = [Plugin("cloister", "built in", offered(importlib.import_module(BUILT_IN), "cloister"))]
    for point in sorted(entry_points(group=GROUP), key=lambda p: p.name):
        origin = f"{point.dist.name} {point.dist.version}" if point.dist else point.value
        found.append(_plugin(point.name, origin, point.load))
    return Registry(tuple(found))
