"""Tables of answers: what a decoded question is asked by (``core.roles.Table``)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NoReturn, final

import numpy as np

from cloister.core.types import AnyArray, Floats, Ints


class HeldTable:
    """A table that stays in its process: it cannot be pickled."""

    def __reduce__(self) -> NoReturn:
        raise TypeError("tables do not travel: keep what at() gave")


@final
class LookupTable(HeldTable):
    """Answers that are looked up without a draw, with the same noise in every bucket of a level.

    Args:
        look: ids (m,) of a level to values (m,) or (m, dimension), in the caller's units.
        errors: of each level, the standard deviation of the noise in a value.
    """

    def __init__(self, look: Callable[[Ints, int], AnyArray], errors: Sequence[float]) -> None:
        self._look, self._errors = look, errors

    def at(self, ids: Ints, level: int = 0) -> Floats:
        return np.asarray(self._look(ids, level), np.float64)

    def standard_error(self, ids: Ints, level: int = 0) -> Floats:
        return np.full(len(ids), self._errors[level])
