"""Public domains and the lattice that rows are put on.

A domain is given by the caller, never read off the data (law 1). It fixes a lattice: the midpoint is 0 and the unit is
the power of two that makes every lattice point's Euclidean norm at most ``REACH`` = 2^20. With that, products of rows
and centres, their sums in any order, and every sensitivity are exact in float64 and int64 (law 5); rounding moves a row
by at most half a unit per column, a millionth of the domain's radius.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeVar, final

import attrs
import numpy as np

from cloister.core.buckets import BundleArrays
from cloister.core.doubles import as_float
from cloister.core.errors import InvalidInput
from cloister.core.reproducible_math import ceil_log2, lengths, roots, standard_normals, uniforms
from cloister.core.types import AnyArray, Floats, Ints

D = TypeVar("D", bound="Domain")

REACH = 2**20
"""The largest norm of a lattice point."""


class Lattice(Protocol):
    """Lattice that rows are put on: the part of a round's domain that a population needs."""

    @property
    def dimension(self) -> int: ...

    def snap(self, rows: AnyArray) -> Ints:
        """Return finite rows (n, d) clipped and rounded to lattice points (n, d): a function of each row alone."""
        ...


class Domain(Lattice, Protocol):
    """Region where rows can be; rows outside are clipped to it, silently."""

    @property
    def unit(self) -> float:
        """Spacing of the lattice, in the caller's units."""
        ...

    @property
    def middle(self) -> Floats:
        """Origin of the lattice (d,), in the caller's units."""
        ...

    @property
    def sides(self) -> Ints:
        """Largest lattice coordinate per column (d,)."""
        ...

    @property
    def max_norm(self) -> int:
        """Upper bound on the norm of the domain's lattice points."""
        ...

    @property
    def diameter(self) -> float:
        """Largest distance between two points, in the caller's units."""
        ...

    def real(self, points: Ints) -> Floats:
        """Return lattice points (m, d) in the caller's units."""
        ...

    def truncate(self, points: Floats) -> Floats:
        """Return points (m, d) moved to the nearest point of the domain."""
        ...

    def fold(self, points: Floats) -> Floats:
        """Return points (m, d) reflected at the border until they are inside (FastLloyd, section 5.3.5)."""
        ...

    def sample(self, g: np.random.Generator, n: int, margin: float) -> Floats:
        """Draw points (n, d), uniform over the domain less a margin (caller's units) at its border."""
        ...


def _power_of_two_unit(radius: float, dimension: int) -> float:
    room = REACH - math.sqrt(dimension) - 1
    return 2.0 ** ceil_log2(radius / room)


def _checked_size(radius: float) -> None:
    """Refuse a domain whose squared distances would overflow or underflow, by InvalidInput."""
    if not 1e-100 < radius < 1e100:
        raise InvalidInput("these bounds are too wide or too narrow for 64-bit numbers: give the columns another unit")


def _norm(sides: Ints) -> int:
    """Return the largest norm of a lattice point in a box, rounded up to an integer."""
    return math.isqrt(sum(int(s) ** 2 for s in sides) - 1) + 1 if sides.any() else 1


def _finite(values: Sequence[float], label: str) -> tuple[float, ...]:
    out = tuple(as_float(v) for v in values)
    if not all(math.isfinite(v) for v in out):
        raise InvalidInput(
            f"{label} must be finite numbers, not {list(values)}: state public bounds, never read them off the data"
        )
    return out


def check_ends(columns: Iterable[Any], lower: Sequence[float], upper: Sequence[float]) -> None:
    """Check that each column, by name or position, has a lower bound below its upper one.

    Raises:
        InvalidInput: a lower bound is not below the upper one.
    """
    for name, low, high in zip(columns, lower, upper, strict=True):
        if not low < high:
            raise InvalidInput(f"bounds of column {name} are {low:g} and {high:g}: the lower one must be smaller")


def _finite_lower(values: Sequence[float]) -> tuple[float, ...]:
    return _finite(values, "lower bounds")


def _finite_upper(values: Sequence[float]) -> tuple[float, ...]:
    return _finite(values, "upper bounds")


def _finite_center(values: Sequence[float]) -> tuple[float, ...]:
    return _finite(values, "the centre")


@final
@attrs.frozen
class Box:
    """Box: the points with lower <= x <= upper, column by column.

    Args:
        lower, upper: d numbers each, finite, lower < upper, in the caller's units.
    """

    lower: tuple[float, ...] = attrs.field(converter=_finite_lower)
    upper: tuple[float, ...] = attrs.field(converter=_finite_upper)
    unit: float = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        if not self.lower or len(self.lower) != len(self.upper):
            raise InvalidInput(
                f"a box needs as many lower as upper bounds, at least one: got {len(self.lower)} and {len(self.upper)}"
            )
        check_ends(range(len(self.lower)), self.lower, self.upper)
        with np.errstate(over="ignore"):
            radius = float(lengths(self.half_widths[None])[0])
        _checked_size(radius)
        object.__setattr__(self, "unit", _power_of_two_unit(radius, len(self.lower)))

    @property
    def dimension(self) -> int:
        return len(self.lower)

    @property
    def middle(self) -> Floats:
        return np.array(self.lower) / 2 + np.array(self.upper) / 2

    @property
    def half_widths(self) -> Floats:
        """Half of upper - lower (d,), in the caller's units."""
        return np.array(self.upper) / 2 - np.array(self.lower) / 2

    @property
    def sides(self) -> Ints:
        return np.rint(self.half_widths / self.unit).astype(np.int64)

    @property
    def max_norm(self) -> int:
        return _norm(self.sides)

    @property
    def diameter(self) -> float:
        return float(2 * lengths(self.half_widths[None])[0])

    def snap(self, rows: AnyArray) -> Ints:
        inside = np.clip(np.asarray(rows, np.float64), np.array(self.lower), np.array(self.upper))
        inside -= self.middle
        inside *= 1 / self.unit
        return self.rounded(inside)

    def rounded(self, inside: Floats) -> Ints:
        """Return the lattice points (n, d) next to points in lattice units, less the middle, or at the border.

        ``inside`` is overwritten.
        """
        sides = self.sides.astype(np.float64)
        return np.clip(np.rint(inside, out=inside), -sides, sides, out=inside).astype(np.int64)

    def bundled(self, arrays: BundleArrays) -> Mapping[str, Any]:
        return {
            "kind": "box",
            "lower": self.lower,
            "upper": self.upper,
            "middle": self.middle.tolist(),
            "unit": self.unit,
            "sides": self.sides.tolist(),
        }

    def real(self, points: Ints) -> Floats:
        return self.truncate(points * self.unit + self.middle)

    def truncate(self, points: Floats) -> Floats:
        return np.clip(points, np.array(self.lower), np.array(self.upper))

    def fold(self, points: Floats) -> Floats:
        low, width = np.array(self.lower), np.array(self.upper) - np.array(self.lower)
        around = np.mod(points - low, 2 * width)
        return self.truncate(np.where(around > width, 2 * width - around, around) + low)

    def sample(self, g: np.random.Generator, n: int, margin: float) -> Floats:
        room = np.maximum(self.half_widths - margin, 0.0)
        return self.middle + (2 * uniforms(g, n, self.dimension) - 1) * room


@final
@attrs.frozen
class Ball:
    """Ball: the points at most ``radius`` from ``center``.

    Args:
        center: d finite numbers, in the caller's units.
        radius: positive, in the caller's units.
    """

    center: tuple[float, ...] = attrs.field(converter=_finite_center)
    radius: float = attrs.field(converter=as_float)
    unit: float = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        if not self.center:
            raise InvalidInput("a ball needs a centre of at least one number")
        if not (math.isfinite(self.radius) and self.radius > 0):
            raise InvalidInput(f"a ball needs a positive finite radius, not {self.radius}")
        _checked_size(self.radius)
        object.__setattr__(self, "unit", _power_of_two_unit(self.radius, len(self.center)))

    @property
    def dimension(self) -> int:
        return len(self.center)

    @property
    def middle(self) -> Floats:
        return np.array(self.center)

    @property
    def sides(self) -> Ints:
        return np.full(self.dimension, self.max_norm, np.int64)

    @property
    def max_norm(self) -> int:
        return int(self.radius / self.unit)

    @property
    def diameter(self) -> float:
        return 2 * self.radius

    def snap(self, rows: AnyArray) -> Ints:
        from cloister.core.lattice import Bound, shrink

        with np.errstate(over="ignore"):
            inside = np.clip((np.asarray(rows, np.float64) - self.middle) / self.unit, -(2.0**80), 2.0**80)
        # the largest coordinate, unlike a norm of floats, does not depend on the order of a sum
        inside *= np.minimum(1.0, self.max_norm / np.maximum(np.abs(inside).max(axis=1, initial=0.0), 1.0))[:, None]
        return shrink(np.rint(inside).astype(np.int64), Bound(l2=self.max_norm, dimension=self.dimension))

    def bundled(self, arrays: BundleArrays) -> Mapping[str, Any]:
        return {"kind": "ball", "middle": self.center, "unit": self.unit, "max_norm": self.max_norm}

    def real(self, points: Ints) -> Floats:
        return self.truncate(points * self.unit + self.middle)

    def truncate(self, points: Floats) -> Floats:
        away = points - self.middle
        with np.errstate(over="ignore"):
            norms = lengths(away)[:, None]
            inside: Floats = self.middle + away * np.minimum(1.0, self.radius / np.maximum(norms, 1e-300))
        return inside

    def fold(self, points: Floats) -> Floats:
        away = points - self.middle
        norms = np.maximum(lengths(away)[:, None], 1e-300)
        around = np.mod(norms, 2 * self.radius)
        return self.truncate(
            self.middle + away * (np.where(around > self.radius, 2 * self.radius - around, around) / norms)
        )

    def sample(self, g: np.random.Generator, n: int, margin: float) -> Floats:
        direction = standard_normals(g, n, self.dimension)
        direction /= np.maximum(lengths(direction)[:, None], 1e-300)
        length = roots(uniforms(g, n, 1)[:, 0], self.dimension) * max(self.radius - margin, 0.0)
        return self.middle + direction * length[:, None]


def first_columns(domain: D, dropped: int) -> D | Box:
    """Return the domain without its last ``dropped`` columns.

    Raises:
        InvalidInput: it is no box, or has no more columns.
    """
    if not dropped:
        return domain
    if not isinstance(domain, Box):
        raise InvalidInput("a ball bounds the clustered columns alone: to describe other columns give pairs of bounds")
    if dropped >= domain.dimension:
        raise InvalidInput(f"{dropped} of {domain.dimension} columns are described only: leave one to cluster by")
    return Box(domain.lower[:-dropped], domain.upper[:-dropped])


def plain(domain: Box | Ball) -> dict[str, Any]:
    """Return the arguments that a domain was made with, as plain data."""
    if isinstance(domain, Box):
        return {"lower": list(domain.lower), "upper": list(domain.upper)}
    return {"center": list(domain.center), "radius": domain.radius}
