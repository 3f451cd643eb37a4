"""A method put together in Python: run, charged and recorded as if it were named, and tuned as scikit-learn does."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Generic

import attrs
import numpy as np
import pytest
from sklearn.base import clone

from cloister.collection.plan.publish import publish
from cloister.core.errors import InvalidInput, WrongComposition
from cloister.core.randomness import PublicRng
from cloister.core.registry.making import composed_of, drafted
from cloister.core.registry.records import paths_in
from cloister.core.registry.registry import registry
from cloister.core.trust import T
from cloister.plugin import (
    Clustering,
    FrequencyOracle,
    Problem,
    Session,
    component,
    count,
    make,
    option,
    slot,
)
from cloister.plugins.methods.lloyd import Lloyd
from cloister.plugins.methods.sphere_packing import SpherePacking
from cloister.plugins.oracles.central.discrete_gaussian import DiscreteGaussian
from cloister.plugins.oracles.central.discrete_laplace import DiscreteLaplace
from cloister.plugins.oracles.central.exact import Exact
from cloister.run.fit import fit, source
from cloister.run.request import Request, prepare
from tests.estimators.fitted import blobs, model as unseeded, runs

GAUSSIAN: dict[str, Any] = {"counts": DiscreteGaussian(), "sums": DiscreteGaussian()}
LAPLACE: dict[str, Any] = {"counts": DiscreteLaplace(), "sums": DiscreteLaplace()}


@component
class Everywhere(Generic[T]):
    """A stranger's method that no plugin offers: it counts all rows, and puts every centre in the middle."""

    counts: FrequencyOracle[T] = slot(help="how many rows there are")
    times: int = option(default=1, low=1, help="how often to count")

    def cluster(self, problem: Problem, session: Session[T], rng: PublicRng) -> Clustering:
        tree = make("TreeBuilder", "grid").open(problem, rng)
        for part in problem.budget.split(*[1.0] * self.times):
            session.ask(count(tree, oracle=self.counts, budget=part))
        return Clustering(np.zeros((problem.k, problem.domain.dimension)), None, {})


def model(method: Any, **more: Any) -> Any:
    return unseeded(n_clusters=2, rows=600, zoom="off", random_state=7, method=method, **more)


def lloyd(**given: Any) -> Any:
    return Lloyd(**{"start": SpherePacking(), **GAUSSIAN, **given})


@pytest.mark.parametrize("name", [s.name for s in registry().specs("Method")])
def test_what_is_made_by_a_name_is_recorded_under_it(name: str) -> None:
    made = composed_of(registry(), "Method", make("Method", name))
    assert made.spec.name == name
    components, options = paths_in(made.config())
    asked = Request(k=3, epsilon=1.0, delta=1e-6, bounds=(-1, 1), rows=10_000, seed=1, not_private=True)
    wanted = prepare(attrs.evolve(asked, method=drafted(name, components, options)), ["x", "y"])
    plan = prepare(attrs.evolve(asked, method=make("Method", name)), ["x", "y"])
    assert plan.composed.config() == wanted.composed.config()
    assert (plan.digest(), plan.total, plan.budget) == (wanted.digest(), wanted.total, wanted.budget)


def test_a_preset_is_found_by_what_differs_least_and_exact_answers_are_refused_under_any_name() -> None:
    published: dict[str, Any] = {"floor": 0.0, "keep_below": 1.0, "shrink": 0.0}
    absolute = {**published, "updates": "absolute", "radius": "none", "clip_steps": False, "border": "none"}
    assert composed_of(registry(), "Method", lloyd()).spec.name == "damped-lloyd"
    assert composed_of(registry(), "Method", lloyd(**published)).spec.name == "fastlloyd"
    assert composed_of(registry(), "Method", lloyd(**LAPLACE, **absolute)).spec.name == "su-lloyd"
    assert composed_of(registry(), "Method", lloyd(**absolute)).spec.name == "gauss-lloyd"
    for exact in (lloyd(counts=Exact()), lloyd(counts=Exact(), sums=Exact(), **absolute)):
        with pytest.raises(ValueError, match="is NOT private"):
            model(exact).fit(blobs(600))


def test_a_ledger_takes_a_component_and_goes_on_with_its_run_by_name(ledger: dict[str, str]) -> None:
    fitted = model(lloyd(rounds=2), **ledger).fit(blobs(600))
    (run,) = runs(ledger)
    named = model("damped-lloyd", options={"rounds": 2}, components={"counts": "discrete-gaussian"}, **ledger)
    assert np.array_equal(named.fit(blobs(600), resume=run.id).cluster_centers_, fitted.cluster_centers_)


def test_parts_are_named_or_made_and_trust_models_are_not_mixed() -> None:
    counts, local = (make("FrequencyOracle", name) for name in ("discrete-laplace", "explicit-histogram"))
    assert make("Method", "fastlloyd", counts=counts) == make("Method", "fastlloyd", counts="discrete-laplace")
    with pytest.raises(ValueError, match="because slot 'counts' holds 'explicit-histogram'"):
        model(lloyd(counts=local)).fit(blobs(600))
    with pytest.raises(InvalidInput, match="no slot or option 'count': did you mean counts"):
        make("Method", "fastlloyd", count=counts)
    with pytest.raises(WrongComposition, match="'explicit-histogram' is a FrequencyOracle: give a VectorSumOracle"):
        make("Method", "fastlloyd", sums=local)


def test_what_is_no_method_and_parts_beside_a_component_are_refused_with_what_to_give() -> None:
    for wrong in (Lloyd, None, DiscreteLaplace()):
        with pytest.raises(ValueError, match=r"is no Method: give the name of one .*cloister\.plugin\.make\('Method'"):
            model(wrong).fit(blobs(600))
    for more in ({"options": {"rounds": 2}}, {"components": {"counts": "exact"}}):
        with pytest.raises(ValueError, match="leave components and options out"):
            model(lloyd(), **more).fit(blobs(600))


def test_parameters_have_paths_and_setting_them_replaces_the_method() -> None:
    method = lloyd()
    one = model(method)
    deep = one.get_params()
    assert (deep["method"], deep["method__rounds"], deep["method__counts"]) == (method, None, method.counts)
    one.set_params(method__rounds=3, method__counts="discrete-laplace", method__sums=LAPLACE["sums"], epsilon=2.0)
    assert (one.method, one.epsilon, method) == (lloyd(**LAPLACE, rounds=3), 2.0, lloyd())
    one.set_params(method__start=make("Method", "hst-means"), method__start__rounds=2)
    assert (one.method.start.rounds, one.method.rounds) == (2, 3)
    assert clone(one).get_params() == one.get_params()
    auto = model(make("Method", "auto")).set_params(**{"method__grid-means__counts": "discrete-laplace"})
    assert type(auto.method.candidates["grid-means"].counts) is DiscreteLaplace


@pytest.mark.parametrize(
    ("method", "given", "said"),
    [
        ("fastlloyd", {"method__rounds": 3}, "method is the name 'fastlloyd', which has no parameters"),
        (lloyd(), {"method__round": 3}, "no parameter 'round': did you mean rounds"),
        (lloyd(), {"method__counts": "explicit-histogram"}, "is Local|is Central"),
        (lloyd(), {"method__rounds__more": 1}, "no parameter 'rounds'"),
    ],
)
def test_parameters_that_are_not_there_are_value_errors(method: Any, given: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        model(method).set_params(**given)


def test_a_class_that_is_not_registered_runs_in_memory_and_says_so(ledger: dict[str, str]) -> None:
    mine = Everywhere(counts=DiscreteGaussian(), times=2)
    fitted = model(mine).fit(blobs(600))
    assert fitted.result_.method["name"].endswith("test_components.Everywhere")
    assert "is registered by no installed plugin: the run was in memory only" in fitted.privacy_.text()
    assert (len(fitted.privacy_.spends), fitted.privacy_.epsilon) == (2, 4.0)
    inside = model(lloyd(start=mine, start_share=0.3)).fit(blobs(600))
    assert inside.result_.method["name"] == "damped-lloyd"
    with pytest.raises(ValueError, match="a ledger records the method by registry names"):
        model(mine, **ledger).fit(blobs(600))
    assert runs(ledger) == ()


def test_what_needs_a_record_refuses_a_class_that_is_not_registered(tmp_path: Path) -> None:
    local: Any = Everywhere(counts=make("FrequencyOracle", "explicit-histogram"))
    asked = Request(k=2, method=local, epsilon=1.0, bounds=(-1, 1), rows=600)
    with pytest.raises(InvalidInput, match="a plan records the method by registry names"):
        publish(asked, dimension=2)
    np.save(tmp_path / "rows.npy", blobs(600))
    central = attrs.evolve(asked, method=Everywhere(counts=DiscreteLaplace()))
    files = source(tmp_path / "rows.npy", engine="processes", workers=1)
    with pytest.raises(InvalidInput, match="an engine with workers records the method by registry names"):
        fit(central, files)
    with pytest.raises(InvalidInput, match="is Central, and the trust model asked for is Local"):
        prepare(attrs.evolve(central, trust="local"), ["x", "y"])
