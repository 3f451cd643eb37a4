"""Benchmark: a TOML file of sets, numbers of centres, budgets, runs and entrants."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, final

import attrs

from cloister.core.errors import InvalidInput, UnknownName, cause
from cloister.core.plain_data import parsed_toml
from cloister.lab.bench.entry import NAME
from cloister.lab.bench.tables import BLOBS, TableSource

KINDS = ("data", "blobs", "file")

MAX_RUNS, MAX_TIMEOUT, MAX_K = 10_000, 86_400.0, 10_000


@final
@attrs.frozen(kw_only=True)
class Benchmark:
    """Benchmark.

    Args:
        name: of the file.
        base: folder that relative paths begin in.
        sets: tables, with their numbers of centres.
        epsilons: budgets in nats.
        runs: runs of each entrant per set, k and epsilon.
        delta: of every run; None: 1 / (n ln n) of the set's number of rows.
        timeout: seconds after which a run is killed.
        entrants: arguments as of ``--entrant``.
        quick: whether sets are cut short.
    """

    name: str
    base: Path
    sets: tuple[TableSource, ...]
    epsilons: tuple[float, ...]
    runs: int
    delta: float | None = None
    timeout: float = 600.0
    entrants: tuple[str, ...] = ()
    quick: bool = False

    def shortened(self) -> Benchmark:
        """Return a quick form: one run, the smallest and the largest epsilon, at most 1,000 rows of a set."""
        ends = tuple(dict.fromkeys((min(self.epsilons), max(self.epsilons))))
        return attrs.evolve(self, runs=1, epsilons=ends, quick=True, timeout=min(self.timeout, 120.0))

    def delta_of(self, rows: int) -> float:
        """Return the delta of a set's runs. Args: rows (number)."""
        return 1 / (rows * math.log(rows)) if self.delta is None else self.delta

    def seed_of(self, table: str, k: int, epsilon: float, run: int) -> int:
        """Return the public seed of a run, the same for all entrants."""
        text = f"{self.name}/{table}/{k}/{epsilon!r}/{run}"
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big")

    def as_dict(self) -> dict[str, Any]:
        """Return plain data: what a file of results must have in common to go on with."""
        sets = [
            {"name": one.name, one.kind: one.value, "bounds": one.bounds, "columns": list(one.columns)}
            for one in self.sets
        ]
        return {"name": self.name, "sets": sets, "delta": self.delta, "timeout": self.timeout, "quick": self.quick}


def read_benchmark(path: Path) -> Benchmark:
    """Return the benchmark of a file.

    Raises:
        InvalidInput: the file cannot be read, or a value is missing or invalid.
        UnknownName: a key does not exist.
    """
    try:
        content = parsed_toml(path.read_bytes())
    except OSError as error:
        raise InvalidInput(f"cannot read {path}: {cause(error)}") from error
    except ValueError as error:
        raise InvalidInput(f"{path} is no valid TOML: {error}") from error
    keys = ("sets", "epsilons", "runs", "delta", "timeout", "entrants")
    _known(content, keys, f"key of {path}")
    delta = content.get("delta", "auto")
    if delta != "auto" and not _number(delta, 0.0, 1.0, zero=True):
        raise InvalidInput(f'{path}: delta is {delta!r}: write "auto", for 1 / (n ln n), or a number below 1')
    sets = content.get("sets")
    if not isinstance(sets, list) or not sets:
        raise InvalidInput(f'{path} has no sets: write [[sets]] with data = "iris" and k = 3')
    tables = tuple(_table(entry, str(path)) for entry in sets)
    names = [table.name for table in tables]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise InvalidInput(f"{path} has two sets named {twice}: give each a name of its own")
    return Benchmark(
        name=path.stem,
        base=path.parent,
        sets=tables,
        epsilons=tuple(_list(content.get("epsilons"), "epsilons", str(path))),
        runs=_whole(content.get("runs", 5), "runs", MAX_RUNS, str(path)),
        delta=None if delta == "auto" else float(delta),
        timeout=_list(content.get("timeout", 600.0), "timeout", str(path), MAX_TIMEOUT)[0],
        entrants=_texts(content.get("entrants", []), "entrants", '["auto", "./mine"]', str(path)),
    )


def _table(entry: Any, where: str) -> TableSource:
    if not isinstance(entry, Mapping):
        raise InvalidInput(f"{where}: a set is {entry!r}: write [[sets]] with data, blobs or file, and k")
    _known(entry, (*KINDS, "name", "k", "bounds", "columns"), f"key of a set in {where}")
    kinds = [kind for kind in KINDS if kind in entry]
    if len(kinds) != 1:
        raise InvalidInput(f"{where}: a set has {' and '.join(kinds) or 'no source'}: give one of data, blobs and file")
    kind, value = kinds[0], entry[kinds[0]]
    if kind == "blobs":
        if not isinstance(value, Mapping):
            raise InvalidInput(f"{where}: blobs is {value!r}: write blobs = {{ rows = 1000, columns = 2 }}")
        _known(value, BLOBS, f"option of blobs in {where}")
    elif not isinstance(value, str):
        raise InvalidInput(f"{where}: {kind} is {value!r}: write a name in quotes")
    ks = entry.get("k")
    ks = ks if isinstance(ks, list) and ks else [ks]
    counts = tuple(_whole(k, "k", MAX_K, where) for k in ks)
    name = entry.get("name", "blobs" if kind == "blobs" else Path(str(value)).stem)
    if not isinstance(name, str) or not NAME.fullmatch(name.replace("_", "-").lower()):
        raise InvalidInput(f"{where}: a set has the name {name!r}: use letters, digits, hyphens and underscores")
    columns = _texts(entry.get("columns", ["*"]), "columns", '["x", "y"]', where)
    chosen = dict(value) if isinstance(value, Mapping) else value
    return TableSource(name, kind, chosen, counts, _bounds(entry, where), columns)


def _bounds(entry: Mapping[str, Any], where: str) -> tuple[tuple[float, float], ...] | None:
    bounds = entry.get("bounds")
    if bounds is None:
        return None
    pairs = bounds if isinstance(bounds, list) and bounds and isinstance(bounds[0], list) else [bounds]
    for pair in pairs:
        if not (isinstance(pair, list) and len(pair) == 2 and all(_number(x, -math.inf, math.inf) for x in pair)):
            raise InvalidInput(f"{where}: bounds are {bounds!r}: write [-1, 1], or such a pair for each column")
        if not pair[0] < pair[1]:
            raise InvalidInput(f"{where}: the bounds {pair!r} have no width: write the lower one first")
    return tuple((float(low), float(high)) for low, high in pairs)


def _known(entry: Mapping[str, Any], keys: Any, what: str) -> None:
    for key in entry:
        if key not in keys:
            raise UnknownName(what, key, keys)


def _number(value: Any, low: float, high: float, zero: bool = False) -> bool:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    return low < value < high or (zero and value == low)


def _whole(value: Any, name: str, most: int, where: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
        raise InvalidInput(f"{where}: {name} is {value!r}: write a whole number from 1 to {most:,}")
    return value


def _list(value: Any, name: str, where: str, most: float = math.inf) -> list[float]:
    numbers = value if isinstance(value, list) else [value]
    if not numbers or not all(_number(number, 0.0, most) for number in numbers):
        raise InvalidInput(f"{where}: {name} is {value!r}: write positive numbers, such as {name} = [0.1, 1]")
    return list(dict.fromkeys(float(number) for number in numbers))


def _texts(value: Any, name: str, example: str, where: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        raise InvalidInput(f"{where}: {name} is {value!r}: write a list, such as {name} = {example}")
    return tuple(value)
