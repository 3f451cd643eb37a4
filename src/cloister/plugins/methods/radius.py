"""Public radii (FastLloyd, equations 22-25): how far rows may be from their centre to count, and centres may move."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from cloister.core.buckets import Vectors
from cloister.core.clustering import Problem
from cloister.core.domains import Domain
from cloister.core.fixed_order import lengths, root
from cloister.core.nearest import NearestCenter
from cloister.core.questions import Rows
from cloister.core.session import Session
from cloister.core.types import Floats


def equal_cells(problem: Problem, scale: float) -> float:
    """Equation 25: ``scale`` times the radius of k equal cells of the domain, in the caller's units."""
    domain = problem.domain
    radius = scale * domain.diameter / (2 * root(problem.k, domain.dimension))
    return min(domain.diameter, max(domain.unit, radius))


def nearest_within(
    radius: float, centers: Floats, domain: Domain, session: Session[Any] | None = None
) -> NearestCenter:
    """Rows by their nearest centre (k, d); a row farther than the radius (inf: no limit) is in no bucket.

    Args: session, of centres that were found from its answers (``Session.settled``).
    """
    points = domain.snap(centers)
    return NearestCenter(points if session is None else session.settled(points), domain.max_norm, steps(radius, domain))


def offsets_from(near: NearestCenter, domain: Domain, *, relative: bool) -> tuple[Vectors, Floats]:
    """Vectors to add up per centre, and their origins (k, d): the centres or, if not ``relative``, the domain's middle.

    Relative vectors are at most as long as the radius (without one, as the domain is wide), others as half the domain.
    """
    if relative:
        return near.offsets(), domain.real(near.centers)
    return Rows.of(near, domain), np.broadcast_to(domain.middle, near.centers.shape)


def steps(radius: float, domain: Domain) -> int | None:
    """A radius in whole lattice steps, rounded down; at least one. None for no limit."""
    return max(1, int(radius / domain.unit)) if math.isfinite(radius) else None


def shortened(moves: Floats, most: float | Floats) -> Floats:
    """Moves (k, d) that are no longer than ``most``, one length or one each (k, 1), in the same units."""
    long = np.maximum(lengths(moves)[:, None], 1e-300)
    found: Floats = moves * (np.minimum(long, most) / long)
    return found
