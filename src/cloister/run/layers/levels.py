"""A composed method, layer by layer: what plans, statements and records read from the components alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, final

import attrs

from cloister.core.clustering import Problem
from cloister.core.registry.compose import Composed
from cloister.core.wrappers import METHOD, ColumnNames, Wrapper
from cloister.run.layers import warm_start


@final
@attrs.frozen(eq=False)
class Level:
    """A method with the layers that are inside it. Args: problem (its own), part (of the run's budget that it has)."""

    composed: Composed
    problem: Problem
    part: float

    @property
    def wrapper(self) -> Wrapper | None:
        """The layer; None of the method itself."""
        return self.composed.value if self.composed.spec.adds else None


def levels(composed: Composed, problem: Problem) -> Sequence[Level]:
    """Return a method's levels, the method itself first. Raises: InvalidInput: a layer cannot ask what it has to."""
    stack, part = [Level(composed, problem, 1.0)], 1.0
    while (wrapper := stack[0].wrapper) is not None:
        part *= 1 - wrapper.share_of(problem)
        composed, problem = composed.inner[METHOD], wrapper.inner(problem)
        stack.insert(0, Level(composed, problem, part))
    return stack


def clustering(stack: Sequence[Level]) -> Level:
    """Return the outermost level that clusters by all of its columns: the frame, or else the method."""
    return next(level for level in reversed(stack) if level.wrapper is None or level.wrapper.has_frame)


def method_of(composed: Composed) -> Composed:
    """Return the method itself, without layers."""
    return method_of(composed.inner[METHOD]) if composed.spec.adds else composed


def recorded(composed: Composed) -> dict[str, Any]:
    """Return how a result records its method: as it was asked for, with the layers beside it."""
    config = composed.config()
    if not composed.spec.adds:
        return config
    del config["slots"][METHOD]
    return {**recorded(composed.inner[METHOD]), composed.spec.adds: config}


def prices(stack: Sequence[Level], columns: ColumnNames) -> list[str]:
    """Return what each layer spends, in sentences."""
    wrapped = ((level, level.wrapper) for level in stack)
    return list(filter(None, (w.price(level.problem, columns, level.part) for level, w in wrapped if w)))


def warnings(stack: Sequence[Level]) -> list[str]:
    """Return a sentence for each layer whose budget buys hardly anything."""
    return list(filter(None, (level.wrapper.warning(level.problem) for level in stack if level.wrapper)))


def notes(stack: Sequence[Level], columns: ColumnNames, details: Mapping[str, Any]) -> list[str]:
    """Return a statement's sentences on the layers, and on a start. Args: details (of the result)."""
    sentences = list[str]()
    for level in stack:
        if level.wrapper is not None:
            sentences += level.wrapper.notes(level.problem, columns, level.part, details)
    return [*sentences, *warm_start.notes(stack[-1].composed, details)]


def facts(stack: Sequence[Level], columns: ColumnNames) -> dict[str, Any]:
    """Return the layers' public facts, as a result records them."""
    merged = dict[str, Any]()
    for level in stack:
        merged |= {} if level.wrapper is None else level.wrapper.facts(columns)
    return merged
