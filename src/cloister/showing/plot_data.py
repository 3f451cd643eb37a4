"""The contents of a result's picture, as numbers: released values and public facts only. ``cloister.showing.plots``
draws them.

A map shows d columns in a plane: two of the columns, or a public projection. That is the projection in which the tree's
cells live, where the result has one, or else the two principal axes of the released centres (post-processing of public
values), in the units that the run took distances in.

Entries of a result's ``details`` that pictures use:

* ``cells`` (m, 2, d): lower and upper corners of released leaves, in the caller's units; ``cell_weights`` (m,) in rows.
* ``projection`` (d, p): orthonormal columns. Then the cells are (m, 2, p) and live at (x - the domain's middle) @
  projection.
* ``costs`` (k_max,): the tree program's cost with 1 .. k_max centres; ``power``: the exponent of distances in it.
* ``curve``: a mapping with ``k`` (m,), ``costs`` (m,) per row and the ``suggested`` k; it is drawn in place of
  ``costs``.
* ``iterates`` (rounds, k, d): the centres after each round.
* ``intervals`` (d, 2) and ``units`` (d,): the frame that the method worked in. Cells of a projection then live at
  ((x - the intervals' middle) / units) @ projection, and the intervals are the border.
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
"""Most cells drawn of a tree over one or two columns, where cells do not overlap: the heaviest ones."""

OVERLAPPING = 500
"""Most cells drawn of a tree over more columns."""

CORNERS = 20_000
"""Most corners of all overlapping cells together: keeps a file small."""

ROUNDING = 1e-11
"""Costs below this share of the largest are rounding errors of differences that are 0."""

HUGE = 1e100
"""Larger numbers are damage: no domain is so wide."""


@final
@attrs.frozen(eq=False)
class Heading:
    """The text over every picture. Args: title, guarantee (one line), private (if not, guarantee is a warning)."""

    title: str
    guarantee: str
    private: bool

    @classmethod
    def of(cls, result: Result, title: str) -> Heading:
        """The heading of a result's picture. Raises: Damaged: the result lacks its facts."""
        privacy = result.privacy
        try:
            what = f"k = {int(result.problem['k'])}, {result.method['name']}"
            delta = f", δ = {float(privacy.delta):g}" if privacy.delta else ""
            promise = f"ε = {float(privacy.epsilon):g}{delta}, {privacy.trust} trust"
        except (KeyError, TypeError, ValueError) as error:
            raise Damaged(f"this result does not say what was asked for: {error!r}") from error
        private = privacy.protects
        if not private:
            promise = "NOT PRIVATE: " + ("exact answers" if not privacy.private else f"seeded noise, {promise}")
        elif privacy.simulated:
            promise += ", SIMULATED: the rows were in one place"
        return cls(f"{title}: {what}", promise, private)


@final
@attrs.frozen(eq=False)
class Map:
    """A result in a plane.

    Args:
        heading, view: the text above, and the plane.
        centers: (k, 2).
        weights: (k,) released rows per centre, not negative, or None.
        border: polygon (v, 2) of the domain.
        cells: polygons (c, v, 2), the heaviest of ``all_cells``; heaviest last.
        shade: (c,) from 0 to 1, growing with the released rows per area.
        all_cells: number of cells in the result.
        paths: (rounds, k, 2) of the centres over the rounds.
        called: the centres (k,) by number, and by name if they have one.
        within: what the border is of.
        errors: (k, 2) standard errors of the centres, or None if nobody stated any.
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
        """Map a result onto two of its columns (by default the first two that are no category's), or onto a public
        projection. The projection is the default for a tree whose cells exist only there.

        Args:
            axes: names of two columns.
            project: the tree's own projection, or else the principal axes of the released centres.

        Raises:
            InvalidInput, UnknownName: no such two columns.
            Damaged: something in the result cannot be drawn.
        """
        domain, columns, d = domain_of(result), result.columns, len(result.columns)
        centers = checked(result.centers, (None, d), "centres")
        errors = table_in(result.details, "centers_error", centers.shape)
        cells, frame = _cells(result, d)
        given = _detail(result, "iterates")
        paths = np.empty((0, *centers.shape)) if given is None else checked(given, (None, *centers.shape), "iterates")
        if d == 1:  # a strip: positions across it have no meaning
            if axes is not None or project:
                raise InvalidInput("there is one column only: there are no axes to choose")
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
            "where zoom found rows" if "intervals" in result.details else "the domain",
            None if errors is None else np.sqrt(errors**2 @ view.plane**2),
        )

    def as_dict(self) -> dict[str, Any]:
        """The picture's numbers as plain data."""
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
        """The picture in one line, for people."""
        where = self.view.projected or " and ".join(name for name in self.view.names if name)
        every = self.all_cells
        cells = f"{len(self.cells):,} of {every:,} tree cells" if every else "no tree cells in this result"
        paths = f", paths over {len(self.paths)} rounds" if len(self.paths) > 1 else ""
        return f"map of {len(self.centers)} centres on {where}: {cells}{paths}"


@final
@attrs.frozen(eq=False)
class Curve:
    """Cost against number of centres.

    Args:
        heading: the text above.
        numbers, costs: (m,) cost with so many centres.
        power: of the tree metric's distances, or None.
        k: as requested, or as suggested.
        suggested: whether costs are per row, and k was suggested by them.
    """

    heading: Heading
    numbers: Ints
    costs: Floats
    power: int | None
    k: int
    suggested: bool = False

    @classmethod
    def of(cls, result: Result) -> Curve:
        """The curve of a result. Raises: InvalidInput: the result holds no costs. Damaged: they cannot be drawn."""
        if "curve" in result.details:
            return cls._chosen(result)
        heading = Heading.of(result, "Cost on the tree")
        given = _detail(result, "costs")
        if given is None:
            raise InvalidInput(
                f"this result holds no costs: '{result.method['name']}' solved no tree program. Draw the map instead, "
                f"or fit a range of k (-k 2..20), or by a tree, as hst-means and hst-median do"
            )
        costs = checked(given, (None,), "costs", most=1e300)
        if (costs < 0).any():
            raise Damaged("the result's costs cannot be drawn: some are negative")
        costs = np.where(costs > ROUNDING * costs.max(), costs, 0.0)
        power = result.details.get("power")
        numbers = np.arange(1, len(costs) + 1)
        return cls(heading, numbers, costs, power if power in (1, 2) else None, int(result.problem["k"]))

    @classmethod
    def _chosen(cls, result: Result) -> Curve:
        """The curve by which k was chosen."""
        curve = result.details["curve"]
        try:
            numbers, k = np.array(curve["k"], np.int64), int(curve["suggested"])
        except (KeyError, TypeError, ValueError) as error:
            raise Damaged(f"this result's curve cannot be drawn: {error!r}") from error
        costs = checked(curve.get("costs"), (len(numbers),), "costs", most=1e300)
        if not len(numbers) or (costs < 0).any():
            raise Damaged("the result's costs cannot be drawn: some are negative, or there are none")
        return cls(Heading.of(result, "Cost by number of centres"), numbers, costs, None, k, suggested=True)

    def as_dict(self) -> dict[str, Any]:
        """The picture's numbers as plain data."""
        title, costs = self.heading.title, len(self.costs)
        given = {"picture": "curve", "title": title, "costs": costs, "power": self.power, "k": self.k}
        return {**given, "suggested": True} if self.suggested else given

    def text(self) -> str:
        """The picture in one line, for people."""
        if self.suggested:
            return f"cost per row with {self.numbers[0]} to {self.numbers[-1]} centres; {self.k} are suggested"
        return f"cost of the tree's best 1 to {len(self.costs)} centres; {self.k} were asked for"


def domain_of(result: Result) -> Box | Ball:
    """The public domain of a result, or the released frame in it. Raises: Damaged: there is none, or it is for other
    columns."""
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
        raise Damaged(f"this result does not say where rows can be: {error!r}") from error
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
        raise InvalidInput("give either two columns or a projection, not both")
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
        raise InvalidInput(f"a map has two different columns as its axes, not {', '.join(axes) or 'none'}")
    for name in axes:
        if name not in columns:
            raise UnknownName("column", name, columns)
    return columns.index(axes[0]), columns.index(axes[1])


def _cells(result: Result, d: int) -> tuple[Floats, Floats | None]:
    """Corners (m, 2, d or p) of the cells, and their frame (d, p), None if they are in the columns' own."""
    given, frame = _detail(result, "cells"), _detail(result, "projection")
    if given is None:
        return np.empty((0, 2, d)), None
    if frame is not None:
        frame = checked(frame, (d, None), "projection", most=2.0)
        if np.abs(frame.T @ frame - np.eye(frame.shape[1])).max() > 0.001:
            raise Damaged("the result's projection cannot be drawn: its columns are not orthonormal")
    cells = checked(given, (None, 2, d if frame is None else frame.shape[1]), "cells")
    if (cells[:, 0] > cells[:, 1]).any():
        raise Damaged("the result's cells cannot be drawn: some end before they begin")
    if frame is not None and frame.shape[1] < 2:
        return np.empty((0, 2, d)), None  # intervals along one direction: nothing to see in a plane
    return cells, frame


def _strip(domain: Box | Ball, cells: Floats) -> tuple[Box, Floats]:
    """One column as a strip in a plane, a twelfth as wide as it is long."""
    if isinstance(domain, Box):
        low, high = domain.lower[0], domain.upper[0]
    else:
        low, high = domain.center[0] - domain.radius, domain.center[0] + domain.radius
    half = (high / 2 - low / 2) / 12
    across = np.broadcast_to(np.array([[-half], [half]]), (len(cells), 2, 1))
    return Box((low, -half), (high, half)), np.concatenate([cells, across], axis=2)


def _drawn(result: Result, view: View, cells: Floats, frame: Floats | None) -> tuple[Floats, Floats]:
    """Polygons of the heaviest cells, the heaviest last (the first one among equals), and their shades."""
    if not len(cells) or (frame is not None and view.projected != TREE):  # unbounded in any view but its own
        return np.empty((0, 4, 2)), np.empty(0)
    given = _detail(result, "cell_weights")
    weights = np.ones(len(cells)) if given is None else checked(given, (len(cells),), "weights of cells")
    dimension = cells.shape[2]
    most = FLAT if dimension <= 2 else max(1, min(OVERLAPPING, CORNERS // (2 * dimension)))
    heaviest = np.argsort(-weights, kind="stable")[:most][::-1]
    if frame is not None:
        view = View(view.names, np.zeros(dimension), np.eye(dimension, 2))
    outlines = view.outlines(cells[heaviest])
    return outlines, shade(weights[heaviest], outlines)


def _detail(result: Result, name: str) -> Any:
    """An entry of ``details``, None if missing or empty: an empty array loses its shape in a file."""
    given = result.details.get(name)
    return None if isinstance(given, (list, tuple, np.ndarray)) and len(given) == 0 else given


def checked(given: Any, shape: tuple[int | None, ...], what: str, most: float = HUGE) -> Floats:
    """Check that numbers are finite and of a shape, in which None is any length. Raises: Damaged."""
    try:
        found = np.asarray(given, np.float64)
    except (TypeError, ValueError):
        found = np.empty(())
    fits = found.ndim == len(shape) and all(s is None or s == n for s, n in zip(shape, found.shape, strict=True))
    if not fits or not (np.abs(found) <= most).all():
        expected = " x ".join("any" if s is None else str(s) for s in shape)
        raise Damaged(f"the result's {what} cannot be drawn: they should be {expected} finite numbers")
    return found
