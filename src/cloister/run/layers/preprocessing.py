"""Preprocessing: zooming in on the rows, and the units of distances.

A method that needs a frame is put into the wrapper that adds one (zoom) before anything is planned, so that ledgers,
plans and digests see an ordinary composition.

* zoom: 'auto' (a share of the budget where it pays by public figures, under a curator or parties who pool), 'off', or
  the share.
* scale: None (by bounds where widths differ by more than a factor of two or there are categories), 'none', 'bounds', or
  weights: a number per column, a mapping of column names to numbers, or a file of one.
* categories have a unit of their own: two rows of different ones are as far apart as ``zoom_categories.distance`` says
  'bounds', so that no category takes over a clustering, and one unit under 'none' and weights.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
import numpy as np

from cloister.core.domains import Box, Domain
from cloister.core.doubles import as_float
from cloister.core.errors import InvalidInput
from cloister.core.frames import cube, unknown_columns
from cloister.core.registry.compose import Composed
from cloister.core.registry.draft import Kit
from cloister.core.types import Floats
from cloister.core.wrappers import METHOD
from cloister.rows.selection import Selection
from cloister.run.bounds import check_named, table_from
from cloister.run.layers.count_oracle import count_oracle
from cloister.run.layers.layer import Scope

APART = 2.0
"""Columns whose widths differ by a larger factor are scaled, unless the caller says how."""

NARROW = 0.25
"""A column of less than this part of the widest one's width is narrow."""

SCALE_HELP = "give bounds, none, a weight per column, or a .toml or .json file with a weight per column name"


@attrs.frozen
class Preprocessing:
    """Zoom and scale that a request asks for.

    Args: zoom ('auto', 'off' or a share of the budget), scale (None, or from ``scale_of``), one_hot (for each column
    how many values its category has, 0 for one of numbers; empty: all are).
    """

    zoom: str | float
    scale: str | None
    one_hot: tuple[int, ...] = ()
    part: float = 0.0

    def __attrs_post_init__(self) -> None:
        if not (self.zoom in ("auto", "off") or _is_share(self.zoom)):
            raise InvalidInput(f"zoom is {self.zoom!r}: give auto, off, or a share of the budget such as 0.05")

    def seen(self, scope: Scope) -> Scope:
        """Return the figures that a curator's method is chosen by: those of the frame, if columns are scaled."""
        domain = scope.domain
        framed = isinstance(domain, Box) and (self._units(domain) != "none" or unknown_columns(domain))
        inside = cube(domain.dimension) if framed else domain
        return attrs.evolve(scope, domain=inside, narrow=self._narrow(domain, scope.k, scope.kit))

    def units(self, domain: Domain, k: int, kit: Kit) -> Floats:
        """Return units of distances (d,) before anything is found of the rows."""
        scale = self._units(domain)
        if scale == "none" or not isinstance(domain, Box):
            return np.ones(domain.dimension)
        zoom = kit.wrapper("frame").given(options={"share": 0.0, "scale": scale}).composed()
        units: Floats = zoom.value.units_of(domain.half_widths, k)
        return units

    def _narrow(self, domain: Domain, k: int, kit: Kit) -> bool:
        if not isinstance(domain, Box):
            return False
        if unknown_columns(domain):
            return any(self.one_hot)
        widths = domain.half_widths / self.units(domain, k, kit)
        return bool(widths.min() < NARROW * widths.max())

    def _units(self, domain: Domain) -> str:
        """Return the scale as ``zoom`` takes it."""
        encoded = any(self.one_hot)
        scale = self.scale or ("bounds" if encoded or apart(domain) else "none")
        if not encoded:
            return scale
        numbers = self.one_hot.count(0)
        units = iter({"bounds": ["bounds"] * numbers, "none": ["1.0"] * numbers}.get(scale, scale.split(",")))
        return ",".join(f"category:{values}" if values else next(units) for values in self.one_hot)

    def around(self, method: Composed, scope: Scope, share: float) -> Composed:
        """Return the method in its frame; as it is, if it needs none.

        Raises: InvalidInput: a frame was asked for, or unknown bounds need one, and there can be none.
        """
        domain, unknown = scope.domain, unknown_columns(scope.domain)
        if method.spec.adds:
            if self.zoom != "auto" or self.scale or any(self.one_hot):
                raise InvalidInput(
                    f"the method '{method.spec.name}' has its own options: set share and scale, or ask for the method "
                    f"within"
                )
            return method
        remote = method.trust in ("Local", "Shuffled")
        paid = {"off": 0.0, "auto": 0.0 if remote else None}.get(str(self.zoom), self.zoom)
        scale = self._units(domain)
        if unknown and remote and self.zoom == "auto":
            raise InvalidInput(
                f"the range of {len(unknown)} of the columns is unknown, and under {method.trust} trust nothing is "
                f"paid to find it unless you say how much: give --zoom 0.2 (zoom=0.2), the share of the budget for "
                f"it, or state bounds for every column"
            )
        if paid == 0 and scale == "none" and not unknown:
            return method
        oracle = count_oracle(method, scope)
        if oracle is None or not isinstance(domain, Box):
            if paid or unknown or self.scale not in (None, "none") or any(self.one_hot):
                why = "counts no rows by itself" if oracle is None else "has a ball for its bounds, with one unit"
                raise InvalidInput(
                    f"'{method.spec.name}' {why}: it takes no zoom, no scale, no unknown bounds and no categories"
                )
            return method
        options, parts = {"share": paid, "scale": scale}, {METHOD: method, "counts": oracle}
        framed = scope.kit.wrapper("frame").given(options=options, parts=parts).composed()
        looks = framed.value.share_of(scope.whole(framed)) > 0  # refused here, where unknown bounds cannot be found
        return framed if looks or scale != "none" else method


def read(request: Any, table: Selection) -> tuple[Any, Preprocessing]:
    """Return the zoom and scale that a request asks for."""
    used = table.clustered
    scale = scale_of(request.scale, used.numbers, used.recorded())
    return request, Preprocessing(request.zoom, scale, used.one_hot)


def _is_share(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < 1


def apart(domain: Domain) -> bool:
    """Return True if columns are so differently wide that one unit does not suit them, or of unknown width."""
    if not isinstance(domain, Box) or domain.dimension == 1:
        return False
    return bool(unknown_columns(domain) or domain.half_widths.max() > APART * domain.half_widths.min())


def scale_of(scale: Any, columns: Sequence[str], categories: Collection[str] = ()) -> str | None:
    """Return a caller's scale as the option of ``zoom``; None if it is left open.

    Args: scale, as the module has it (text may name a file); columns, those of numbers; categories, the others, which
    have a unit of their own. Raises: InvalidInput: it is none of these.
    """
    if scale is None or (isinstance(scale, str) and scale in ("bounds", "none", "auto")):
        return None if scale in (None, "auto") else str(scale)
    original = scale
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
        raise InvalidInput(f"scale is {original!r}: {SCALE_HELP}") from None
    if len(weights) != len(columns) or not all(math.isfinite(weight) and weight > 0 for weight in weights):
        raise InvalidInput(f"scale is {original!r}: {len(columns)} columns take a positive number each; {SCALE_HELP}")
    return ",".join(f"{weight!r}" for weight in weights)
