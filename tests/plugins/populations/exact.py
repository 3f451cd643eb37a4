"""Rows of the unit square or cube, and the totals of one exact round of them."""

from __future__ import annotations

from functools import cache
from typing import Any

from cloister.core.budget import Budget
from cloister.core.clustering import Problem
from cloister.core.domains import Box, Domain
from cloister.core.questions import Round
from cloister.core.randomness import NoiseRng, PublicRng
from cloister.core.session import forecast
from cloister.plugins.methods.lloyd import Lloyd
from cloister.plugins.methods.sphere_packing import SpherePacking
from cloister.plugins.oracles.central.exact import Exact


def unit_box(dimension: int) -> Box:
    return Box((0.0,) * dimension, (1.0,) * dimension)


@cache
def round_of(domain: Domain) -> Round[Any]:
    """The second round of an exact Lloyd: rows beyond the radius count nowhere."""
    method = Lloyd(start=SpherePacking(), counts=Exact(), sums=Exact(), rounds=2)
    return forecast(method, Problem(3, domain, 1000, Budget("exact", 1.0)), PublicRng.from_seed(7))[1]


def totals(population: Any, domain: Domain) -> list[list[int]]:
    return [s.vector.tolist() for s in population.gather(round_of(domain), NoiseRng.for_tests(0))]
