"""Results of runs: released values and public facts, saved as JSON or npz."""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, final

import attrs
import numpy as np

from cloister.core.domains import Ball, Box
from cloister.core.errors import Damaged, InvalidInput, cause
from cloister.core.plain_data import parsed
from cloister.core.types import AnyArray, Bools, Floats
from cloister.rows.options import Missing, as_missing
from cloister.run import view
from cloister.run.saving import checked_target, put, replace
from cloister.run.statement import PrivacyStatement

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMAT = "cloister-result-1"


@final
@attrs.frozen(eq=False)
class Result:
    """Outcome of a run: released values and public facts only.

    Args:
        centers: (k, d) in the caller's units.
        weights: (k,) noisy rows per centre, or None.
        columns: names of the d columns.
        method: names and options of the method and everything in its slots.
        problem: k, public number of rows, bounds, as plain data.
        privacy: the statement.
        details: other released figures by name (plain data or arrays).
        version: of cloister.
    """

    centers: Floats
    weights: Floats | None
    columns: tuple[str, ...]
    method: dict[str, Any]
    problem: dict[str, Any]
    privacy: PrivacyStatement
    details: dict[str, Any]
    version: str

    @property
    def units(self) -> Floats | None:
        """Unit of distance in each column (d,), in the caller's units; None where it is the same in all of them."""
        try:
            units = np.asarray(self.details.get("units", ()), np.float64)
        except (TypeError, ValueError):
            units = np.zeros(1)
        if units.size and (units.shape != (len(self.columns),) or not (units > 0).all()):
            raise Damaged("the result's units are damaged: they should be a positive number per column")
        return units if units.size and np.ptp(units) > 1e-9 * units.max() else None

    @property
    def domain(self) -> Box | Ball:
        """Bounds that the run clipped rows to. Raises Damaged if they are malformed."""
        try:
            return _domain(self.problem.get("bounds", {}), len(self.columns))
        except (KeyError, TypeError, ValueError, InvalidInput):
            raise Damaged("the result's bounds are damaged: they should be two numbers per column, or a ball") from None

    @property
    def missing(self) -> Missing:
        """Treatment of rows with missing or infinite cells. Raises Damaged if it is unknown."""
        try:
            return as_missing(self.problem.get("missing", "refuse"))
        except InvalidInput as error:
            raise Damaged(f"the result is damaged: {error}") from None

    def clipped(self, rows: AnyArray) -> tuple[Floats, Bools]:
        """Return rows (n, d) clipped to the bounds, and the mask (n,) of those outside. NOT private: your own rows.

        The run may have clipped further, to the narrower intervals of zoom.
        """
        domain, rows = self.domain, np.asarray(rows, np.float64)
        if isinstance(domain, Box):
            inside = (rows >= domain.lower) & (rows <= domain.upper)
            if inside.all():
                return rows, np.zeros(len(rows), bool)
            return domain.truncate(rows), np.asarray(~inside.all(axis=1))
        moved = domain.truncate(rows)
        outside = np.linalg.norm(rows - domain.middle, axis=1) > domain.radius
        return np.where(outside[:, None], moved, rows), outside

    def __repr__(self) -> str:
        """Return one line; ``as_dict`` has the numbers."""
        k, d = self.centers.shape
        return f"<Result: {k} centres by {self.method.get('name')}, {d} columns; {self.privacy.headline}>"

    @property
    def one_hot(self) -> dict[str, tuple[str, str]]:
        """One-hot columns, each with its category's column and value. Raises Damaged if categories are malformed."""
        try:
            categories = dict(self.problem.get("categories", {})).items()
            return {f"{column}={value}": (column, str(value)) for column, values in categories for value in values}
        except (TypeError, ValueError):
            raise Damaged("the result's categories are damaged: they should be lists of values by column") from None

    @property
    def numeric(self) -> list[int]:
        """Positions of the numeric columns; of all columns if fewer than two are numeric."""
        spread = self.one_hot
        positions = [j for j, name in enumerate(self.columns) if name not in spread]
        return positions if len(positions) > 1 else list(range(len(self.columns)))

    @property
    def by_size(self) -> list[int]:
        """Centres' numbers, the largest group first; in their own order if no sizes are released."""
        sizes = np.zeros(len(self.centers)) if self.weights is None else self.weights
        return [int(number) for number in np.argsort(-sizes, kind="stable")]

    @property
    def called(self) -> list[str]:
        """Display names of the groups (k,): number, and the name that ``named`` gave."""
        names: Any = self.details.get("group_names")  # a plugin's method may mean something else by it
        k = len(self.centers)
        valid = (
            isinstance(names, list) and len(names) == k and all(isinstance(n, str) and n.isprintable() for n in names)
        )
        return [f"{i} {names[i] if valid else ''}".strip() for i in range(k)]

    @property
    def group_names(self) -> list[str]:
        """Names of the groups (k,), as ``named`` gave them; a group without one has its number."""
        return [text.partition(" ")[2] or text for text in self.called]

    def named(self, names: Mapping[Any, Any]) -> Result:
        """Return the result with names for its groups, which tables, plots and reports show beside the numbers.

        Args:
            names: names by number: {0: "Frail", "1": "Young"}; not every group needs one.

        Raises:
            InvalidInput: a group that does not exist or has two names; a name that is no text, is empty, longer than 40
                characters, a number, or another group's.
        """
        group_names, numbers = [""] * len(self.centers), [str(i) for i in range(len(self.centers))]
        for key, value in names.items():
            number, name = str(key).strip(), str(value).strip()
            if number not in numbers:
                raise InvalidInput(f"there is no group {number!r} to be named: their numbers are 0 to {numbers[-1]}")
            if not isinstance(value, str) or not re.fullmatch(r"(?!\d+$).{1,40}", name) or not name.isprintable():
                raise InvalidInput(
                    f"{value!r} is no name of group {number}: give a line of at most 40 characters that is no number"
                )
            if group_names[int(number)] or name in group_names:
                raise InvalidInput(f"a second name of group {number}, or a second group named {name!r}: leave one out")
            group_names[int(number)] = name
        return attrs.evolve(self, details={**self.details, "group_names": group_names})

    def as_dict(self) -> dict[str, Any]:
        """Return plain data, ready for JSON: numbers keep all their digits."""
        return {
            "format": FORMAT,
            "version": self.version,
            "columns": list(self.columns),
            "centers": self.centers.tolist(),
            "weights": None if self.weights is None else self.weights.tolist(),
            "method": self.method,
            "problem": self.problem,
            "privacy": self.privacy.as_dict(),
            "details": {name: np.asarray(value).tolist() for name, value in self.details.items()},
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Result:
        """Read the output of ``as_dict``. Raises KeyError, TypeError or ValueError for anything else."""
        if data["format"] != FORMAT:
            raise ValueError(f"format {data['format']!r}")
        centers = np.array(data["centers"], np.float64)
        weights = None if data["weights"] is None else np.array(data["weights"], np.float64)
        if (
            centers.ndim != 2
            or centers.shape[1] != len(data["columns"])
            or (weights is not None and weights.shape != centers.shape[:1])
        ):
            raise ValueError("shapes do not fit")
        if not all(isinstance(name, str) for name in data["columns"]):
            raise TypeError("columns are named by text")
        if not all(isinstance(data[name], dict) for name in ("method", "problem", "details")):
            raise TypeError("facts are tables")
        _check_problem(data["problem"])
        _check_component(data["method"])
        return cls(
            centers,
            weights,
            tuple(data["columns"]),
            data["method"],
            data["problem"],
            PrivacyStatement.from_dict(data["privacy"]),
            data["details"],
            data["version"],
        )

    def text(self) -> str:
        """Return the result as one line of JSON, for the ledger."""
        return json.dumps(self.as_dict())

    @classmethod
    def from_text(cls, text: str) -> Result:
        """Read the output of ``text``. Raises Damaged for anything else."""
        try:
            return cls.from_dict(parsed(text.encode(), nan=True))
        except (ValueError, KeyError, TypeError, AttributeError, ArithmeticError, InvalidInput) as error:
            raise Damaged("the kept result is damaged: restore a backup") from error

    def _repr_html_(self) -> str:
        """Return HTML for notebooks: the guarantee, and the centres with their noisy sizes."""
        return str(view("html")(self))

    def plot(self, axes: Sequence[str] | None = None, *, project: bool = False, curve: bool = False) -> Figure:
        """Plot the map of the centres, or the curve of cost against k. Released values only.

        Args:
            axes: names of two columns.
            project: onto the tree's public projection, or the centres' principal axes.
            curve: plot the curve instead of the map.

        Raises:
            InvalidInput, UnknownName: there is no such plot.
            MissingExtra: matplotlib is not installed.
        """
        if curve and (axes is not None or project):
            raise InvalidInput("axes and project are for the map: give curve alone")
        figure: Figure = view("curve")(self) if curve else view("map")(self, axes, project=project)
        return figure

    def estimator(self) -> Any:
        """Return a fitted ``cloister.KMeans``, ``KMedians`` (k-median) or ``OneRound`` (one round of local trust)."""
        return view("estimator")(self)

    def profile(self) -> Any:
        """Return the ``cloister.showing.profile.Profile`` of the clusters. Released values only."""
        return view("profile")(self)

    def report(self, path: str | os.PathLike[str], axes: Sequence[str] | None = None) -> None:
        """Write a self-contained HTML report. Released values only.

        Args:
            path: file to write.
            axes: names of the two columns of its map; None: those in which the centres differ most.

        Raises:
            InvalidInput: another ending than ``.html``, or a path that cannot be written.
            MissingExtra: matplotlib or Jinja2 is not installed.
        """
        target = checked_target(path, (".html",), "reports")
        put(target, view("page")(self, axes).encode())

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write to ``.json`` or ``.npz``, atomically: a crash leaves the old file.

        Raises:
            InvalidInput: another ending, or a path that cannot be written.
        """
        target = checked_target(path)
        text = json.dumps(self.as_dict(), indent=1, allow_nan=True)
        sealed = json.dumps({"sha256": _seal(text), "result": json.loads(text)}, indent=1)

        def write(file: BinaryIO) -> None:
            if target.suffix == ".json":
                file.write(sealed.encode() + b"\n")
            else:
                weights = {} if self.weights is None else {"weights": self.weights}
                np.savez(file, allow_pickle=False, centers=self.centers, **weights, result=np.array(sealed))

        replace(target, write)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Result:
        """Read a file of ``save``, or the output of ``cloister fit --json``, which has no checksum.

        Raises:
            InvalidInput: no such file.
            Damaged: the file differs from what was written.
        """
        source = Path(path)
        try:
            content = source.read_bytes()
        except OSError as error:
            raise InvalidInput(f"cannot read {source}: {cause(error)}") from error
        try:
            return cls._opened(content, packed=source.suffix == ".npz")
        except Exception as error:  # a damaged archive makes NumPy and zipfile raise whatever they stumble over
            raise Damaged(
                f"{source} is not a result of cloister, or it is damaged: run the fit again, or restore the file"
            ) from error

    @classmethod
    def _opened(cls, content: bytes, packed: bool) -> Result:
        if not packed:
            return cls._unsealed(parsed(content, nan=True))
        with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
            result = cls._unsealed(parsed(str(arrays["result"]).encode(), nan=True))
            weights = arrays.get("weights")
            if not np.array_equal(arrays["centers"], result.centers, equal_nan=True) or (weights is None) != (
                result.weights is None
            ):
                raise ValueError("arrays")
            if (
                weights is not None
                and result.weights is not None
                and not np.array_equal(weights, result.weights, equal_nan=True)
            ):
                raise ValueError("arrays")
        return result

    @classmethod
    def _unsealed(cls, sealed: dict[str, Any]) -> Result:
        if "sha256" not in sealed:
            return cls.from_dict(sealed)
        if sealed["sha256"] != _seal(json.dumps(sealed["result"], indent=1, allow_nan=True)):
            raise ValueError("checksum")
        return cls.from_dict(sealed["result"])


def _check_problem(problem: Mapping[str, Any]) -> None:
    """Raise TypeError, ValueError or KeyError if facts that every reader relies on have another type."""
    for name in ("k", "rows", "rows per user"):
        value = problem.get(name)
        if value is not None and (type(value) is not int or not 0 < value < 2**63):
            raise ValueError(f"{name} is no number")
    if not all(isinstance(problem.get(name, {}), dict) for name in ("categories", "described", "words")):
        raise TypeError("facts are tables")
    for values in problem.get("categories", {}).values():
        if not isinstance(values, list) or not values or not all(isinstance(v, str | int) for v in values):
            raise TypeError("values of a category are a list")
    if "words" in problem and not isinstance(problem["words"]["column"], str):
        raise TypeError("a column is named by text")


def _check_component(config: Any) -> None:
    """Raise TypeError or KeyError unless a component is its name, its options and the components in its slots."""
    if not isinstance(config["name"], str) or not isinstance(config["options"], dict):
        raise TypeError("a component has a name and options")
    for inner in config["slots"].values():
        _check_component(inner)


def _domain(bounds: Mapping[str, Any], columns: int) -> Box | Ball:
    """Return the domain of a result's bounds. Raises KeyError, TypeError, ValueError or InvalidInput if malformed."""
    ends = [tuple(bounds[end]) for end in (("center",) if "radius" in bounds else ("lower", "upper"))]
    domain = Ball(ends[0], bounds["radius"]) if "radius" in bounds else Box(ends[0], ends[1])
    if domain.dimension != columns:
        raise ValueError("bounds of other columns")
    return domain


def _seal(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
