"""Warm start: centres that a run begins from (``--start``), an earlier result's, or ones that were made on public rows.

They are mapped by the names of columns, each value of a category being one, and become an option of the method that
begins from them (``Spec.starts``), so that plans, digests, ledgers and records see an ordinary composition.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self, final

import attrs
import numpy as np

from cloister.core.domains import Ball
from cloister.core.errors import Damaged, InvalidInput
from cloister.core.registry.compose import Composed
from cloister.rows.selection import Selection, table_columns
from cloister.run.bounds import FILES, table_from
from cloister.run.layers.layer import Scope
from cloister.run.result import Result

HELP = (
    "give a saved result (.json, .npz), or a table with a list of numbers per column, one for each centre (.toml, "
    ".json, a mapping)"
)


@attrs.frozen(eq=False)
class Start:
    """Public centres. Args: centers (coordinates by column), result (the earlier one; None: they are of none)."""

    centers: Mapping[str, Any]
    result: Result | None = None

    @classmethod
    def of(cls, start: Any) -> Self:
        """Return a start as callers give it. Raises: CloisterError: it cannot be read."""
        content = start
        if isinstance(start, (str, Path)):
            path = Path(start)
            content = table_from(path, "start") if path.suffix in FILES else Result.load(path)
            if isinstance(content, Mapping) and {"format", "sha256"} & set(content):
                content = Result.load(path)
        if isinstance(content, Result):
            return cls(dict(zip(content.columns, content.centers.T.tolist(), strict=True)), content)
        if not isinstance(content, Mapping):
            raise InvalidInput(f"the start is {start!r}: {HELP}")
        return cls({str(name): values for name, values in content.items()})

    @property
    def k(self) -> int | None:
        """The number of centres; None if the columns do not say."""
        sizes = {len(values) if isinstance(values, (list, tuple)) else 0 for values in self.centers.values()}
        return sizes.pop() or None if len(sizes) == 1 else None

    @property
    def categories(self) -> dict[str, Any]:
        """Public values by column, as an earlier result has them."""
        if self.result is None or not self.result.one_hot:  # which refuses damaged ones
            return {}
        return dict(self.result.problem["categories"])

    @property
    def missing(self) -> str | None:
        """What the earlier run did with rows that have missing cells."""
        return None if self.result is None else self.result.missing

    def columns(self, categories: Mapping[str, Any]) -> list[str] | None:
        """Return the columns of a table that the centres are of; None if they have no names, as those of an array."""
        names = list(self.centers)
        return None if names == [str(j) for j in range(len(names))] else table_columns(names, categories)

    def option(self, columns: Sequence[str], k: Any) -> str:
        """Return the centres as the option ``centers``, columns in this order.

        Raises: InvalidInput: they are of other columns or of another k, or no numbers.
        """
        if set(self.centers) != set(columns):
            missing = [name for name in columns if name not in self.centers]
            extra = [name for name in self.centers if name not in columns]
            words = [f"lacks {', '.join(missing[:8])}"] * bool(missing) + [f"has {', '.join(extra[:8])}"] * bool(extra)
            raise InvalidInput(
                f"the start {' and '.join(words)}, and the run's columns are {', '.join(columns[:8])}: name the same "
                f"columns (--columns) and list the same values of categories, or leave the start out"
            )
        try:
            points = np.array([self.centers[name] for name in columns], np.float64).T
            if points.ndim != 2 or not np.isfinite(points).all():
                raise ValueError
        except (TypeError, ValueError, OverflowError):
            raise InvalidInput(f"the start's columns are no lists of as many finite numbers: {HELP}") from None
        if k != len(points):
            raise InvalidInput(f"the start has {len(points)} centres, k is {k}: give -k {len(points)}, or no start")
        return ";".join(",".join(map(repr, row)) for row in points.tolist())

    def bounds(self, columns: Sequence[str], *, narrowed: bool) -> Any:
        """Return the bounds of the earlier run; narrowed: the intervals that it found within them."""
        if self.result is None:
            return None
        domain = self.result.domain
        if isinstance(domain, Ball):
            return domain if tuple(columns) == self.result.columns else None
        intervals = self.result.details.get("intervals") if narrowed else None
        pairs = zip(domain.lower, domain.upper, strict=True) if intervals is None else intervals
        try:
            return dict(zip(self.result.columns, ((float(low), float(high)) for low, high in pairs), strict=True))
        except (TypeError, ValueError):
            raise Damaged("the result's intervals are damaged: they should be two numbers per column") from None


@final
@attrs.frozen
class WarmStart:
    """Public centres that a run compares with what ``auto`` picks. Args: centers (as an option)."""

    centers: str
    part: float = 0.0

    def seen(self, scope: Scope) -> Scope:
        return scope

    def around(self, method: Composed, scope: Scope, share: float) -> Composed:
        """Return the method that goes on from these centres or from those of another one, whichever fit better.

        Raises: InvalidInput: the other one has another objective.
        """
        starter = scope.kit.starter()
        if method.spec.objective != starter.spec.objective:
            raise InvalidInput(
                f"'{method.spec.name}' is for {method.spec.objective}, and a start for {starter.spec.objective}: leave "
                f"it out"
            )
        compared = starter.given(options={starter.spec.starts: self.centers}).repeating("fresh", method)
        return attrs.evolve(scope, trust=scope.trust or "Central").filled(compared)[0]


def read(request: Any, table: Selection) -> tuple[Any, WarmStart | None]:
    """Return the request with the start as an option if its method begins from one, or else a comparison for ``auto``.

    A method that trusts its start does not pay to find where rows are: its bounds are, unless the caller gives some,
    what the earlier run found.

    Raises: InvalidInput: the method begins from no start, or the start is of a run that protects nobody, whose centres
    would stand in the result.
    """
    if request.start is None:
        return request, None
    start = Start.of(request.start)
    if start.result is not None and not (start.result.privacy.protects or request.not_private):
        raise InvalidInput(
            "the start is the result of a run that is NOT private, so that its centres are not public: begin from "
            "others. For a benchmark on rows that are not secret, allow it with --not-private (not_private=True)"
        )
    columns = table.clustered.features
    centers = start.option(columns, request.k)
    method, option = request.method, request.method.spec.starts
    if method.made is not None or not (option or method.chooses):
        starters = ", ".join(draft.spec.name for draft in method.kit.methods if draft.spec.starts)
        raise InvalidInput(f"the method begins from no start: leave it out, or give --method auto, {starters}")
    changes = dict[str, Any]()
    if option:
        changes["method"] = method.given(options={option: centers})
        changes["zoom"] = "off" if request.zoom == "auto" else request.zoom
        if start.result is not None and request.scale is None:
            changes["scale"] = scale_of(start.result)
    if request.bounds is None:
        changes["bounds"] = start.bounds(columns, narrowed=bool(option))
    return attrs.evolve(request, **changes), None if option else WarmStart(centers)


def notes(composed: Composed, details: Mapping[str, Any]) -> tuple[str, ...]:
    """Return a statement's sentences on the centres that a run began from, and on those that it went on from."""
    public = (
        "The centres that the run began from count as public: what they tell of the rows that they were found in is "
        "the promise of whatever found them, and adds to this one where these are the same rows."
    )
    went = f"The run went on from the {details.get('start')} centres, by a private comparison that it paid for."
    return (*([public] if _begins(composed) else []), *([went] if "start" in details else []))


def _begins(composed: Composed) -> bool:
    """Return True if some part of a method begins from public centres."""
    value: Any = composed.value
    for name in composed.spec.starts.split(".") if composed.spec.starts else ():
        value = getattr(value, name, "")
    return bool(composed.spec.starts and value) or any(_begins(part) for part in composed.inner.values())


def scale_of(result: Result) -> str | None:
    """Return the scale of a result's distances as a caller gives it: without the fixed units of categories."""
    scale: str = result.method.get("frame", {"options": {"scale": "none"}})["options"]["scale"]
    units = [unit for unit in scale.split(",") if not unit.startswith("category:")]
    return units[0] if set(units) == {"bounds"} else ",".join(units) or None
