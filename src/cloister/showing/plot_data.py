"""Contents of a result's plots, as numbers: released values and public facts only.

A map shows d columns in a plane: two of the columns, or a public projection. This is the projection of the tree's cells
if the result has one, or else the first two principal axes of the released centres (post-processing), in the run's
units of distance.

Entries of a result's ``details`` that plots use:

* ``cells`` (m, 2, d): lower and upper corners of released leaves, in the caller's units; ``cell_weights`` (m,) in rows.
* ``projection`` (d, p): orthonormal columns. The cells are then (m, 2, p), in coordinates (x - the domain's middle) @
  projection.
* ``costs`` (k_max,): the tree program's cost with 1 .. k_max centres; ``power``: the exponent of distances in it.
* ``curve``: a mapping with ``k`` (m,), ``costs`` (m,) per row and the ``suggested`` k; drawn in place of ``costs``.
* ``iterates`` (rounds, k, d): the centres after each round.
* ``intervals`` (d, 2) and ``units`` (d,): the frame that the method worked in. Cells of a projection are then in
  coordinates ((x - the intervals' middle) / units) @ projection, and the intervals are the border.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, final

import attrs
import numpy as np

from cloister.core.domains import Ball, Box
from cloister.core.errors import Damaged, InvalidInput, UnknownName
from cloister.core.types import Floats, Ints
from cloister.run.estimates import table_in
from cloister.run.result import Result
from cloister.showing.projection import TREE, View, principal, shade

FLAT = 2000
"""Maximum number of cells drawn (the heaviest) of a tree over one or two columns, where cells do not overlap."""

OVERLAPPING = 500
"""Maximum number of cells drawn of a tree over more columns."""

CORNERS = 20_000
"""Maximum number of corners of all overlapping cells together, which bounds a file's size."""

ROUNDING = 1e-11
"""Costs below this share of the largest count as 0: they are rounding errors."""

HUGE = 1e100
"""Largest number accepted in a result: no domain is wider."""


@final
@attrs.frozen(eq=False)
class Heading:
    """Text above a plot.

    Args:
        title: of the plot.
        guarantee: one line; a warning unless ``private``.
        private: whether the result protects anybody.
    """

    title: str
    guarantee: str
    private: bool

    @classmethod
    def of(cls, result: Result, title: str) -> Heading:
        """Return the heading of a result's plot. Raises: Damaged: the result lacks its facts."""
        privacy = result.privacy
        try:
            parameters = f"k = {int(result.problem['k'])}, {result.method['name']}"
            delta = f", δ = {float(privacy.delta):g}" if privacy.delta else ""
            promise = f"ε = {float(privacy.epsilon):g}{delta}, {privacy.trust} trust"
        except (KeyError, TypeError, ValueError) as error:
            raise Damaged(f"this result lacks the facts of its run: {error!r}") from error
        private = privacy.protects
        if not private:
            promise = "NOT PRIVATE: " + ("exact answers" if not privacy.private else f"seeded noise, {promise}")
        elif privacy.simulated:
            promise += ", SIMULATED: all rows were in one place"
        return cls(f"{title}: {parameters}", promise, private)


@final
@attrs.frozen(eq=False)
class Map:
    """Map of a result in a plane.

    Args:
        heading: text above the plot.
        view: the plane.
        centers: (k, 2).
        weights: (k,) released sizes, not negative, or None.
        border: polygon (v, 2) of the domain.
        cells: polygons (c, v, 2) of the heaviest of ``all_cells``, the heaviest last.
        shade: (c,) from 0 to 1, increasing with the released rows per area.
        all_cells: number of cells in the result.
        paths: (rounds, k, 2) centres after each round.
        called: (k,) numbers of the clusters, with their names if they have any.
        within: what the border encloses.
        errors: (k, 2) standard errors of the centres, or None if the result has none.
    """

    heading: Heading
    view: View
    centers: Floats
    weights: Floats | None
    border: Floats
    cells: Floats
    shade: Floats
    all_cells: int
    paths: Floats
    called: list[str]
    within: str
    errors: Floats | None = None

    @classmethod
    def of(cls, result: Result, axes: Sequence[str] | None = None, project: bool = False) -> Map:
        """Map a result onto two of its columns, or onto a public projection.

        Args:
            result: of any method.
            axes: names of two columns. By default the tree's own projection if its cells exist only there, or else the
                first two columns of numbers.
            project: use the tree's own projection, or else the principal axes of the released centres.

        Raises:
            InvalidInput, UnknownName: no such two columns.
            Damaged: something in the result cannot be drawn.
        """
        domain, columns, d = domain_of(result), result.columns, len(result.columns)
        centers = checked(result.centers, (None, d), "centres")
        errors = table_in(result.details, "centers_error", centers.shape)
        cells, frame = _cells(result, d)
        iterates = _detail(result, "iterates")
        paths = (
            np.empty((0, *centers.shape)) if iterates is None else checked(iterates, (None, *centers.shape), "iterates")
        )
        if d == 1:  # drawn as a strip: positions across it have no meaning
            if axes is not None or project:
                raise InvalidInput("this result has one column: leave out the axes and the projection")
            domain, cells = _strip(domain, cells)
            centers, paths = (np.concatenate([a, np.zeros_like(a)], axis=-1) for a in (centers, paths))
            columns = (*columns, "")
            errors = None if errors is None else np.column_stack([errors, np.zeros_like(errors)])
        units = np.ones(d) if "units" not in result.details else checked(result.details["units"], (d,), "units")
        view = _view(columns, centers, domain, frame, axes, project, units, result.numeric)
        outlines, shades = _drawn(result, view, cells, frame)
        weights = result.weights
        if weights is not None:
            weights = np.maximum(checked(weights, (len(centers),), "weights"), 0.0)
        return cls(
            Heading.of(result, "Released centres"),
            view,
            view.of(centers),
            weights,
            view.outline(domain),
            outlines,
            shades,
            len(cells),
            view.of(paths),
            result.called,
            "the interval that zoom chose" if "intervals" in result.details else "the domain",
            None if errors is None else np.sqrt(errors**2 @ view.plane**2),
        )

    def as_dict(self) -> dict[str, Any]:
        """Return the plot's facts as plain data."""
        return {
            "picture": "map",
            "title": self.heading.title,
            "axes": list(self.view.names),
            "projection": self.view.projected,
            "centers": len(self.centers),
            "cells": len(self.cells),
            "cells in the result": self.all_cells,
            "rounds": len(self.paths),
            "groups": self.called,
        }

    def text(self) -> str:
        """Describe the plot in one line."""
        plane = self.view.projected or " and ".join(name for name in self.view.names if name)
        total = self.all_cells
        cells = f"{len(self.cells):,} of {total:,} tree cells" if total else "no tree cells in this result"
        paths = f", paths over {len(self.paths)} rounds" if len(self.paths) > 1 else ""
        return f"map of {len(self.centers)} centres on {plane}: {cells}{paths}"


@final
@attrs.frozen(eq=False)
class Curve:
    """Curve of the cost against the number of centres.

    Args:
        heading: text above the plot.
        numbers: (m,) numbers of centres.
        costs: (m,) cost with so many centres.
        power: exponent of the tree metric's distances, or None.
        k: as requested, or as suggested.
        suggested: whether costs are per row, and k was chosen by them.
    """

    heading: Heading
    numbers: Ints
    costs: Floats
    power: int | None
    k: int
    suggested: bool = False

    @classmethod
    def of(cls, result: Result) -> Curve:
        """Return the curve of a result.

        Raises:
            InvalidInput: the result has no costs.
            Damaged: the costs cannot be drawn.
        """
        if "curve" in result.details:
            return cls._chosen(result)
        heading = Heading.of(result, "Cost on the tree")
        values = _detail(result, "costs")
        if values is None:
            raise InvalidInput(
                f"this result has no costs: '{result.method['name']}' solves no tree program. Draw the map, or fit a "
                f"range of k (-k 2..20) or a tree method (hst-means, hst-median)"
            )
        costs = checked(values, (None,), "costs", largest=1e300)
        if (costs < 0).any():
            raise Damaged("the result's costs cannot be drawn: some are negative")
        costs = np.where(costs > ROUNDING * costs.max(), costs, 0.0)
        power = result.details.get("power")
        numbers = np.arange(1, len(costs) + 1)
        return cls(heading, numbers, costs, power if power in (1, 2) else None, int(result.problem["k"]))

    @classmethod
    def _chosen(cls, result: Result) -> Curve:
        """Return the curve by which k was chosen."""
        curve = result.details["curve"]
        try:
            numbers, k = np.array(curve["k"], np.int64), int(curve["suggested"])
        except (KeyError, TypeError, ValueError) as error:
            raise Damaged(f"this result's curve cannot be drawn: {error!r}") from error
        costs = checked(curve.get("costs"), (len(numbers),), "costs", largest=1e300)
        if not len(numbers) or (costs < 0).any():
            raise Damaged("the result's costs cannot be drawn: some are negative, or there are none")
        return cls(Heading.of(result, "Cost by number of centres"), numbers, costs, None, k, suggested=True)

    def as_dict(self) -> dict[str, Any]:
        """Return the plot's facts as plain data."""
        title, costs = self.heading.title, len(self.costs)
        facts = {"picture": "curve", "title": title, "costs": costs, "power": self.power, "k": self.k}
        return {**facts, "suggested": True} if self.suggested else facts

    def text(self) -> str:
        """Describe the plot in one line."""
        if self.suggested:
            return f"cost per row with {self.numbers[0]} to {self.numbers[-1]} centres; k = {self.k} is suggested"
        return f"cost on the tree with 1 to {len(self.costs)} centres; k = {self.k} was requested"


def domain_of(result: Result) -> Box | Ball:
    """Return the released intervals of a result, or else its public domain.

    Raises: Damaged: there are no bounds, or they are for other columns.
    """
    try:
        bounds = result.problem["bounds"]
        domain: Box | Ball
        if "intervals" in result.details:
            domain = Box(*zip(*result.details["intervals"], strict=True))
        elif "lower" in bounds:
            domain = Box(tuple(bounds["lower"]), tuple(bounds["upper"]))
        else:
            domain = Ball(tuple(bounds["center"]), float(bounds["radius"]))
    except (KeyError, TypeError, ValueError, InvalidInput) as error:
        raise Damaged(f"this result has no valid bounds: {error!r}") from error
    if domain.dimension != len(result.columns):
        raise Damaged(f"this result's bounds are for {domain.dimension} columns, and it has {len(result.columns)}")
    return domain


def _view(
    columns: tuple[str, ...],
    centers: Floats,
    domain: Box | Ball,
    frame: Floats | None,
    axes: Sequence[str] | None,
    project: bool,
    units: Floats,
    numeric: Sequence[int],
) -> View:
    if axes is not None and project:
        raise InvalidInput("both axes and a projection are given: give one of them")
    if axes is None and frame is not None:
        return View(("tree axis 1", "tree axis 2"), domain.middle, frame[:, :2] / units[:, None], TREE)
    if project:
        mean = centers.mean(axis=0)
        plane = principal((centers - mean) / units) / units[:, None]
        return View(("principal axis 1", "principal axis 2"), mean, plane, "principal axes of the centres")
    first, second = _two(columns, axes, numeric)
    plane = np.zeros((len(columns), 2))
    plane[first, 0] = plane[second, 1] = 1.0
    return View((columns[first], columns[second]), np.zeros(len(columns)), plane)


def _two(columns: tuple[str, ...], axes: Sequence[str] | None, numeric: Sequence[int]) -> tuple[int, int]:
    if axes is None:
        return (0, 1) if len(numeric) < 2 else (numeric[0], numeric[1])
    if len(axes) != 2 or axes[0] == axes[1]:
        raise InvalidInput(f"the axes are {', '.join(axes) or 'empty'}: give two different columns")
    for name in axes:
        if name not in columns:
            raise UnknownName("column", name, columns)
    return columns.index(axes[0]), columns.index(axes[1])


def _cells(result: Result, d: int) -> tuple[Floats, Floats | None]:
    """Return corners (m, 2, d or p) of the cells, and their projection (d, p) or None."""
    corners, frame = _detail(result, "cells"), _detail(result, "projection")
    if corners is None:
        return np.empty((0, 2, d)), None
    if frame is not None:
        frame = checked(frame, (d, None), "projection", largest=2.0)
        if np.abs(frame.T @ frame - np.eye(frame.shape[1])).max() > 0.001:
            raise Damaged("the result's projection cannot be drawn: its columns are not orthonormal")
    cells = checked(corners, (None, 2, d if frame is None else frame.shape[1]), "cells")
    if (cells[:, 0] > cells[:, 1]).any():
        raise Damaged("the result's cells cannot be drawn: some end before they begin")
    if frame is not None and frame.shape[1] < 2:
        return np.empty((0, 2, d)), None  # intervals along one direction: nothing to see in a plane
    return cells, frame


def _strip(domain: Box | Ball, cells: Floats) -> tuple[Box, Floats]:
    """Turn one column into a strip in a plane, a twelfth as wide as it is long."""
    if isinstance(domain, Box):
        low, high = domain.lower[0], domain.upper[0]
    else:
        low, high = domain.center[0] - domain.radius, domain.center[0] + domain.radius
    half = (high / 2 - low / 2) / 12
    across = np.broadcast_to(np.array([[-half], [half]]), (len(cells), 2, 1))
    return Box((low, -half), (high, half)), np.concatenate([cells, across], axis=2)


def _drawn(result: Result, view: View, cells: Floats, frame: Floats | None) -> tuple[Floats, Floats]:
    """Return polygons of the heaviest cells, the heaviest last, and their shades."""
    if not len(cells) or (
        frame is not None and view.projected != TREE
    ):  # cells are bounded in their own projection only
        return np.empty((0, 4, 2)), np.empty(0)
    values = _detail(result, "cell_weights")
    weights = np.ones(len(cells)) if values is None else checked(values, (len(cells),), "weights of cells")
    dimension = cells.shape[2]
    limit = FLAT if dimension <= 2 else max(1, min(OVERLAPPING, CORNERS // (2 * dimension)))
    heaviest = np.argsort(-weights, kind="stable")[:limit][::-1]
    if frame is not None:
        view = View(view.names, np.zeros(dimension), np.eye(dimension, 2))
    outlines = view.outlines(cells[heaviest])
    return outlines, shade(weights[heaviest], outlines)


def _detail(result: Result, name: str) -> Any:
    """Return an entry of ``details``, None if missing or empty: an empty array loses its shape in a file."""
    entry = result.details.get(name)
    return None if isinstance(entry, (list, tuple, np.ndarray)) and len(entry) == 0 else entry


def checked(values: Any, shape: tuple[int | None, ...], name: str, largest: float = HUGE) -> Floats:
    """Return finite numbers of a shape, in which None is any length. Raises: Damaged: they are not."""
    try:
        array = np.asarray(values, np.float64)
    except (TypeError, ValueError):
        array = np.empty(())
    fits = array.ndim == len(shape) and all(s is None or s == n for s, n in zip(shape, array.shape, strict=True))
    if not fits or not (np.abs(array) <= largest).all():
        expected = " x ".join("any" if s is None else str(s) for s in shape)
        raise Damaged(f"the result's {name} cannot be drawn: they should be {expected} finite numbers")
    return array
