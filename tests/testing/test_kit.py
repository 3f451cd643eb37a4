"""The kit's own behaviour: which checks apply, what pytest gets, how a check fails, what it costs to import."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import Any

import attrs
import pytest

from cloister.core.buckets import QuestionContext, Space
from cloister.core.budget import Budget
from cloister.core.errors import InvalidInput, MissingExtra, UnknownName
from cloister.core.lattice import Bound
from cloister.core.registry.components import Spec, component as made_component
from cloister.core.registry.registry import Plugin, Registry
from cloister.plugin import make
from cloister.plugins.methods.lloyd import Lloyd
from cloister.plugins.oracles.central.discrete_laplace import DiscreteLaplace
from cloister.testing import Check, ConformanceError, check_component, checks_for, parametrize
from cloister.testing.check import require
from cloister.testing.checks import declarations
from cloister.testing.checks.oracle_noise import bias_is_as_declared, variance_is_as_declared
from cloister.testing.checks.solvers import any_released_points_give_k_finite_centers
from tests.testing.honest import Chunks, HonestCounts, HonestSums, Plain
from tests.testing.zoo import SPECIMENS
from tests.testing.zoo_cells import OneTooMany, made
from tests.testing.zoo_claims import NanPasses
from tests.testing.zoo_noise import ClampedInSilence, NoiseThatCancels, QuieterThanItSays
from tests.testing.zoo_programs import PositiveOnly

PLAIN = Plain(counts=HonestCounts(), sums=HonestSums())


def names(component: Any, role: str | None = None) -> list[str]:
    return [check.name for check in checks_for(component, role)]


def test_every_component_and_check_is_one_item_with_a_name() -> None:
    mark = parametrize(HonestCounts(), NanPasses(step=2.0), named={"other-name": HonestSums()}).mark
    ids = [item.id for item in mark.args[1]]
    assert "HonestCounts-bias_is_as_declared" in ids
    assert "NanPasses(step=2.0)-bias_is_as_declared" in ids
    assert "other-name-a_vector_beyond_the_bound_is_clipped" in ids
    assert len(ids) == len(set(ids)) == 2 * len(names(HonestCounts())) + len(names(HonestSums()))


def test_a_class_stands_for_its_component_with_preferred_slots() -> None:
    ids = [item.id for item in parametrize(Lloyd).args[1]]
    assert ids == [f"Lloyd-{name}" for name in names(make("Method", "fastlloyd"))]


def test_every_check_has_a_name_and_a_law_and_catches_a_specimen_of_the_zoo() -> None:
    every = set[str]()
    for specimen, role, _ in SPECIMENS:
        checks = checks_for(specimen, role)
        assert len({check.name for check in checks}) == len(checks)
        assert all(len(check.law) > 40 and check.law.endswith(".") for check in checks)
        every |= {check.name for check in checks}
    assert every - {name for _, _, name in SPECIMENS} == {"the_registry_says_what_the_class_is"}  # below


@made_component
class HalfTheSums(DiscreteLaplace):
    """Counts as it should, and halves sums of vectors."""

    def open(self, space: Space, budget: Budget, context: QuestionContext, bound: Bound | None = None) -> Any:
        channel = super().open(space, budget, context, bound)
        return channel if bound is None else attrs.evolve(channel, unit=context.unit / 2)


def test_an_oracle_that_fills_both_roles_is_checked_in_each() -> None:
    checks = {check.name: check for check in checks_for(HalfTheSums())}
    assert len(checks) == len(checks_for(HalfTheSums()))
    checks["variance_is_as_declared"](HalfTheSums())
    with pytest.raises(ConformanceError, match="variance_is_as_declared_of_sums"):
        checks["variance_is_as_declared_of_sums"](HalfTheSums())
    assert "a_vector_beyond_the_bound_is_clipped_of_sums" in checks
    assert "a_vector_beyond_the_bound_is_clipped" in names(HalfTheSums(), "VectorSumOracle")


def test_an_oracle_that_leaves_facts_out_is_told_so() -> None:
    class Bare:
        trust, measure = HonestCounts.trust, "pure"
        open = HonestCounts.open

    with pytest.raises(InvalidInput, match="uses_delta, asks_all_users, biased: make its class a @component"):
        checks_for(Bare())


def test_a_failure_says_what_was_found_and_which_law_that_breaks() -> None:
    with pytest.raises(ConformanceError, match=r"ids_are_within_the_space: .+\n  the law: .+\.$"):
        check_component(made(OneTooMany), "Bucketing")


@pytest.mark.parametrize(
    ("check", "component", "said"),
    [
        (variance_is_as_declared, QuieterThanItSays(), r"standard deviation .* standard_error\(\) says"),
        (bias_is_as_declared, ClampedInSilence(), "declare it by `biased = True`"),
        (variance_is_as_declared, NoiseThatCancels(), r"deviation 0, .* draws twice: draw from rng\.child\(\.\.\.\)"),
        (any_released_points_give_k_finite_centers, PositiveOnly(), r"it raised \w+: .*; given all weights"),
    ],
)
def test_failures_say_what_to_do(check: Any, component: Any, said: str) -> None:
    with pytest.raises(ConformanceError, match=said):
        Check(check)(component)


def test_an_error_is_a_failure_nan_passes_no_comparison_and_a_missing_library_is_neither() -> None:
    def it_divides(component: Any) -> None:
        """Its inverse is positive."""
        require(1 / component > 0, f"{component} is not")

    def it_needs(component: Any) -> None:
        """Needs a library."""
        raise MissingExtra("lib", "extra", "this")

    for component, said in ((0, "it raised ZeroDivisionError"), (float("nan"), "nan is not")):
        with pytest.raises(ConformanceError, match=said):
            Check(it_divides)(component)
    with pytest.raises(MissingExtra):
        Check(it_needs)(0)


def test_what_has_no_role_is_refused_with_what_to_do() -> None:
    with pytest.raises(InvalidInput, match="has the shape of no role"):
        checks_for(object())
    with pytest.raises(UnknownName, match="Population"):
        checks_for(Chunks, "Populations")
    with pytest.raises(InvalidInput, match="give a function"):
        checks_for(42, "Bucketing")


HONEST = {
    "name": "honest",
    "role": "FrequencyOracle",
    "target": f"{HonestCounts.__module__}:HonestCounts",
    "summary": "counts",
    "trust": "Central",
}
METHOD = {"role": "Method", "target": f"{Plain.__module__}:Plain", "trust": None}


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({"role": "VectorSumOracle"}, "the class is a FrequencyOracle"),
        ({"trust": "Local"}, "says trust Local"),
        ({"trust": None}, "declares trust None"),
        ({"summary": ""}, "no summary"),
        ({"name": "Honest"}, "kebab-case"),
        ({"adds": "frame"}, "no slot 'method' for a method"),
        ({"presets": {"step": 3}}, "no option or slot"),
        ({**METHOD, "presets": {"rounds": 0}}, "sets 'rounds' to 0"),
        ({**METHOD, "presets": {"counts": "nobody"}}, "sets 'counts' to 'nobody'"),
    ],
)
def test_a_spec_must_agree_with_its_class(monkeypatch: pytest.MonkeyPatch, changes: dict[str, Any], found: str) -> None:
    check = Check(declarations.the_registry_says_what_the_class_is)

    def installed(spec: dict[str, Any]) -> Any:
        monkeypatch.setattr(declarations, "registry", lambda: Registry((Plugin("zoo", "here", (Spec(**spec),)),)))
        return PLAIN if spec["role"] == "Method" else HonestCounts()

    check(installed(HONEST))
    with pytest.raises(ConformanceError, match=found):
        check(installed({**HONEST, **changes}))


def test_the_kit_imports_nothing_heavy_and_says_what_to_install_where_pytest_is_wanted() -> None:
    script = (
        "import sys; sys.modules['pytest'] = None; import cloister.testing as t\n"
        "print([m for m in ('scipy', 'sklearn', 'opendp', 'pyarrow') if m in sys.modules])\n"
        "try: t.parametrize()\nexcept Exception as e: print(e)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert re.match(r"\[\]\n.*pip install '.*\[test\]'", done.stdout)
