"""Requests whose methods have components and options by name, as the command line takes them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cloister.core.registry.making import drafted
from cloister.run.request import Request


def asking(
    method: Any = "auto",
    components: Mapping[str, str] | None = None,
    options: Mapping[str, Any] | None = None,
    **given: Any,
) -> Request:
    """A request for this method."""
    return Request(method=drafted(method, components, options), **given)
