"""The kit catches every broken mechanism, by the check that is named for it, and lets the honest ones pass."""

from __future__ import annotations

from typing import Any

import pytest

from cloister.testing import ConformanceError, checks_for, parametrize
from cloister.testing.check import name_of
from tests.rings import but
from tests.testing.honest import (
    Chunks,
    FirstPoints,
    HonestCounts,
    HonestGaussianSums,
    HonestSums,
    Plain,
    UnaryCounts,
)
from tests.testing.zoo import SPECIMENS
from tests.testing.zoo_claims import HonestThreshold
from tests.testing.zoo_messages import NoisyOnes
from tests.testing.zoo_noise import RoundsDown


@but(
    pytest.mark.parametrize(
        ("specimen", "role", "name"), [pytest.param(*one, id=f"{name_of(one[0])}-{one[2]}") for one in SPECIMENS]
    ),
    "(SetsSeldomRight|LongVectorsSeldomTurned|QuietVectors|VectorsSeldomTurned|WrongVariance|Addressed)-"
    "|IsCalledBias-nested|(BoundPerCoordinate|LevelsNotCounted)-one_row|RhoForEpsilon-neighbours",
)
def test_the_kit_catches(specimen: Any, role: str | None, name: str) -> None:
    checks = {check.name: check for check in checks_for(specimen, role)}
    with pytest.raises(ConformanceError) as caught:
        checks[name](specimen)
    assert caught.value.check == name
    assert caught.value.figures
    assert caught.value.law.endswith(".")


@pytest.mark.thorough
@parametrize(
    HonestGaussianSums(),
    HonestThreshold(),
    RoundsDown(),
    UnaryCounts(),
    NoisyOnes(),
    FirstPoints(),
    Plain(counts=HonestCounts(), sums=HonestSums()),
)
def test_honest_components_conform(component: Any, check: Any) -> None:
    check(component)


@pytest.mark.parametrize(
    "name",
    [
        "errors_are_within_the_declared_ones",
        "many_rows_get_the_same_noise",
        pytest.param("nested_errors_are_within_the_declared_ones", marks=pytest.mark.thorough),
        "secret_noise_has_the_law_of_seeded_noise",
    ],
)
def test_rounding_to_steps_wider_than_the_noise_is_no_fault_of_biased_counts(name: str) -> None:
    rounds = RoundsDown(step=100)
    {check.name: check for check in checks_for(rounds)}[name](rounds)


@parametrize(Chunks, role="Population")
def test_an_honest_population_conforms(component: Any, check: Any) -> None:
    check(component)
