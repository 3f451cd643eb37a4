"""The frame that a run's method works in: zooming in on the rows, and the units of distances.

A method that needs a frame is put into the method that wraps another one (``Spec.wraps``: zoom) before anything is
planned, so that ledgers, plans and digests see an ordinary composition.

* zoom: 'auto' (a share of the budget where it pays by public figures, under a curator or parties who pool), 'off', or
  the share.
* scale: None (by bounds where widths differ by more than a factor of two or there are categories), 'none', 'bounds', or
  weights: a number per column, a mapping of column names to numbers, or a file of one.
* categories have a unit of their own: two rows of different ones are as far apart as ``zoom.distance`` has it under
  'bounds', so that no category takes over a clustering, and one unit under 'none' and weights.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
import numpy as np

from cloister.accounting.budgeting import problem_of
from cloister.accounting.privacy_target import PrivacyTarget
from cloister.core.capabilities import Zooming
from cloister.core.clustering import Problem
from cloister.core.domains import Ball, Box
from cloister.core.doubles import as_float
from cloister.core.errors import InvalidInput
from cloister.core.frames import cube, unknown_columns
from cloister.core.registry.compose import Composed, compose
from cloister.core.registry.making import filled
from cloister.core.registry.registry import registry
from cloister.core.types import Floats
from cloister.run.bounds import check_named, table_from
from cloister.run.describing import clustered
from cloister.run.estimates import resolved

APART = 2.0
"""Columns whose widths differ by a larger factor are scaled, unless the caller says how."""

NARROW = 0.25
"""A column of less than this part of the widest one's width is narrow."""

SHOWN = 12
"""Most columns whose intervals a statement spells out; the result holds all."""

CLIPPED = "Rows outside were clipped to them, which no size, centre or standard error shows."

SCALE_HELP = "give bounds, none, a weight per column, or a .toml or .json file with a weight per column name"


@attrs.frozen
class Framing:
    """Frame that was asked for.

    Args: zoom ('auto', 'off' or a share of the budget), scale (None, or from ``scale_of``), one_hot (for each column
    how many values its category has, 0 for one of numbers; empty: all are).
    """

    zoom: str | float
    scale: str | None
    one_hot: tuple[int, ...] = ()

    def __attrs_post_init__(self) -> None:
        if not (self.zoom in ("auto", "off") or _is_share(self.zoom)):
            raise InvalidInput(f"zoom is {self.zoom!r}: give auto, off, or a share of the budget such as 0.05")

    def inside(self, domain: Box | Ball) -> Box | Ball:
        """The domain that a curator's method works in, by which it is chosen: its frame's, if columns are scaled."""
        framed = isinstance(domain, Box) and (self._units(domain) != "none" or unknown_columns(domain))
        return cube(domain.dimension) if framed else domain

    def units(self, domain: Box | Ball, k: int) -> Floats:
        """Units of distances (d,) before anything is found of the rows."""
        scale = self._units(domain)
        if scale == "none" or isinstance(domain, Ball):
            return np.ones(domain.dimension)
        zoom: Zooming = filled(registry().load(registry().wrapper()), share=0.0, scale=scale)
        return zoom.units_of(domain.half_widths, k)

    def narrow(self, domain: Box | Ball, k: int) -> bool:
        """Whether a column is much narrower than others in the units of distances, as those of categories are."""
        if isinstance(domain, Ball):
            return False
        if unknown_columns(domain):
            return any(self.one_hot)
        widths = domain.half_widths / self.units(domain, k)
        return bool(widths.min() < NARROW * widths.max())

    def _units(self, domain: Box | Ball) -> str:
        """The scale as ``zoom`` takes it."""
        encoded = any(self.one_hot)
        scale = self.scale or ("bounds" if encoded or apart(domain) else "none")
        if not encoded:
            return scale
        numbers = self.one_hot.count(0)
        others = iter({"bounds": ["bounds"] * numbers, "none": ["1.0"] * numbers}.get(scale, scale.split(",")))
        return ",".join(f"category:{values}" if values else next(others) for values in self.one_hot)

    def of(
        self, composed: Composed, total: PrivacyTarget, k: int, domain: Box | Ball, rows: int, jointly: bool = True
    ) -> tuple[Problem, Composed]:
        """The problem, and the method in its frame; as it was composed, if it needs none. Args: as of ``problem_of``.

        Raises: InvalidInput: a frame was asked for, or unknown bounds need one, and there can be none.
        """
        if composed.spec.wraps and (self.zoom != "auto" or self.scale or any(self.one_hot)):
            raise InvalidInput(
                f"the method '{composed.spec.name}' has its own options: set share and scale, or ask for the method "
                f"within"
            )
        remote = composed.trust in ("Local", "Shuffled")
        share = {"off": 0.0, "auto": 0.0 if remote else None}.get(str(self.zoom), self.zoom)
        scale = self._units(domain)
        alone = problem_of(composed, total, k, domain, rows, jointly), composed
        unknown = unknown_columns(domain)
        if unknown and remote and self.zoom == "auto" and not composed.spec.wraps:
            raise InvalidInput(
                f"the range of {len(unknown)} of the columns is unknown, and under {composed.trust} trust nothing is "
                f"paid to find it unless you say how much: give --zoom 0.2 (zoom=0.2), the share of the budget for "
                f"it, or state bounds for every column"
            )
        if composed.spec.wraps or (share == 0 and scale == "none" and not unknown):
            return alone
        oracle = counting(composed, alone[0])
        if oracle is None or isinstance(domain, Ball):
            if share or unknown or self.scale not in (None, "none") or any(self.one_hot):
                why = "counts no rows by itself" if oracle is None else "has a ball for its bounds, with one unit"
                raise InvalidInput(
                    f"'{composed.spec.name}' {why}: it takes no zoom, no scale, no unknown bounds and no categories"
                )
            return alone
        spec = registry().wrapper()
        parts = {spec.wraps: composed, "counts": oracle}
        slots = {name: part.value for name, part in parts.items()}
        zoom = registry().load(spec)(**slots, share=share, scale=scale)
        zoomed = Composed(zoom, spec, parts, composed.trust)
        problem = problem_of(zoomed, total, k, domain, rows, jointly)
        paid = _share(zoomed, problem)  # or refused, where it must be
        return (problem, zoomed) if paid or scale != "none" else alone

    def asks(
        self, composed: Composed, total: PrivacyTarget, k: int, domain: Box | Ball, rows: int, jointly: bool
    ) -> bool:
        """Whether the frame asks where the rows are. Args and errors: as ``of``."""
        problem, framed = self.of(composed, total, k, domain, rows, jointly)
        return framed is not composed and _share(framed, problem) > 0


def _is_share(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < 1


def apart(domain: Box | Ball) -> bool:
    """Whether columns are so differently wide that one unit does not suit them, or of unknown width."""
    if isinstance(domain, Ball) or domain.dimension == 1:
        return False
    return bool(unknown_columns(domain) or domain.half_widths.max() > APART * domain.half_widths.min())


def _share(zoomed: Composed, problem: Problem) -> float:
    zoom: Zooming = zoomed.value
    return zoom.share_of(problem)


def counting(composed: Composed, problem: Problem) -> Composed | None:
    """The oracle for many small counts beside a method's questions: one of its own. Where these are pure and Gaussian
    it is the first of a curator's, since many add up best in Gaussian noise. None: it counts nothing by itself."""
    if composed.trust != "Central" or problem.budget.measure != "zcdp":
        return next(_counting(composed), None)
    (first, *_) = registry().in_order("FrequencyOracle", "Central")
    return compose(registry(), "FrequencyOracle", first.name, {}, {})


def _counting(composed: Composed) -> Iterator[Composed]:
    """The oracles of counts in a method's slots, its own first."""
    own = [part for part in composed.inner.values() if part.spec.role == "FrequencyOracle" and not part.uses_delta]
    yield from own
    for part in composed.inner.values():
        if part.spec.role == "Method":
            yield from _counting(part)


def unframed(composed: Composed) -> Composed:
    """The method itself, without the frame and the description that it was put in."""
    return unframed(composed.inner[composed.spec.wraps]) if composed.spec.wraps else composed


def recorded(composed: Composed) -> dict[str, Any]:
    """How a result records its method: as it was asked for, with the frame that it was put in beside it, and the
    description."""
    config = composed.config()
    if not composed.spec.wraps:
        return config
    del config["slots"][composed.spec.wraps]
    return {**recorded(composed.inner[composed.spec.wraps]), composed.spec.adds: config}


def scale_of(scale: Any, columns: Sequence[str], categories: Collection[str] = ()) -> str | None:
    """A caller's scale as the option of ``zoom``; None if he left it open.

    Args: scale, as the module has it (text may name a file); columns, those of numbers; categories, the others, which
    have a unit of their own. Raises: InvalidInput: it is none of these.
    """
    if scale is None or (isinstance(scale, str) and scale in ("bounds", "none", "auto")):
        return None if scale in (None, "auto") else str(scale)
    given = scale
    if isinstance(scale, str) and scale.endswith((".toml", ".json")):
        scale = table_from(Path(scale), "scale")
    elif isinstance(scale, str):
        scale = scale.split(",")
    if isinstance(scale, Mapping):
        if weighted := [name for name in categories if name in scale]:
            raise InvalidInput(f"'{weighted[0]}' is a category, whose unit is fixed: leave its weight out of the scale")
        check_named(scale, columns, "scale", SCALE_HELP)
        scale = [scale[name] for name in columns]
    try:
        if any(isinstance(weight, bool) for weight in scale):
            raise TypeError
        weights = [as_float(weight) for weight in scale]
    except (TypeError, ValueError):
        raise InvalidInput(f"scale is {given!r}: {SCALE_HELP}") from None
    if len(weights) != len(columns) or not all(math.isfinite(weight) and weight > 0 for weight in weights):
        raise InvalidInput(f"scale is {given!r}: {len(columns)} columns take a positive number each; {SCALE_HELP}")
    return ",".join(f"{weight!r}" for weight in weights)


def price(composed: Composed, problem: Problem, columns: Sequence[str]) -> str:
    """Share of the budget that finding the rows' range takes, and what it may miss; empty if nothing. Reads no rows."""
    composed, problem = clustered(composed, problem)
    share = _share(composed, problem) if composed.spec.wraps else 0.0
    if not share:
        return ""
    unknown = ", ".join(columns[j] for j in unknown_columns(problem.domain))
    where = f" and the unknown range of {unknown}" if unknown else ""
    zoom: Zooming = composed.value
    unseen = zoom.unseen_of(problem)
    promised = (
        f"Except in one run of 1,000, no group of at least {unseen:.1%} of the rows has its middle outside the "
        f"intervals that it finds."
        if unseen < 1
        else "How many rows lie outside the intervals that it finds cannot be promised."
    )
    return f"Zoom: {share:.1%} of the budget finds where the rows are within their bounds{where}. {promised}"


def notes(composed: Composed, problem: Problem, details: Mapping[str, Any], columns: Sequence[str]) -> tuple[str, ...]:
    """A statement's words on a run's frame: the price, what was released, and the units of distances."""
    composed, problem = clustered(composed, problem)
    if not composed.spec.wraps or "intervals" not in details:
        return ()
    paid, intervals, units = price(composed, problem, columns), details["intervals"], details["units"]
    columns = columns[: len(units)]
    shown = ", ".join(
        f"{name} {resolved(low, high - low, 6)} to {resolved(high, high - low, 6)}"
        for name, (low, high) in zip(columns[:SHOWN], intervals[:SHOWN], strict=True)
    )
    rest = f", and {len(columns) - SHOWN} more in the result" if len(columns) > SHOWN else ""
    found = (f"{paid} It released these intervals: {shown}{rest}. {CLIPPED}",) if paid else ()
    if np.allclose(units, units[0]):
        return found
    sizes = ", ".join(f"{name} {unit:.6g}" for name, unit in zip(columns[:SHOWN], units[:SHOWN], strict=True))
    return (
        *found,
        f"Distances were taken in units of each column's own: {sizes}{rest}. Centres are in the caller's units.",
    )
