"""A study's contenders, methods with their options and rivals from other packages, and the conditions that all share.

Rivals take part if they are installed. None of them is private.
"""

from __future__ import annotations

import hashlib
import importlib
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, Literal, cast, final

import attrs
import numpy as np
from threadpoolctl import threadpool_limits

from cloister._version import __version__
from cloister.core.domains import Ball, Box, Domain
from cloister.core.errors import CloisterError, InvalidInput
from cloister.core.frames import unknown_columns
from cloister.core.plain_data import digest
from cloister.core.registry.components import slots_of
from cloister.core.registry.registry import registry
from cloister.core.trust import trust_named
from cloister.core.types import Floats, Ids
from cloister.rows.selection import Selection
from cloister.run.bounds import domain_for
from cloister.run.fit import source
from cloister.run.layers.preprocessing import Preprocessing, apart, scale_of
from cloister.run.method_selection import number_of_centers
from cloister.run.request import Request

TRUST, DELTA = "trust", "delta"
"""Names in a contender's text that are neither slots nor options."""

TEXT_HELP = (
    "write METHOD, or METHOD:name=value:name=value with options, slots, trust or delta, as in fastlloyd:rounds=3"
)


@final
@attrs.frozen
class Contender:
    """A method with its options.

    Args:
        method: registry name.
        options: value per option path.
        components: component name per slot path.
        trust: a trust model whose oracles fill the other slots; None: as the method has them.
        delta: in place of the study's.
    """

    method: str
    options: Mapping[str, Any] = attrs.field(factory=dict)
    components: Mapping[str, str] = attrs.field(factory=dict)
    trust: str | None = attrs.field(default=None, converter=trust_named)
    delta: float | None = None

    @classmethod
    def of(cls, text: str) -> Contender:
        """The contender of a text such as ``fastlloyd``, ``hst-means:rounds=3`` or ``fastlloyd:trust=local``.

        Raises: InvalidInput: another form. UnknownName: no such method, or no such trust model.
        """
        method, *parts = text.strip().split(":")
        slots = slots_of(registry().load(registry().spec("Method", method)))
        options, components = dict[str, str](), dict[str, str]()
        for part in parts:
            name, equals, value = part.partition("=")
            target = components if name.rpartition(".")[2] in slots else options
            if not equals or not name or not value or name in target:
                raise InvalidInput(f"'{part}' in '{text}' is not one name=value: {TEXT_HELP}")
            target[name] = value
        trust, delta = options.pop(TRUST, None), options.pop(DELTA, None)
        try:
            return cls(method, options, components, trust, None if delta is None else float(delta))
        except ValueError:
            raise InvalidInput(f"delta={delta} in '{text}' is not a number") from None

    @property
    def label(self) -> str:
        """Its text: two contenders of one label are the same."""
        settings: dict[str, Any] = {**self.components, **self.options}
        if self.trust is not None:
            settings[TRUST] = self.trust.lower()
        if self.delta is not None:
            settings[DELTA] = f"{self.delta:g}"
        return ":".join([self.method, *(f"{name}={value}" for name, value in settings.items())])


def contenders_of(methods: Iterable[str | Contender] | None) -> list[Contender]:
    """These contenders, each once; None: ``auto``, and all methods of k-means that it picks from."""
    named = ["auto", *(spec.name for spec in registry().candidates("k-means"))] if methods is None else methods
    contenders = [Contender.of(one) if isinstance(one, str) else one for one in named]
    return list({one.label: one for one in contenders}.values())


FLAWS: Final = MappingProxyType(
    {
        "sklearn": "NOT private: scikit-learn's k-means of a single k-means++ start",
        "diffprivlib": "NOT private: it spends more epsilon than asked with 5 columns or more, and an empty cluster "
        "breaks its guarantee",
    }
)
"""Rivals by name, and why they protect nobody."""


def rival_centers(name: str, rows: Floats, k: int, epsilon: float, domain: Domain, units: Floats) -> Floats:
    """A rival's centres (k, d). Raises: CloisterError: it is not installed, or it fails.

    Args: rows (n, d) and domain in the caller's units; units (d,) of distances.
    """
    fit = _diffprivlib if name == "diffprivlib" else _sklearn
    with threadpool_limits(1):
        return fit(rows / units, k, epsilon, domain, units) * units


def check_rival(name: str, domain: Domain) -> None:
    """Raises: CloisterError: it cannot run here."""
    _kmeans(name)
    if name == "diffprivlib" and not isinstance(domain, Box):
        raise InvalidInput("diffprivlib takes bounds per column, not a ball")
    if name == "diffprivlib" and unknown_columns(domain):
        raise InvalidInput("diffprivlib takes stated bounds of every column")


def _kmeans(name: str) -> Callable[..., Any]:
    module = {"sklearn": "sklearn.cluster", "diffprivlib": "diffprivlib.models"}[name]
    try:
        estimator: Callable[..., Any] = importlib.import_module(module).KMeans
    except ModuleNotFoundError:
        raise CloisterError("the rival diffprivlib is not installed: pip install diffprivlib") from None
    except Exception as error:  # a stranger's module may raise anything
        raise CloisterError(
            f"the rival {name} is installed but cannot be loaded beside the other packages here: "
            f"{str(error).partition(' (')[0]}"
        ) from error
    return estimator


def _sklearn(rows: Floats, k: int, epsilon: float, domain: Domain, units: Floats) -> Floats:
    return np.asarray(_kmeans("sklearn")(n_clusters=k, n_init=1).fit(rows).cluster_centers_, np.float64)


def _diffprivlib(rows: Floats, k: int, epsilon: float, domain: Domain, units: Floats) -> Floats:
    check_rival("diffprivlib", domain)
    assert isinstance(domain, Box)
    bounds = np.array(domain.lower) / units, np.array(domain.upper) / units
    try:
        model = _kmeans("diffprivlib")(n_clusters=k, epsilon=epsilon, bounds=bounds)
        centers = np.asarray(model.fit(rows).cluster_centers_, np.float64)
    except Exception as error:  # a stranger's code may raise anything, and quote rows
        raise CloisterError(f"diffprivlib failed with {type(error).__name__}") from error
    if not np.isfinite(centers).all():
        raise CloisterError("diffprivlib returned centres that are not finite")
    return centers


SHOWN = 12
"""Most columns that a text names."""

READ = "rows"
"""In place of bounds: each column's least and largest value in the rows. Fit for comparisons alone: law 1."""


@final
@attrs.frozen
class Conditions:
    """The conditions of a study.

    Args:
        k: number of centres; of a range the largest.
        delta: probability, for every run.
        domain: the bounds, those of unknown columns too (``core.frames.UNKNOWN``).
        read: whether the bounds were read off the rows.
        scale: units of distances, as ``run.layers.preprocessing.scale_of`` returns them.
        rows: the number of rows that runs are told.
        count: how many rows there are.
        chosen: the columns.
        digest: SHA-256 of the rows.
        outside: how many of them lie outside the bounds.
        fewest: of a range of k; None: k is one number.
        widths: the bounds that units and the midpoint are of: those of unknown columns are read off the rows.
        users: of each row (n,), by number; None: rows are not users'.
        rows_per_user, zoom, trust: as in a fit, for contenders that have none of their own.
        start: public centres, coordinates by column; None: there are none.
    """

    k: int
    delta: float
    domain: Box | Ball
    read: bool
    scale: str | None
    rows: int
    count: int
    chosen: Selection
    digest: str
    outside: int
    fewest: int | None
    widths: Box | Ball
    users: Ids | None = None
    rows_per_user: int | None = None
    zoom: str | float = "auto"
    trust: str | None = None
    start: Mapping[str, Any] | None = None

    @classmethod
    def of(
        cls,
        rows: Floats,
        chosen: Selection,
        k: Any,
        bounds: Any,
        scale: Any,
        delta: float | Literal["auto"],
        public_rows: int | None,
        users: Ids | None = None,
        **run: Any,
    ) -> Conditions:
        """The conditions for rows (n, d).

        Args: chosen (the columns that these features are made of), k, bounds (also ``READ``) and scale as in a fit,
        delta ('auto': ``usual_delta``), public_rows (None: their number), users (n,), run (rows_per_user, zoom, trust
        and start). Raises: InvalidInput.
        """
        read = is_read(bounds)
        numbers = [j for j, values in enumerate(kinds(chosen)) if not values]
        domain = domain_for(ranges(rows[:, numbers]) if read else bounds, chosen)
        n_rows = len(rows) if public_rows is None else public_rows
        fewest, largest = k_range if isinstance(k_range := number_of_centers(k), tuple) else (None, k_range)
        if isinstance(largest, bool) or not isinstance(largest, (int, np.integer)) or not 1 <= largest <= len(rows):
            raise InvalidInput(f"k is {k!r}: give a whole number, or a range, between 1 and the {len(rows)} rows")
        if (users is None) != (run.get("rows_per_user") is None):
            raise InvalidInput(
                "rows of users go with the most rows of one user that count: give both --user-column (users=) and "
                "--rows-per-user (rows_per_user=), or none"
            )
        spent = usual_delta(n_rows) if delta == "auto" else float(delta)
        hashed = [repr(rows.shape).encode(), np.ascontiguousarray(rows, "<f8").tobytes()]
        hashed += [] if users is None else [np.ascontiguousarray(users, "<i8").tobytes()]
        seal = hashlib.sha256(b"".join(hashed)).hexdigest()
        scaled = scale_of(scale, chosen.numbers, chosen.recorded())
        found = int(largest), spent, domain, read, scaled, n_rows, len(rows), chosen, seal, _beyond(domain, rows)
        return cls(*found, fewest, _known(domain, rows), users, **run)

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the features."""
        return self.chosen.features

    def clipped(self, rows: Floats) -> Floats:
        """Rows (n, d) as all runs clip them: costs are of these."""
        return self.domain.truncate(rows) if self.outside else rows

    @property
    def units(self) -> Floats:
        """The units (d,) of distances in which all contenders' costs are taken, whatever their own are."""
        d, encoded = self.domain.dimension, any(kinds(self.chosen))
        scale = self.scale or ("bounds" if encoded or apart(self.domain) else "none")
        if isinstance(self.widths, Ball) or (scale == "none" and not encoded):
            return np.ones(d)
        if scale == "bounds":
            return Preprocessing("auto", scale, self.chosen.one_hot).units(self.widths, self.k)
        weights = iter([1.0] * d if scale == "none" else [float(weight) for weight in scale.split(",")])
        return np.array([math.sqrt(2) if values else 1 / next(weights) for values in kinds(self.chosen)])

    @property
    def middle(self) -> Floats:
        """The midpoint (1, d) of the bounds: what a single centre is without any data."""
        return np.asarray(self.widths.middle, np.float64)[None, :]

    @property
    def centers(self) -> str:
        """How many centres are asked for, as text: a number or a range."""
        return str(self.k) if self.fewest is None else f"{self.fewest}..{self.k}"

    @property
    def read_off(self) -> bool:
        """Whether the midpoint of the bounds tells about the rows."""
        return self.read or bool(unknown_columns(self.domain))

    def request(self, contender: Contender, epsilon: float, columns: Sequence[str] | None = None) -> Request:
        """A run of this contender. Args: columns (what the features are called there; None: as here)."""
        delta, bounds = self.delta if contender.delta is None else contender.delta, cast(Any, self.domain)
        if self.chosen.categories:  # whose bounds follow from them
            pairs = zip(self.domain.lower, self.domain.upper, kinds(self.chosen), strict=True)  # type: ignore[union-attr]
            bounds = [(low, high) for low, high, values in pairs if not values] or None
        names = dict(zip(self.columns, columns or self.columns, strict=True))
        start = None if self.start is None else {names.get(name, name): at for name, at in self.start.items()}
        return Request(
            k=self.k if self.fewest is None else (self.fewest, self.k),
            method=contender.method,
            epsilon=epsilon,
            delta=delta,
            bounds=bounds,
            rows=self.rows,
            scale=self.scale,
            components=contender.components,
            options=contender.options,
            trust=contender.trust or self.trust,
            not_private=True,
            rows_per_user=self.rows_per_user,
            zoom=self.zoom,
            start=start,
        )

    def as_dict(self) -> dict[str, Any]:
        """Plain data, by which a study that goes on knows its own."""
        box = isinstance(self.domain, Box)
        optional_facts = {
            "fewest": self.fewest,
            "rows per user": self.rows_per_user,
            "zoom": None if self.zoom == "auto" else self.zoom,
            "trust": self.trust,
            "start": None if self.start is None else digest(sorted(self.start.items())),
        }
        ends = [self.domain.lower, self.domain.upper] if box else [self.domain.center, self.domain.radius]  # type: ignore[union-attr]
        return {
            "k": self.k,
            "delta": self.delta,
            "bounds": [list(e) if isinstance(e, tuple) else e for e in ends],
            "bounds read off the rows": self.read,
            "scale": self.scale,
            "public rows": self.rows,
            "columns": list(self.columns),
            "rows": self.count,
            "sha256 of the rows": self.digest,
            "version": __version__,
            **{name: value for name, value in optional_facts.items() if value is not None},
        }

    def text(self) -> str:
        """The conditions in a line."""
        of = "read off these rows, which a private run never does" if self.read else "as given"
        out = f", which {self.outside:,} rows lie outside: costs are of rows clipped to them" if self.outside else ""
        if unknown := unknown_columns(self.domain):
            of += f" ({len(unknown)} unknown, which runs find; units and the midpoint are read off these rows)"
        units = "each column's own" if np.ptp(self.units) > 0 else "the same in all columns"
        named = ", ".join(self.columns[:SHOWN]) + (", ..." if len(self.columns) > SHOWN else "")
        return (
            f"{self.count:,} rows of {len(self.columns)} columns ({named}), k = {self.centers}, delta = "
            f"{self.delta:.3g}, public number of rows {self.rows:,}; bounds {of}{out}; unit of distances {units}."
        )


def kinds(chosen: Selection) -> tuple[int, ...]:
    """For each feature, how many values its category has; 0 for one of numbers."""
    return chosen.one_hot or (0,) * len(chosen.features)


def population_of(rows: Floats, chosen: Selection, users: Ids | None = None) -> Any:
    """Features (n, d), of users (n,), as the population of a table: a category's cells are the places of its values."""
    columns, categories, at = list[Floats](), dict[str, list[int]](), 0
    for name in chosen.used:
        category = chosen.category(name)
        values = 0 if category is None else len(category.values)
        cells, at = rows[:, at : at + max(values, 1)], at + max(values, 1)
        if values:
            categories[str(len(columns))] = list(range(values))
        columns.append(np.where(cells.any(axis=1), cells.argmax(axis=1), values) if values else cells[:, 0])
    return source(np.column_stack(columns), threads=1, users=users, categories=categories or None)


def _known(domain: Box | Ball, rows: Floats) -> Box | Ball:
    """The bounds, those of unknown columns read off the rows. NOT private."""
    unknown = unknown_columns(domain)
    if not unknown or isinstance(domain, Ball):
        return domain
    lower, upper, read = list(domain.lower), list(domain.upper), ranges(rows)
    for j in unknown:
        lower[j], upper[j] = read[j]
    return Box(tuple(lower), tuple(upper))


def _beyond(domain: Box | Ball, rows: Floats) -> int:
    """How many rows lie outside the bounds. NOT private."""
    if isinstance(domain, Box):
        return int((domain.truncate(rows) != rows).any(axis=1).sum())
    return int((np.linalg.norm(rows - domain.middle, axis=1) > domain.radius).sum())


def is_read(bounds: Any) -> bool:
    """Whether bounds are to be read off the rows."""
    return isinstance(bounds, str) and bounds.strip() == READ


def usual_delta(rows: int) -> float:
    """The papers' choice for n rows, 1 / (n ln n). Raises: InvalidInput: fewer than 2 rows."""
    if rows < 2:
        raise InvalidInput(f"delta = 1 / (n ln n) needs at least 2 rows, not {rows}: give delta")
    return 1 / (rows * math.log(rows))


def ranges(rows: Floats) -> list[tuple[float, float]]:
    """Each column's least and largest value; of a constant column, one more and one less. NOT private."""
    ends = zip(rows.min(axis=0).tolist(), rows.max(axis=0).tolist(), strict=True)
    return [(low, high) if low < high else (low - 1, high + 1) for low, high in ends]
