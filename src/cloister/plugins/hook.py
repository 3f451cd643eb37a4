"""Offers the manifest through the hook that every plugin uses."""

from __future__ import annotations

from collections.abc import Iterable

from cloister.plugin import Spec, hookimpl
from cloister.plugins.manifest import components


@hookimpl
def cloister_components() -> Iterable[Spec]:
    """Components that cloister itself offers."""
    return components()
