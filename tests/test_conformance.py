"""The conformance kit on everything that cloister itself offers, loaded by name as the command line does: nowhere else
is a component, or a bucketing that its questions are made of, checked by it again."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import attrs
import numpy as np

from cloister.core.domains import Domain
from cloister.core.lattice import Bound
from cloister.core.nearest import NearestCenter
from cloister.core.questions import Rows
from cloister.core.randomness import PublicRng
from cloister.core.registry.compose import compose
from cloister.core.registry.registry import registry
from cloister.core.types import Floats
from cloister.plugins.methods.described import Facet, Facets
from cloister.testing import parametrize
from tests.rings import but
from tests.testing.honest import nearest

BUILT_IN = next(plugin.specs for plugin in registry().plugins if plugin.origin == "built in")
MADE = {"Population"}
FIRST = {s.target: s.role for s in reversed(BUILT_IN)}
"""A class that fills two roles is checked in both when it is checked in the first one."""


OTHERWISE = (
    ("Method", "private-lloyd-median", {"radius_scale": 0.8, "rounds": 2}),
    ("TreeBuilder", "spread-cells", {"cells": 64, "directions": "orthogonal"}),
    ("NonPrivateSolver", "kmedian++", {"starts": 1, "candidates": 1, "rounds": 1, "steps": 1}),
    ("NonPrivateSolver", "ward", {"most": 4}),
    ("NonPrivateSolver", "ward", {"sweeps": 0}),
)
"""Components at options that take another way through their code."""


def composed(role: str, name: str, options: dict[str, Any]) -> tuple[str, Any]:
    """What its items are called, and the component."""
    return "-".join([role, name, *map(str, options.values())]), compose(registry(), role, name, {}, options).value


BY_DEFAULT = [(s.role, s.name, {}) for s in BUILT_IN if s.role not in MADE and s.role == FIRST[s.target]]


@but(
    parametrize(named=dict(composed(*one) for one in (*BY_DEFAULT, *OTHERWISE))),
    r"^(Method|VectorSumOracle)-|_of_sums$"
    r"|bias_is_as_declared|every_option_keeps_the_budget|nested_levels_have_noise_of_their_own"
    r"|standard_error_is_that_of_an_empty_bucket|a_message_hides_among_those_of_others"
    # what secret_noise_has_the_declared_law_in_a_large_space looks at, too
    r"|(variance_is_as_declared|neighbours_are_hard_to_tell_apart)_in_a_large_space"
    # what neighbours_are_hard_to_tell_apart and variance_is_as_declared see of the same noise
    r"|one_row_moves_no_mean_too_far"
    # small reports, which test_counts_privacy.py enumerates; sets of many buckets are looked at in both rings
    r"|^FrequencyOracle-(?!subset-selection).*-a_coin_seldom_wrong_is_found"
    # classes at other options, and counts that are added up by what discrete-laplace adds up with
    r"|^TreeBuilder-(simhash-nodes|spread-cells-64-orthogonal)-(a_row|its|any_counts)_"
    r"|^FrequencyOracle-discrete-gaussian-nested_levels_are_added_up_exactly",
)
def test_built_in_components_conform(component: Any, check: Any) -> None:
    check(component)


ARRAYS, FILES = (registry().load(registry().spec("Population", name)) for name in ("arrays", "files"))


@parametrize(ARRAYS, role="Population")
def test_rows_in_memory_conform(component: Any, check: Any) -> None:
    check(component)


@parametrize(FILES, role="Population")
def test_rows_in_three_files_conform(component: Any, check: Any, tmp_path: Path) -> None:
    def in_files(folder: Path, rows: Floats) -> Any:
        for i, some in enumerate(np.array_split(rows, 3)):
            np.save(folder / f"{i}.npy", some)
        return component(str(folder / "*.npy"))

    check(component if check.name == "the_registry_says_what_the_class_is" else partial(in_files, tmp_path))


def nearest_within(domain: Domain, rng: PublicRng) -> NearestCenter:
    return attrs.evolve(nearest(domain, rng), within=domain.max_norm // 3)


def facets_of_numbers(domain: Domain, rng: PublicRng) -> Facets:
    """Every column, in groups by the first ones."""
    first = nearest(domain, rng).centers[:, : 1 + domain.dimension // 2]
    sides = tuple(int(side) for side in domain.sides // 2)
    columns = tuple(Facet(j) for j in range(domain.dimension))
    return Facets(NearestCenter(first, domain.max_norm), columns, sides, 16)


def facets(domain: Domain, rng: PublicRng) -> Facets:
    """The last columns are values of a category; levels are of one size, and the last centre stands for two more."""
    numbers, last = facets_of_numbers(domain, rng), (domain.dimension + 1) // 2
    listed = (Facet(domain.dimension - last, last), *numbers.facets)
    centers = numbers.near.centers[[*range(6), 5, 5]]
    return attrs.evolve(numbers, near=NearestCenter(centers, domain.max_norm), facets=listed, size=19)


@parametrize(nearest, nearest_within, facets_of_numbers, facets, role="Bucketing")
def test_nearest_centers_and_what_their_groups_hold_conform(component: Any, check: Any) -> None:
    check(component)


@parametrize(
    role="Vectors",
    named={
        "offsets": lambda domain, rng: nearest(domain, rng).offsets(),
        "offsets_within": lambda domain, rng: nearest_within(domain, rng).offsets(),
        "rows": lambda domain, rng: Rows(nearest(domain, rng), Bound(domain.max_norm, domain.dimension)),
    },
)
def test_vectors_of_rows_conform(component: Any, check: Any) -> None:
    check(component)


def test_every_population_is_in_this_file() -> None:
    elsewhere = {"parties", "sql"}  # in tests/federated and tests/rows/databases
    assert {spec.name for spec in BUILT_IN if spec.role == "Population"} == {"arrays", "files"} | elsewhere
