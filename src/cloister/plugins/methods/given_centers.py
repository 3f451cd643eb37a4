"""Given centres: public ones, such as an earlier result's, as a start that asks nothing.

Guarantee: no row is read. The centres are options, which plans, digests and records hold as any other. They are put on
the lattice of the frame that the session works in, whatever that is, as rows are (law 9): clipped to the domain.
"""

from __future__ import annotations

from typing import Generic

import numpy as np

from cloister.plugin import Clustering, Floats, InvalidInput, Problem, PublicRng, Session, T, component, option


@component
class GivenCenters(Generic[T]):
    """Public centres as they are: an earlier result's, or some that were made on public rows."""

    centers: str = option(
        default="",
        help="coordinates in the caller's units, column by column: 1,2;3,4 are two centres of two columns; empty: the "
        "domain's middle",
    )

    def __attrs_post_init__(self) -> None:
        self.table()

    def cluster(self, problem: Problem, session: Session[T], rng: PublicRng) -> Clustering:
        points, domain = self.table(), problem.domain
        if not len(points):
            return Clustering(np.repeat(domain.middle[None], problem.k, axis=0))
        if points.shape != (problem.k, domain.dimension):
            raise InvalidInput(
                f"the start has {len(points)} centres of {points.shape[1]} columns, and {problem.k} of "
                f"{domain.dimension} are asked for: give k = {len(points)} and the same columns"
            )
        return Clustering(domain.real(session.placed(points)))

    def table(self) -> Floats:
        """Parse the centres (k, d).

        Raises:
            InvalidInput: the text holds no finite numbers, or centres of unequal length.
        """
        try:
            points = np.array([row.split(",") for row in self.centers.split(";") if row], np.float64)
        except ValueError:
            points = np.full((1, 1), np.nan)
        if not np.isfinite(points).all():
            raise InvalidInput("centers takes as many finite numbers for each centre, as in 1,2;3,4")
        return points
