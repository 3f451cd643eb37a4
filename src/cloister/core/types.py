"""Array types."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Ints: TypeAlias = NDArray[np.int64]
"""Exact integers: bucket ids, lattice coordinates, tallies."""

Floats: TypeAlias = NDArray[np.float64]
"""Real numbers: raw rows before the lattice, and released values after the noise."""

Ids: TypeAlias = NDArray[np.uint64]
"""Public user numbers, and words derived from them."""

Bools: TypeAlias = NDArray[np.bool_]
"""Masks of rows or users."""

AnyArray: TypeAlias = NDArray[Any]
"""Array of any numbers, as a caller gives them."""
