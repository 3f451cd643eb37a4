"""A run as a stack of layers: equal to what it was, written down in ``layers.json``, and open to one layer more."""

from __future__ import annotations

import ast
import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Generic

import attrs
import numpy as np
import pytest

from cloister.collection.plan.publish import publish, words
from cloister.core.clustering import Clustering, Problem
from cloister.core.frames import cube
from cloister.core.questions import count
from cloister.core.randomness import NoiseRng, PublicRng
from cloister.core.registry import registry as installed
from cloister.core.registry.components import Spec, component, option, slot
from cloister.core.registry.compose import Composed
from cloister.core.roles import FrequencyOracle
from cloister.core.session import Method, Session
from cloister.core.trust import T
from cloister.core.wrappers import METHOD, ColumnNames
from cloister.plugin import hookimpl
from cloister.plugins.methods.grouping import Frame
from cloister.rows.selection import Selection
from cloister.run.explaining import explain
from cloister.run.fit import fit
from cloister.run.layers import stack
from cloister.run.layers.count_oracle import count_oracle
from cloister.run.layers.layer import Scope
from cloister.run.request import Request, prepare
from tests.run.layer_cases import BOUNDS, COLUMNS, EVERY, START, Case, decoded, table

GOLDEN = Path(__file__).parent / "layers.json"


def plain(value: Any) -> Any:
    """Plain data, with six digits of each number: more of them may differ from machine to machine."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, dict):
        return {str(key): plain(part) for key, part in value.items()}
    return [plain(part) for part in value] if isinstance(value, list | tuple) else value


def hashed(value: Any) -> str:
    return hashlib.sha256(json.dumps(plain(value), sort_keys=True).encode()).hexdigest()[:16]


@pytest.mark.parametrize("name", EVERY)
def test_digests_schedules_texts_and_results_are_as_they_were(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """``CLOISTER_GOLDEN=write`` accepts what changed."""
    monkeypatch.setattr("cloister.run.request.__version__", "0")
    facts = {part: hashed(value) for part, value in EVERY[name]().items()}
    golden = json.loads(GOLDEN.read_text("utf-8")) if GOLDEN.exists() else {}
    if os.environ.get("CLOISTER_GOLDEN") == "write":
        GOLDEN.write_text(json.dumps({**golden, name: facts}, indent=1, sort_keys=True) + "\n", "utf-8")
    else:
        assert facts == golden[name]


FOLDER = Path(stack.__file__).parent
READERS = {path.stem for path in FOLDER.glob("*.py") if re.search(r"^def read\(", path.read_text("utf-8"), re.M)}
"""Files of layers."""

KNOWING = {
    "run/layers/stack.py": "LAYERS",
    "run/layers/levels.py": "its notes come last, and it may wrap nothing",
    "lab/comparing/conditions.py": "units of distance for the costs of rivals",
}
"""Files that know a layer by name, and why."""


def test_a_layer_that_is_forgotten_somewhere_is_named() -> None:
    """It stands in four places: its component, that one's Spec, its file (whose reader ``LAYERS`` names), and the
    request's fields, of which ``tests/commands/test_options.py`` sees that each is an option and a parameter."""
    listed = {reader.__module__.rpartition(".")[2] for reader in stack.LAYERS}
    assert listed == READERS, "files in run/layers, and their readers in LAYERS of run/layers/stack.py"
    case = Case({"method": "hst-means", "describe": ["stay"], "describe_words": "notes", "zoom": 0.1})
    around = set(fit(case.request, case.population, noise=NoiseRng.for_tests(1)).method)
    stated = {spec.adds for spec in installed.built_in().specs("Method") if spec.adds}
    assert stated - around == set(), "in the manifest of methods, and no layer in run/layers asks for it"


def known_layers(path: Path) -> set[str]:
    """Layers whose module, reader or class a file imports."""
    names = set[str]()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module == "cloister.run.layers":
            names |= {alias.name for alias in node.names} & READERS
        elif isinstance(node, ast.ImportFrom) and str(node.module).startswith("cloister.run.layers."):
            layer = import_module(str(node.module))
            names |= {alias.name for alias in node.names if hasattr(getattr(layer, alias.name), "around")} - {"Layer"}
    return names


def test_no_other_file_knows_a_layer_by_name() -> None:
    files = {
        path.relative_to(FOLDER.parents[1]).as_posix(): known_layers(path) for path in FOLDER.parents[1].rglob("*.py")
    }
    assert {path for path, layers in files.items() if layers} == set(KNOWING)


# a sixth layer: its component, its reader, its Spec, one name in LAYERS and one field of the request


@component
class CountedAgain(Generic[T]):
    """A method whose groups are counted once more."""

    method: Method[T] = slot("hst-means", help="clusters the rows")
    counts: FrequencyOracle[T] = slot("discrete-gaussian", help="how many rows each group has")
    share: float = option(default=0.1, low=0.0, high=0.5, above=True, help="of the budget, for the counts")

    has_frame = False

    def cluster(self, problem: Problem, session: Session[T], rng: PublicRng) -> Clustering:
        found = self.method.cluster(self.inner(problem), session, rng.child("method"))
        frame = Frame.of(problem.domain, found.details, found.centers.shape[1])
        view = session.framed(frame.lattice, cube(problem.domain.dimension))
        cells, budget = frame.near(found.centers, problem.k, view), problem.split(self.share)[0].budget
        (answer,) = view.ask(count(cells, oracle=self.counts, budget=budget))
        return attrs.evolve(found, details={**found.details, "again": answer.at(np.arange(problem.k)).tolist()})

    def share_of(self, problem: Problem) -> float:
        return self.share

    def inner(self, problem: Problem) -> Problem:
        return problem.split(self.share)[1]

    def price(self, problem: Problem, columns: ColumnNames, part: float) -> str:
        return f"Again: {part * self.share:.1%} of the budget counts groups by {', '.join(columns.features)}."

    def warning(self, problem: Problem) -> str:
        return "groups are counted twice"

    def notes(self, problem: Problem, columns: ColumnNames, part: float, details: Mapping[str, Any]) -> tuple[str, ...]:
        return (f"{self.price(problem, columns, part)} There were {len(details['again'])}.",)

    def facts(self, columns: ColumnNames) -> dict[str, Any]:
        return {"counted again": True}


@attrs.frozen
class Again:
    """The layer that a request asks for."""

    part: float

    def seen(self, scope: Scope) -> Scope:
        return scope

    def around(self, method: Composed, scope: Scope, share: float) -> Composed:
        counts = count_oracle(method, scope)
        assert counts is not None
        parts = {METHOD: method, "counts": counts}
        value = CountedAgain(method=method.value, counts=counts.value, share=share)
        return Composed(value, SPEC, parts, method.trust)


@attrs.frozen(kw_only=True)
class Asked(Request):
    """A request with the layer's own field."""

    again: float = 0.1


def read(request: Any, table: Selection) -> tuple[Any, Again | None]:
    return request, Again(request.again) if request.again else None


SPEC = Spec("counted-again", "Method", f"{__name__}:CountedAgain", "counts groups once more", adds="again", fills=1)


@pytest.fixture
def sixth(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The layer, installed as a plugin, between histograms and keywords."""

    @hookimpl
    def cloister_components() -> list[Spec]:
        return [SPEC]

    found = SimpleNamespace(cloister_components=cloister_components)
    point = SimpleNamespace(name="sixth", value="here", dist=None, load=lambda: found)
    monkeypatch.setattr(installed, "entry_points", lambda group: [point])
    monkeypatch.setattr(stack, "LAYERS", (*stack.LAYERS[:3], read, *stack.LAYERS[3:]))
    installed.registry.cache_clear()
    yield
    installed.registry.cache_clear()


@pytest.mark.usefixtures("sixth")
def test_a_sixth_layer_is_planned_run_told_and_recorded_like_the_others() -> None:
    wide = dict.fromkeys(COLUMNS, (-5000, 5000))
    more = {"describe": ["age"], "describe_words": "notes", "most_words": 4, "zoom": 0.1}
    case = Case({"method": "hst-means", **more, "bounds": {**BOUNDS, **wide}})
    asked = Asked(**{field.name: getattr(case.request, field.name) for field in attrs.fields(Request)})
    population = case.population
    plan = prepare(asked, (), chosen_columns=population.selection)
    assert [level.composed.spec.adds for level in plan.levels] == ["", "frame", "description", "again", "words"]
    again = plan.levels[3]
    assert again.part * again.composed.value.share == pytest.approx(0.1)
    assert plan.levels[0].problem.budget.amount == pytest.approx(0.9 * (1 - 0.15 - 0.1) * plan.budget.amount)
    assert "Again: 10.0% of the budget counts groups by age, weight." in plan.price
    assert "groups are counted twice" in plan.warnings
    told = explain(asked, (), population.selection)
    assert len(told.asked) == len(explain(attrs.evolve(asked, again=0.0), (), population.selection).asked) + 1
    assert told.method["again"]["options"] == {"share": again.composed.value.share}
    result = fit(asked, population, noise=NoiseRng.for_tests(1))
    assert sum(result.details["again"]) == pytest.approx(3000, abs=500)
    assert any(note.startswith("Again: ") and note.endswith("There were 3.") for note in result.privacy.notes)
    assert list(result.method)[-4:] == ["frame", "description", "again", "words"]
    assert result.problem["counted again"]


@pytest.mark.usefixtures("sixth")
def test_a_published_plan_and_its_decoder_know_a_sixth_layer_by_its_component() -> None:
    trust = {"trust": "local", "epsilon": 4.0, "delta": 1e-6, "rows": 2000, "seed": 1}
    plan = publish(Asked(k=3, method="kept-centers", bounds=BOUNDS, start=START, zoom="off", **trust), COLUMNS)
    assert plan.compose().spec.name == "counted-again"
    assert "  Again: 10.0% of the budget counts groups by age, weight." in words(plan, plan.rounds()).splitlines()
    result = decoded(plan, table(2000)[COLUMNS].to_numpy())
    assert result.privacy.notes[0].startswith("Again: 10.0% of the budget")
    assert (result.method["name"], result.method["again"]["name"]) == ("kept-centers", "counted-again")
    assert result.problem["counted again"]
