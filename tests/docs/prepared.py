"""Files that a page says it has: ``<!-- has: rows.parquet bounds.toml -->``. All rows are made up."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from cloister.core.types import Floats
from cloister.lab.hospital import BOUNDS, patients


def prepare(folder: Path, name: str) -> None:
    """Write a file into a folder. Raises: KeyError: there is no such file."""
    FILES[name](folder / name)


def groups(n: int, dimension: int, k: int = 4, seed: int = 0) -> Floats:
    """Rows (n, dimension) in k tight groups within the unit ball, as float32."""
    g = np.random.default_rng(seed)
    centers = g.normal(size=(k, dimension))
    centers *= 0.7 / np.linalg.norm(centers, axis=1, keepdims=True)
    rows = centers[g.integers(0, k, n)] + g.normal(0, 0.05 / np.sqrt(dimension), (n, dimension))
    return rows.astype(np.float32).astype(np.float64)


def _parquet(path: Path, columns: dict[str, object]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table(columns), path)  # type: ignore[no-untyped-call]


def _hospital(n: int, seed: int = 0) -> dict[str, object]:
    return dict(zip(BOUNDS, patients(n, seed)[0].T, strict=True))


def _unnamed(n: int, dimension: int) -> Callable[[Path], None]:
    return lambda path: np.save(path, groups(n, dimension))


def _bounds(path: Path) -> None:
    path.write_text("".join(f"{name} = [{low}, {high}]\n" for name, (low, high) in BOUNDS.items()))


def _visits(path: Path) -> None:
    _parquet(path, {"patient_id": np.arange(6000) % 2000, **_hospital(6000)})


def _party(seed: int) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        table = _hospital(3000, seed)
        _parquet(path, {"age": table["age"], "pressure": table["systolic"]})

    return write


def _rows(path: Path) -> None:
    path.mkdir()
    for part in range(2):
        rows = groups(10_000, 2, seed=part)
        _parquet(path / f"part{part}.parquet", {"x0": rows[:, 0], "x1": rows[:, 1]})


def _lake(path: Path) -> None:
    """A database with a table of visits, two of each of 3,000 patients, and one with a row of each."""
    import duckdb
    import pyarrow as pa

    wards = np.random.default_rng(0).choice(["A", "B", "C"], 6000).tolist()
    table = pa.table({"patient_id": np.arange(6000) // 2, **_hospital(6000), "ward": wards})
    with duckdb.connect(str(path)) as con:
        con.register("given", table)
        con.execute("CREATE TABLE visits AS SELECT * FROM given")
        con.execute("CREATE TABLE patients AS SELECT DISTINCT ON (patient_id) * FROM given")


def _modules(path: Path) -> None:
    """The JavaScript client, as npm would have installed it."""
    path.mkdir()
    (path / "cloister-client").symlink_to(Path(__file__).parents[2] / "clients" / "javascript")


def _script(name: str) -> Callable[[Path], None]:
    """A script of the pool's kit, as the page's link brings it."""
    return lambda path: path.write_bytes((Path(__file__).parents[2] / "deploy" / "pool" / name).read_bytes()) and None


FILES: dict[str, Callable[[Path], None]] = {
    "rows.parquet": lambda path: _parquet(path, _hospital(20_000)),  # a hospital's table; bounds.toml is about it
    "bounds.toml": _bounds,
    "rows.npy": _unnamed(20_000, 2),
    "people.npy": _unnamed(20_000, 2),
    "colleagues.npy": _unnamed(2000, 2),
    "rows/": _rows,
    "node_modules/": _modules,
    "visits.parquet": _visits,
    "lake.db": _lake,
    "north.parquet": _party(1),
    "south.parquet": _party(2),
    **{site: _script(site) for site in ("hospital", "coordinator", "authority")},
}
"""How each is written."""
