"""What is picked, and what fills slots: by public figures alone, and the same wherever a plan is read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Generic

import attrs
import numpy as np
import pytest

from cloister.accounting.ledger.ledger import Ledger
from cloister.collection.plan.plan import CollectionPlan
from cloister.collection.plan.publish import publish
from cloister.core.capabilities import predicted_loss, relative_loss
from cloister.core.clustering import Clustering, Problem
from cloister.core.domains import Box
from cloister.core.errors import CloisterError, InvalidInput, UnknownName, WrongComposition
from cloister.core.questions import count
from cloister.core.randomness import PublicRng
from cloister.core.registry import making
from cloister.core.registry.components import Spec, component, slot
from cloister.core.registry.compose import Composed
from cloister.core.registry.making import drafted, make
from cloister.core.registry.oracle_resolver import OracleResolver
from cloister.core.registry.registry import Plugin, Registry, registry
from cloister.core.roles import FrequencyOracle
from cloister.core.session import Method, Session
from cloister.core.trust import TRUSTS, T
from cloister.plugins.methods.auto import Auto
from cloister.plugins.methods.sphere_packing import sphere_packing
from cloister.plugins.trees.grid import Grid
from cloister.rows.columns import TableColumn, select
from cloister.rows.options import Reading
from cloister.run.account import Account
from cloister.run.fit import fit, source
from cloister.run.method_selection import Candidate, MethodSelection, number_of_centers
from cloister.run.request import prepare
from cloister.run.result import Result
from tests.asking import asking

ROWS = np.random.default_rng(0).normal(0, 0.3, (3000, 2))
ORACLES = ("FrequencyOracle", "VectorSumOracle")


request = partial(asking, k=3, epsilon=1.0, delta=1e-6, bounds=(-1, 1), rows=3000, seed=1, zoom="off")


def chosen(columns: Sequence[str] = ("x", "y"), **given: Any) -> MethodSelection:
    choice = prepare(request(**given), columns).choice
    assert choice is not None
    return choice


def candidates(**given: Any) -> dict[str, Candidate]:
    return {candidate.name: candidate for candidate in chosen(**given).candidates}


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
class Fickle(Confident[T]):
    """Predicts less error in pure noise than in Gaussian noise, and refuses to run in it."""

    def cluster(self, problem: Problem, session: Session[T], rng: PublicRng) -> Clustering:
        if problem.budget.measure == "pure":
            raise InvalidInput("no pure noise")
        return super().cluster(problem, session, rng)

    def expected_error(self, problem: Problem) -> float:
        return 1e-9 if problem.budget.measure == "pure" else 1e-6


@component
class Sure(Confident[T]):
    """Predicts next to no error, whatever its noise."""

    def expected_error(self, problem: Problem) -> float:
        return 1e-9


def strangers() -> Registry:
    """A plugin with a method that is sure of itself, two that fail, and one for another objective."""
    classes = {"confident": "Confident", "faulty": "Faulty", "broken": "Missing"}
    specs = [Spec(name, "Method", f"{__name__}:{cls}", "x", objective="k-means") for name, cls in classes.items()]
    median = Spec("confident-median", "Method", f"{__name__}:Confident", "x", objective="k-median")
    return Registry((*registry().plugins, Plugin("stranger", "here", (*specs, median))))


@pytest.fixture
def with_strangers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(making, "registry", strangers)


# who is picked


@pytest.mark.usefixtures("with_strangers")
def test_a_strangers_method_takes_part_and_wins_by_what_it_predicts() -> None:
    found = fit(request(), source(ROWS))
    told = found.details["auto"]
    assert found.method["name"] == told["picked"] == told["candidates"][0]["name"] == "confident"
    assert told["words"].startswith("auto picked confident: predicted error 6.7e-09 of a single centre's cost (")
    others = candidates()
    assert others["faulty"].why == "Faulty does not predict its error: ZeroDivisionError: division by zero"
    assert "confident-median" not in others
    medians = candidates(method="auto-median")
    assert ("confident-median" in medians, "weighted-centers-median" in medians) == (
        True,
        False,
    )  # one says nothing of its error


@pytest.mark.usefixtures("with_strangers")
def test_a_method_that_cannot_be_loaded_is_named_with_the_reason() -> None:
    """As one is whose extra is not installed: what is picked instead may be worse."""
    found = fit(request(), source(ROWS))
    (broken,) = [c for c in found.details["auto"]["candidates"] if c["name"] == "broken"]
    assert (broken["error"], "cannot be loaded" in broken["why"]) == (None, True)
    assert "Candidates that cannot run here: " in found.privacy.text()
    assert f"broken: {broken['why']}" in found.privacy.text()
    assert "broken" not in candidates(components={"broken": "none"})


@pytest.mark.usefixtures("with_strangers")
def test_each_candidate_is_judged_under_the_budget_of_its_own_oracles() -> None:
    """Beside Gaussian candidates pure noise would get an epsilon of rho: the fake would predict an error of 2."""
    assert chosen().picked == "confident"


@pytest.mark.usefixtures("with_strangers")
def test_options_and_slots_of_candidates_are_named_by_path_and_candidates_can_be_left_out() -> None:
    assert "confident" not in candidates(components={"confident": "none"})
    assert candidates(components={"one-round": "one-round", "mine": "hst-means"}).keys() <= {"one-round", "mine"}
    assert candidates(components={"confident.counts": "discrete-gaussian"})["confident"].error == relative_loss(2.0)
    with pytest.raises(UnknownName, match="did you mean confident"):
        chosen(components={"confidnt.counts": "discrete-gaussian"})
    with pytest.raises(WrongComposition, match="no method is left"):
        chosen(components={spec.name: "none" for spec in strangers().candidates("k-means")})


def test_what_is_picked_does_not_depend_on_rows_and_is_said_once() -> None:
    """The same for a neighbour, and for rows that have nothing to do with them."""
    first, *others = [fit(request(k=5), source(rows)) for rows in (ROWS, ROWS[1:], np.ones((200, 2)))]
    for other in others:
        assert (other.method, other.details["auto"]) == (first.method, first.details["auto"])
    assert first.privacy.text().count(first.details["auto"]["words"]) == 1


@pytest.mark.parametrize(
    ("delta", "others"), [(3e-4, "counts=discrete-laplace"), (1e-6, "counts=discrete-laplace, sums=l2-mechanism")]
)
def test_of_a_method_s_laws_of_noise_the_one_with_the_least_error_is_taken(delta: float, others: str) -> None:
    """What Gaussian sums cost falls with delta; a run in pure noise needs none."""
    asked = {"delta": delta, "epsilon": 0.25}
    choice, ways = chosen(**asked), registry().spec("Method", "grid-means").alternatives
    by_itself = [
        prepare(request(method="grid-means", components=dict(way), **asked), ["x", "y"]) for way in ({}, *ways)
    ]
    errors = [predicted_loss(way.composed.value, way.problem, "k-means") for way in by_itself]
    assert choice.picked == f"grid-means ({others})"
    assert choice.error == pytest.approx(min(errors))
    assert len(set(errors)) == 3


def test_a_law_of_noise_in_which_the_method_does_not_run_is_not_offered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Even if it names every slot of the method, and predicts the least error."""
    fickle = Spec(
        "fickle",
        "Method",
        f"{__name__}:Fickle",
        "x",
        objective="k-means",
        presets={"counts": "discrete-gaussian"},
        alternatives=({"counts": "discrete-laplace"},),
    )
    known = Registry((*registry().plugins, Plugin("stranger", "here", (fickle,))))
    monkeypatch.setattr(making, "registry", lambda: known)
    choice = chosen()
    assert choice.picked == "fickle"


@pytest.mark.parametrize("given", [(2, 20), [2, 20], "2..20", " 2 .. 20 "])
def test_a_range_of_centres_is_a_pair_or_text(given: Any) -> None:
    assert number_of_centers(given) == (2, 20)


@pytest.mark.parametrize("given", [(2,), (2, 3, 4), (2.0, 3), (True, 3), (1, 3), (3, 3), (4, 3), "2..", "1..3"])
def test_what_is_no_range_of_two_centres_or_more_is_refused(given: Any) -> None:
    with pytest.raises(InvalidInput, match="k is"):
        number_of_centers(given)


def test_a_plan_is_that_of_its_budget() -> None:
    """Where both laws of noise are priced together the same questions may spend more: no run is resumed so."""
    asked = request(method="grid-means", components={"counts": "discrete-laplace"})
    plans = [prepare(attrs.evolve(asked, laws=laws), ["x", "y"]) for laws in (True, False)]
    assert plans[0].composed.config() == plans[1].composed.config()
    assert plans[0].budget.amount > plans[1].budget.amount
    assert plans[0].digest() != plans[1].digest()


def test_a_run_of_pure_noise_shares_its_budget_with_nothing() -> None:
    """Many small counts beside it, of the rows' range or of what groups hold, or a comparison with earlier centres."""
    assert (
        chosen().picked
        == chosen(epsilon=0.2, zoom="auto").picked
        == "grid-means (counts=discrete-laplace, sums=l2-mechanism)"
    )
    described = chosen(("x", "y"), describe=("x", "y"), describe_share=0.15)
    zoomed, begun = chosen(zoom=0.05), chosen(start={"x": [0.0, 0.5, 1.0], "y": [0.0, 0.5, 1.0]})
    assert {described.picked, zoomed.picked, begun.picked} == {"grid-means (counts=discrete-laplace)"}


def test_the_method_of_python_code_picks_for_the_problem_that_it_is_given() -> None:
    method, problem = make("Method", "auto"), prepare(request(k=4, laws=False), ["x", "y"]).problem
    assert method.expected_error(problem) == min(method.errors(problem).values())
    wide = attrs.evolve(problem, domain=Box((-1.0,) * 4, (1.0,) * 4))
    one = Auto(candidates={"no": Confident(counts=make("FrequencyOracle", "discrete-laplace"))})
    with pytest.raises(InvalidInput, match="no candidate can solve this problem: no: not so many columns"):
        one.errors(wide)


def test_each_way_that_auto_could_have_gone_is_planned_by_its_name() -> None:
    """As a run is that began where something else was installed: candidates under names of the caller's own, too."""
    asked = request(components={"mine": "grid-means", "hst-means": "hst-means"})
    choice = prepare(asked, ["x", "y"]).choice
    assert choice is not None
    laws = ("mine", "mine (counts=discrete-laplace)", "mine (counts=discrete-laplace, sums=l2-mechanism)")
    assert {*choice.names} == {"hst-means", *laws}
    plans = {name: prepare(asked, ["x", "y"], name) for name in choice.names}
    assert {name: plan.choice and plan.choice.picked for name, plan in plans.items()} == {n: n for n in choice.names}
    assert len({plan.digest() for plan in plans.values()}) == 4


def test_candidates_of_a_component_keep_their_options_beside_one_that_no_plugin_offers() -> None:
    stranger = Confident(counts=make("FrequencyOracle", "discrete-laplace"))
    auto = Auto(candidates={"mine": stranger, "lloyd": make("Method", "fastlloyd", rounds=7)})
    assert prepare(request(method=auto), ["x", "y"]).composed.value == stranger
    assert prepare(request(method=auto), ["x", "y"], "lloyd").composed.value.rounds == 7


# a plan means one method, wherever it is read


@pytest.mark.usefixtures("with_strangers")
def test_a_plan_names_the_method_that_was_picked_and_no_other() -> None:
    """So that its digest does not change with what else is installed, and whoever reads it needs that method alone."""
    with_all = prepare(request(components={"confident": "none"}), ["x", "y"])
    components = chosen(components={"confident": "none"}).as_dict()["components"]
    alone = prepare(request(method=with_all.composed.spec.name, components=components, trust="central"), ["x", "y"])
    assert with_all.digest() == alone.digest()


START = {"0": [-0.5, 0.0, 0.5], "1": [0.5, 0.0, -0.5]}


@pytest.mark.parametrize(
    "given", [{}, {"describe": ("0",)}, {"start": START}, {"start": START, "describe": ("0",), "zoom": 0.1}]
)
def test_a_run_of_auto_goes_on_with_the_method_that_it_began_with_whatever_is_installed_since(
    given: dict[str, Any], ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With layers around it or none: the new plugin's method would be picked for a new run."""
    asked, cut_off = request(laws=False, **given), list[Result]()
    rows = source(ROWS, described=given.get("describe"))

    def crash(result: Result) -> None:
        cut_off.append(result)
        raise RuntimeError

    account = Account(ledger=ledger.path, dataset="mine")
    with pytest.raises(RuntimeError):
        fit(asked, rows, account=account, keep=crash)
    sure = Spec("sure", "Method", f"{__name__}:Sure", "x", objective="k-means")
    known = Registry((*registry().plugins, Plugin("stranger", "here", (sure,))))
    monkeypatch.setattr(making, "registry", lambda: known)
    asked = request(laws=False, **given)
    choice = prepare(asked, ["0", "1"]).choice
    assert choice is not None
    assert choice.picked == "sure"
    again = fit(asked, rows, account=attrs.evolve(account, resume=ledger.runs()[-1].id))
    (before,) = cut_off
    assert again.method == before.method
    assert np.array_equal(again.centers, before.centers)


def test_a_published_plan_of_auto_is_read_without_auto(tmp_path: Path) -> None:
    asked: dict[str, Any] = {"method": "auto", "trust": "local", "delta": 0.0, "epsilon": 4.0}
    made = publish(request(**asked), dimension=4)
    assert made.method["name"] == chosen("abcd", **asked).picked != "auto"
    made.write(tmp_path / "plan", "x")
    assert CollectionPlan.read(tmp_path / "plan").round().digest() == made.digest


# which oracles fill slots

METHODS = sorted(s.name for s in registry().specs("Method") if s.private)


@pytest.mark.parametrize("name", METHODS)
def test_every_slot_of_a_method_is_filled_for_each_trust_and_questions_are_of_that_alone(name: str) -> None:
    """They are forecast for each trust model in its turn; an oracle that a problem is too large for is passed over for
    one of the same."""
    for trust in TRUSTS:
        filled = OracleResolver(trust).filled(drafted(name))
        assert {part.trust for _, part in parts(filled)} <= {trust}
    trust = [*TRUSTS][METHODS.index(name) % len(TRUSTS)]
    zoom = "auto" if registry().spec("Method", name).adds else "off"
    options = {"tree.depth": 20} if name == "tree-alone-median" else {}  # parties send a number for every cell
    asked = request(method=name, trust=trust.lower(), parties=3, rows=10_000, zoom=zoom, options=options)
    made = prepare(asked, "abcd")
    rounds = made.forecast(PublicRng.from_seed(1))
    assert {part.trust for _, part in parts(made.composed)} | {round.trust.__name__ for round in rounds} <= {trust}


def test_a_tree_of_many_cells_gets_an_oracle_that_can_hold_them() -> None:
    """The first in order refuses millions of buckets; only the slot that asks about them gets another one, and one that
    was named stays as named."""
    asked = request(
        method="hst-median",
        trust="local",
        k=8,
        epsilon=4.0,
        rows=1_000_000,
        delta=0.0,
        components={"start.counts": "subset-selection"},
    )
    made = prepare(asked, "abcdefghij")
    held = {path: part.spec.name for path, part in parts(made.composed)}
    assert held["start.tree_counts"] == "explicit-histogram"
    assert held["counts"] == "optimised-local-hashing"
    assert held["start.counts"] == "subset-selection"
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
    composed = OracleResolver("Local").filled(drafted("hst-median"))
    assert made == composed.value
    assert {part.trust for _, part in parts(composed)} == {"Local"}
    assert make("Method", "su-lloyd", trust="central") == make("Method", "su-lloyd")  # which fits as it is
    with pytest.raises(CloisterError, match="no trust"):
        make("Method", "hst-median", trust="nobody")


def test_a_grid_is_no_candidate_where_a_column_is_much_narrower_than_others() -> None:
    """Those of a category, or of unequal weights: its cells are as wide in every column."""
    table = select(
        [TableColumn("x", "numbers"), TableColumn("y", "numbers"), TableColumn("ward", "text")],
        Reading(columns=["x", "y"], categories={"ward": ["a", "b"]}),
    )
    choice = prepare(request(rows=300_000, delta=1e-7), table.features, chosen_columns=table).choice
    assert choice is not None
    (grid,) = (candidate for candidate in choice.candidates if candidate.method == "grid-means")
    assert grid.error is None
    assert "too wide for a category" in grid.why
    for scale, able in (({"x": 1, "y": 5}, False), ({"x": 1, "y": 3}, True), (None, True)):
        assert (candidates(scale=scale)["grid-means"].error is not None) == able
