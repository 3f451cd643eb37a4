"""Sets of outcomes that an audit looks at."""

from __future__ import annotations

from typing import Protocol, final

import attrs
import numpy as np

from cloister.core.types import Bools, Floats


class Happening(Protocol):
    """A set of outcomes: which of the outcomes (n, numbers) are in it (n,)."""

    @property
    def name(self) -> str: ...

    def holds(self, outcomes: Floats) -> Bools: ...


@final
@attrs.frozen(eq=False)
class HalfSpace:
    """Outcomes whose product with a direction (numbers,) is at least a threshold; or, turned around, below it."""

    name: str
    direction: Floats
    least: float
    turned: bool = False

    def holds(self, outcomes: Floats) -> Bools:
        return np.asarray((outcomes @ self.direction >= self.least) != self.turned)


@final
@attrs.frozen(eq=False)
class Quadrant:
    """Outcomes whose every number, times its sign (numbers,), is at least its threshold (numbers,)."""

    name: str
    sign: Floats
    least: Floats

    def holds(self, outcomes: Floats) -> Bools:
        return np.asarray(np.all(outcomes * self.sign >= self.least, axis=1))
