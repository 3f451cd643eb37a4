"""Runs of a method on a set, as protocols make them: secret noise, fresh public choices, bounds -1 and 1 or a ball."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from cloister.core.registry.components import slots_of
from cloister.core.registry.making import drafted
from cloister.core.registry.registry import registry
from cloister.core.types import Floats
from cloister.lab.papers.cells import PaperCell
from cloister.lab.papers.sets import data_of, delta
from cloister.run.fit import fit, source
from cloister.run.request import Request

PURE = ("su-lloyd", "tree-alone-median")
"""Methods with pure privacy, which no delta is for."""


@lru_cache(maxsize=64)
def population_of(recipe: str) -> Any:
    """Return a set's rows as a population, which keeps them on the lattice over the runs that share it."""
    return source(data_of(recipe).rows, threads=1)


def request_of(cell: PaperCell, rows: int, bounds: Any = (-1.0, 1.0), **given: Any) -> Request:
    """Return the request of a cell: the public number of rows is the true one, delta is 1 / (n ln n).

    Args:
        cell: with names of parts among its options.
        rows: number of rows.
        bounds: as in a fit.
        given: other fields of the request.
    """
    slots = slots_of(registry().load(registry().spec("Method", cell.method)))
    parts = {path: value for path, value in cell.options if path.rpartition(".")[2] in slots}
    return Request(
        **{
            "k": cell.k,
            "method": drafted(cell.method, parts, {path: value for path, value in cell.options if path not in parts}),
            "epsilon": cell.epsilon,
            "delta": 0.0 if cell.method in PURE else delta(rows),
            "bounds": bounds,
            "rows": rows,
            "not_private": True,
            **given,
        }
    )


def fitted_centers(cell: PaperCell, **given: Any) -> Floats:
    """Return the centres (k, d) of a run of a cell on its set, in [-1, 1]. Args: cell, given (``request_of``)."""
    return fit(request_of(cell, len(data_of(cell.data).rows), **given), population_of(cell.data)).centers
