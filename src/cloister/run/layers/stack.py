"""The layers of a run, and how they share its budget and its columns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self, TypeAlias, final

import attrs

from cloister.core.registry.compose import Composed
from cloister.rows.selection import Selection
from cloister.run.layers import histograms, keywords, preprocessing, warm_start
from cloister.run.layers.layer import Layer, Scope
from cloister.run.layers.levels import levels, method_of

Reader: TypeAlias = Callable[[Any, Selection], tuple[Any, Layer | None]]
"""Returns a request (``run.request.Request``) as the layers further out are to see it, and the layer that it asks for;
None if it asks for none. The selection is that of the rows' columns. Raises CloisterError: what is asked cannot be."""

LAYERS: tuple[Reader, ...] = (warm_start.read, preprocessing.read, histograms.read, keywords.read)
"""Innermost first. Digests hold this order."""


@final
@attrs.frozen
class Stack:
    """The layers that a request asks for. Args: layers (innermost first)."""

    layers: tuple[Layer, ...]

    @classmethod
    def read(cls, request: Any, table: Selection) -> tuple[Any, Self]:
        """Return the request as its method is to see it, and its layers. Raises: as ``Reader``."""
        layers = list[Layer]()
        for reader in LAYERS:
            request, layer = reader(request, table)
            layers += [] if layer is None else [layer]
        return request, cls(tuple(layers))

    def placed(self, scope: Scope) -> Placed:
        """Return the layers with the figures that each has. Args: scope (of the whole run).

        Each takes its part of the whole budget as a share of what the layers outside leave.
        """
        shares, taken, inside = list[tuple[Layer, Scope, float]](), 0.0, scope
        for layer in reversed(self.layers):
            shares.insert(0, (layer, inside, layer.part / (1 - taken)))
            taken += layer.part
            inside = attrs.evolve(layer.seen(inside), left=1 - taken)
        return Placed(scope, inside, tuple(shares))


@final
@attrs.frozen
class Placed:
    """A run's layers, in their places.

    Args: scope (of the whole run), inside (of the method), layers (each with the scope outside it and its share of the
    budget there, innermost first).
    """

    scope: Scope
    inside: Scope
    layers: tuple[tuple[Layer, Scope, float], ...]

    def asks(self, method: Composed) -> bool:
        """Return True if something around this method asks questions, too. Raises: as ``around``."""
        wrapped = self.around(method)
        if method_of(wrapped) is not method:  # a start is compared with it
            return True
        every = levels(wrapped, self.scope.whole(wrapped))
        return any(level.wrapper.share_of(level.problem) > 0 for level in every if level.wrapper)

    def around(self, method: Composed) -> Composed:
        """Return the method with all layers around it."""
        for layer, scope, share in self.layers:
            method = layer.around(method, scope, share)
        return method
