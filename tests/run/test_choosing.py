"""What is picked, and what fills slots: by public figures alone, and the same wherever a plan is read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Generic

import attrs
import numpy as np
import pytest

from cloister.accounting import Ledger
from cloister.collection.plan.plan import CollectionPlan
from cloister.collection.plan.publish import publish
from cloister.core.clustering import Clustering, Problem
from cloister.core.errors import CloisterError, InvalidInput, UnknownName, WrongComposition
from cloister.core.questions import count
from cloister.core.randomness import PublicRng
from cloister.core.registry.components import Spec, component, slot
from cloister.core.registry.compose import Composed
from cloister.core.registry.filling import Filler
from cloister.core.registry.making import make
from cloister.core.registry.registry import Plugin, Registry, registry
from cloister.core.roles import FrequencyOracle
from cloister.core.session import Method, Session
from cloister.core.trust import TRUSTS, T
from cloister.plugins.methods.auto import Auto
from cloister.plugins.methods.sphere_packing import sphere_packing
from cloister.plugins.trees.grid import Grid
from cloister.run import choosing, request as requests
from cloister.run.account import Account
from cloister.run.fit import fit, source
from cloister.run.request import Request, prepare

ROWS = np.random.default_rng(0).normal(0, 0.3, (3000, 2))
ORACLES = ("FrequencyOracle", "VectorSumOracle")


def request(**given: Any) -> Request:
    asked = {"k": 3, "epsilon": 1.0, "delta": 1e-6, "bounds": (-1, 1), "rows": 3000, "seed": 1, "zoom": "off"}
    return Request(**{**asked, **given})


def parts(composed: Composed, path: str = "") -> Iterator[tuple[str, Composed]]:
    """Oracles by path, in methods in slots too."""
    for name, part in composed.inner.items():
        if part.spec.role in ORACLES:
            yield f"{path}{name}", part
        else:
            yield from parts(part, f"{path}{name}.")


@component
class Confident(Generic[T]):
    """Predicts next to no error. Its one question is of grid cells."""

    counts: FrequencyOracle[T] = slot("discrete-laplace", help="how many rows fall in each cell")

    def cluster(self, problem: Problem, session: Session[T], rng: PublicRng) -> Clustering:
        session.ask(count(Grid(side=2).open(problem, rng), oracle=self.counts, budget=problem.budget))
        return Clustering(sphere_packing(problem.k, problem.domain, rng))

    def expected_error(self, problem: Problem) -> float:
        if problem.domain.dimension > 3:
            raise InvalidInput("not so many columns")
        return 1e-9 if problem.budget.measure == "pure" else 2.0


@component
class Faulty(Confident[T]):
    """Fails where it is to predict its error."""

    def expected_error(self, problem: Problem) -> float:
        return 1 / (problem.k - problem.k)


@component
class Silent:
    """Says nothing of its error."""

    def cluster(self, problem: Problem, session: Session[Any], rng: PublicRng) -> Clustering:
        return Clustering(sphere_packing(problem.k, problem.domain, rng))


def strangers() -> Registry:
    """A plugin with a method that is sure of itself, one that predicts nothing, two that fail, and one for
    another objective."""
    classes = {"confident": "Confident", "faulty": "Faulty", "silent": "Silent", "broken": "Missing"}
    specs = [Spec(name, "Method", f"{__name__}:{cls}", "x", objective="k-means") for name, cls in classes.items()]
    median = Spec("confident-median", "Method", f"{__name__}:Confident", "x", objective="k-median")
    return Registry((*registry().plugins, Plugin("stranger", "here", (*specs, median))))


@pytest.fixture
def with_strangers(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (choosing, requests):
        monkeypatch.setattr(module, "registry", strangers)


# who is picked


@pytest.mark.usefixtures("with_strangers")
def test_a_strangers_method_takes_part_and_wins_by_what_it_predicts() -> None:
    found = fit(request(), source(ROWS))
    assert found.method["name"] == "confident"
    told = found.details["auto"]
    assert (told["picked"], told["candidates"][0]["name"]) == ("confident", "confident")
    assert told["words"].startswith("auto picked confident: predicted error 1e-09 of a single centre's cost; next: ")
    unable = {candidate["name"]: candidate["why"] for candidate in told["candidates"] if candidate["why"]}
    assert unable["faulty"] == "Faulty does not predict its error: ZeroDivisionError: division by zero"
    names = {candidate["name"] for candidate in told["candidates"]}
    assert not names & {"silent", "confident-median"}
    median = prepare(request(method="auto-median"), ["x", "y"]).choice
    assert median is not None
    assert "confident-median" in {c.name for c in median.candidates}


@pytest.mark.usefixtures("with_strangers")
def test_a_candidate_that_cannot_solve_the_problem_is_passed_over_and_says_why() -> None:
    made = prepare(request(), list("abcde"))
    assert made.choice is not None
    (out,) = (c for c in made.choice.candidates if c.name == "confident")
    assert (out.error, out.why) == (None, "not so many columns")
    assert made.composed.spec.name != "confident"


@pytest.mark.usefixtures("with_strangers")
def test_a_method_that_cannot_be_loaded_is_named_with_the_reason() -> None:
    """As one is whose extra is not installed: what is picked instead may be worse."""
    found = fit(request(), source(ROWS))
    (broken,) = [c for c in found.details["auto"]["candidates"] if c["name"] == "broken"]
    assert (broken["error"], "cannot be loaded" in broken["why"]) == (None, True)
    assert "Candidates that cannot run here: " in found.privacy.text()
    assert f"broken: {broken['why']}" in found.privacy.text()
    without = prepare(request(components={"broken": "none"}), ["x", "y"]).choice
    assert without is not None
    assert "broken" not in {c.name for c in without.candidates}


@pytest.mark.usefixtures("with_strangers")
def test_each_candidate_is_judged_under_the_budget_of_its_own_oracles() -> None:
    """Beside Gaussian candidates pure noise would get an epsilon of rho: the fake would predict an error of 2."""
    assert prepare(request(), ["x", "y"]).problem.budget.measure == "pure"


@pytest.mark.usefixtures("with_strangers")
def test_options_and_slots_of_candidates_are_named_by_path_and_candidates_can_be_left_out() -> None:
    out = prepare(request(components={"confident": "none"}), ["x", "y"]).choice
    assert out is not None
    assert "confident" not in {c.name for c in out.candidates}
    only = prepare(request(components={"one-round": "one-round", "mine": "hst-means"}), ["x", "y"]).choice
    assert only is not None
    assert {c.name for c in only.candidates} <= {"one-round", "mine"}
    swapped = prepare(request(components={"confident.counts": "discrete-gaussian"}), ["x", "y"])
    assert swapped.choice is not None
    assert next(c.error for c in swapped.choice.candidates if c.name == "confident") == 2.0
    with pytest.raises(UnknownName, match="did you mean confident"):
        prepare(request(components={"confidnt.counts": "discrete-gaussian"}), ["x", "y"])
    every = {spec.name: "none" for spec in strangers().candidates("k-means")}
    with pytest.raises(WrongComposition, match="no method is left"):
        prepare(request(components=every), ["x", "y"])


def test_what_no_candidate_can_do_is_said_once() -> None:
    with pytest.raises(InvalidInput) as refused:
        prepare(request(k=300, rows=200), ["x", "y"])
    assert str(refused.value).count("ask for fewer centres") == 1


def test_what_is_picked_does_not_depend_on_rows_and_is_said_once() -> None:
    """The same for a neighbour, and for rows that have nothing to do with them."""
    others = (ROWS, ROWS[1:], np.random.default_rng(5).uniform(-1, 1, (200, 2)), np.ones((3000, 2)))
    found = [fit(request(k=5), source(rows)) for rows in others]
    assert all(one.method == found[0].method for one in found)
    assert all(one.details["auto"] == found[0].details["auto"] for one in found)
    picked, privacy = found[0].details["auto"]["words"], found[0].privacy
    assert privacy.text().count(picked) == 1
    assert [picked in note for note in privacy.as_dict()["notes"]].count(True) == 1


def test_more_columns_than_a_grid_can_hold_need_no_grid() -> None:
    for d in (1, 4, 20):
        choice = prepare(request(), [str(j) for j in range(d)]).choice
        assert choice is not None
        assert choice.error == min(c.error for c in choice.candidates if c.error is not None)


def test_the_method_of_python_code_picks_for_the_problem_that_it_is_given() -> None:
    method = make("Method", "auto")
    made = prepare(request(k=4), ["x", "y"])
    errors = method.errors(made.problem)
    assert method.expected_error(made.problem) == min(errors.values())
    one = Auto(candidates={"only": make("Method", "one-round", trust="central")})
    found = one.cluster(
        made.problem, Session(made.problem, PublicRng.from_seed(1), forecasting=True), PublicRng.from_seed(2)
    )
    assert found.details["picked"] == "only"
    with pytest.raises(InvalidInput, match="no candidate can solve this problem: no: "):
        Auto(candidates={"no": Confident(counts=one.candidates["only"].counts)}).errors(
            attrs.evolve(made.problem, domain=attrs.evolve(made.problem.domain, lower=(-1.0,) * 4, upper=(1.0,) * 4))
        )


# a plan means one method, wherever it is read


@pytest.mark.usefixtures("with_strangers")
def test_a_plan_names_the_method_that_was_picked_and_no_other() -> None:
    """So that its digest does not change with what else is installed, and whoever reads it needs that method alone."""
    with_all = prepare(request(components={"confident": "none"}), ["x", "y"])
    assert with_all.choice is not None
    components = with_all.choice.as_dict()["components"]
    alone = prepare(request(method=with_all.composed.spec.name, components=components, trust="central"), ["x", "y"])
    assert with_all.digest() == alone.digest()


def test_a_published_plan_of_auto_is_read_without_auto(tmp_path: Path) -> None:
    asked = request(method="auto", trust="local", delta=0.0, epsilon=4.0)
    made, choice = publish(asked, dimension=4), prepare(asked, list("abcd")).choice
    assert choice is not None
    assert made.method["name"] == choice.picked != "auto"
    made.write(tmp_path / "plan", "x")
    assert CollectionPlan.read(tmp_path / "plan").round().digest() == made.digest


def interrupted(asked: Request, ledger: Ledger) -> str:
    """The id of a run that was cut off after it was reserved."""
    ids = list[str]()

    def cut(run: str) -> None:
        ids.append(run)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit(asked, source(ROWS), account=Account(ledger=ledger.path, dataset="mine"), reserved=cut)
    return ids[0]


def test_a_run_goes_on_with_what_was_picked_though_another_would_be_now(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, now = interrupted(request(), ledger), prepare(request(), ["x", "y"]).composed.spec.name
    for module in (choosing, requests):
        monkeypatch.setattr(module, "registry", strangers)
    assert prepare(request(), ["x", "y"]).composed.spec.name == "confident"
    account = Account(ledger=ledger.path, dataset="mine", resume=run)
    assert fit(request(seed=None), source(ROWS), account=account).method["name"] == now


# which oracles fill slots

METHODS = sorted(s.name for s in registry().specs("Method") if s.private and s.name != "naive-noise")


@pytest.mark.parametrize("trust", TRUSTS)
def test_a_trust_model_fills_every_slot_of_every_method(trust: str) -> None:
    for name in METHODS:
        made = Filler(registry(), trust).filled("Method", name, {}, {})
        assert {part.trust for _, part in parts(made)} <= {trust}, name


@pytest.mark.parametrize("name", METHODS)
def test_a_method_asks_questions_of_the_trust_that_was_asked_for_alone(name: str) -> None:
    """Each trust model in its turn; an oracle that a problem is too large for is passed over for one of the same."""
    trust = [*TRUSTS][METHODS.index(name) % len(TRUSTS)]
    zoom = "auto" if registry().spec("Method", name).wraps else "off"
    asked = request(method=name, trust=trust.lower(), parties=3, rows=10_000, zoom=zoom)
    made = prepare(asked, list("abcd"))
    rounds = made.forecast(PublicRng.from_seed(1))
    assert {part.trust for _, part in parts(made.composed)} | {round.trust.__name__ for round in rounds} <= {trust}


def test_a_slot_that_is_named_stays_as_named() -> None:
    made = prepare(request(method="hst-means", trust="local", components={"counts": "subset-selection"}), ["x", "y"])
    held = {path: part.spec.name for path, part in parts(made.composed)}
    assert held["counts"] == "subset-selection"
    assert held["start.counts"] == "optimised-local-hashing"


def test_a_tree_of_many_cells_gets_an_oracle_that_can_hold_them() -> None:
    """The first in order refuses millions of buckets; only the slot that asks about them gets another one."""
    made = prepare(
        request(method="hst-median", trust="local", k=8, epsilon=4.0, rows=1_000_000, delta=0.0), [*"abcdefghij"]
    )
    held = {path: part.spec.name for path, part in parts(made.composed)}
    assert held["start.tree_counts"] == "explicit-histogram"
    assert held["counts"] == "optimised-local-hashing"
    assert max(max(part.cells.space.sizes) for part in made.forecast(PublicRng.from_seed(1))[0].parts) > 2**21


def test_what_cannot_be_paid_is_not_taken() -> None:
    """Without delta slots are filled with pure noise."""
    made = prepare(request(method="fastlloyd", trust="central", delta=0.0), ["x", "y"])
    assert {part.spec.name for _, part in parts(made.composed)} == {"discrete-laplace", "l2-mechanism"}
    with pytest.raises(InvalidInput, match="no Shuffled oracles fit 'fastlloyd'"):
        prepare(request(method="fastlloyd", trust="shuffled", delta=0.0), ["x", "y"])


def test_oracles_of_another_trust_are_refused_with_what_to_do() -> None:
    given = {"counts": "discrete-gaussian", "sums": "discrete-gaussian"}
    with pytest.raises(InvalidInput, match="is Central, and the trust model asked for is Local"):
        prepare(request(method="fastlloyd", trust="local", components=given), ["x", "y"])
    for trust, told in (("locl", "did you mean local"), (3, "no trust '3'")):
        with pytest.raises(UnknownName, match=told):
            request(trust=trust)


def test_made_components_take_a_trust_model_too() -> None:
    made: Method[T] = make("Method", "hst-median", trust="local")
    composed = Filler(registry(), "Local").filled("Method", "hst-median", {}, {})
    assert made == composed.value
    assert {part.trust for _, part in parts(composed)} == {"Local"}
    assert make("Method", "su-lloyd", trust="central") == make("Method", "su-lloyd")  # which fits as it is
    with pytest.raises(InvalidInput, match="'naive-noise' as composed is Local, and the trust model asked"):
        make("Method", "naive-noise", trust="central")
    with pytest.raises(CloisterError, match="no trust"):
        make("Method", "hst-median", trust="nobody")
