"""Requests that put layers around a method in every way, and what a run makes of each: for ``test_layers``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from tempfile import TemporaryDirectory
from typing import Any

import attrs
import numpy as np
import pandas as pd

from cloister.collection.client.encoder import PlanEncoder
from cloister.collection.plan.plan import CollectionPlan
from cloister.collection.plan.publish import publish, words
from cloister.collection.plan.transcript import Transcript
from cloister.collection.server.aggregator import advance
from cloister.core.errors import CloisterError
from cloister.core.randomness import NoiseRng
from cloister.rows.keywords import Texts
from cloister.run.explaining import explain
from cloister.run.fit import fit, parties, source
from cloister.run.request import Request, prepare
from cloister.run.result import Result
from tests.asking import asking

COLUMNS = ["age", "weight"]
BOUNDS: Mapping[str, Any] = {"age": (0, 120), "weight": (20, 200), "stay": (0, 32)}
WARDS = {"ward": ["A", "B", "C"]}
DESCRIBED = ["ward", "stay", "smoker", "age"]
START = {"age": [30.0, 60.0, 85.0], "weight": [60.0, 90.0, 140.0]}


def table(n: int = 3000) -> pd.DataFrame:
    """Rows of three groups, which a ward, a stay, smoking and words tell apart more or less."""
    g = np.random.default_rng(0)
    groups = g.choice(3, n, p=[0.5, 0.3, 0.2])
    rows = np.array([[30, 60], [60, 90], [85, 140]])[groups] + g.normal(size=(n, 2)) * 4
    ward = np.array(list("ABCZ"))[np.where(g.random(n) < 0.7, groups, g.integers(0, 4, n))]
    stay, smoker = g.gamma(2, 2 + 2 * groups), g.random(n) < np.array([0.1, 0.5, 0.3])[groups]
    notes = np.array(["fever and cough", "fracture", "cough again"])[groups]
    numbers = {"age": rows[:, 0], "weight": rows[:, 1], "ward": ward, "stay": stay, "smoker": smoker}
    return pd.DataFrame({**numbers, "notes": notes, "who": np.arange(n) // 2})


@attrs.frozen
class Case:
    """A request, with the columns that its rows are clustered by. Args: asked (of the request), columns, rows (how
    many there are), parts (parties that pool them), users (whether they name theirs)."""

    asked: Mapping[str, Any]
    columns: tuple[str, ...] = ("age", "weight")
    rows: int = 3000
    parts: int = 0
    users: bool = False

    @property
    def request(self) -> Request:
        usual = {"k": 3, "epsilon": 1.0, "delta": 1e-6, "rows": self.rows, "seed": 1, "bounds": BOUNDS}
        return asking(**{**usual, **self.asked})

    @property
    def population(self) -> Any:
        words = self.asked.get("describe_words")
        most = [] if words is None else [Texts(words, self.asked.get("most_words", 16))]
        described, categories = self.asked.get("describe", ()), dict(WARDS)
        named = "ward" in (*self.columns, *described)
        more: dict[str, Any] = {
            "bounds": BOUNDS,
            "categories": categories if named else None,
            "described": [*described, *most],
            "user_column": "who" if self.users else None,
        }
        everyone = table(self.rows)
        if not self.parts:
            return source(everyone, columns=list(self.columns), **more)
        pieces = {str(i): everyone[i :: self.parts] for i in range(self.parts)}
        return parties({name: source(piece, columns=list(self.columns), **more) for name, piece in pieces.items()})


HST = {"method": "hst-means"}
LOCAL = {"method": "one-round", "trust": "local", "epsilon": 4.0}
WORDS = {"describe_words": "notes", "most_words": 4}
WIDE = {"bounds": {"age": (-5000, 5000), "weight": (-5000, 5000), "stay": (0, 32)}}

CASES: dict[str, Case] = {
    "plain": Case({**HST, "zoom": "off", "scale": "none"}),
    "zoom": Case({**HST, **WIDE}, rows=30_000),
    "a share for zoom": Case({**HST, "zoom": 0.2}),
    "unknown bounds": Case({**HST, "bounds": "unknown"}),
    "scaled by bounds": Case({"method": "fastlloyd", "scale": "bounds", "zoom": "off", **WIDE}),
    "weights": Case({**HST, "scale": {"age": 2, "weight": 1, "stay": 3}, "zoom": "off"}),
    "categories": Case({"scale": None}, (*COLUMNS, "ward")),
    "auto": Case({}),
    "auto, no other noise": Case({"laws": False, **WIDE}),
    "a range of k": Case({"k": (2, 5), "method": "hst-means", **WIDE, "zoom": 0.1}),
    "a range of k, described": Case({"k": (2, 5), "method": "hst-means", "describe": DESCRIBED}),
    "counted": Case({"rows": None}),
    "counted, unknown, described": Case({"rows": None, "bounds": {**BOUNDS, "age": "unknown"}, "describe": ["stay"]}),
    "described": Case({**HST, "describe": DESCRIBED, "zoom": "off", "scale": "none"}),
    "described by auto": Case({"describe": DESCRIBED}),
    "described in a frame": Case({**HST, **WIDE, "describe": ["stay", "age"], "describe_share": 0.3}, rows=30_000),
    "words": Case({**HST, **WORDS}),
    "words and columns": Case({**WORDS, "describe": DESCRIBED, **WIDE, "zoom": 0.1}),
    "words, counted": Case({**WORDS, "rows": None, "describe_share": 0.25}),
    "start": Case({"start": START, "zoom": 0.1}),
    "start, refit": Case({"start": START, "method": "refit"}),
    "start, kept": Case({"start": START, "method": "kept-centers", "scale": "bounds"}),
    "start, described, words": Case({"start": START, **WORDS, "describe": DESCRIBED}),
    "start, counted": Case({"start": START, "rows": None}),
    "start of parties": Case({"start": START, "trust": "aggregated", "parties": 3, "describe": ["ward"]}, parts=3),
    "parties": Case({"trust": "aggregated", "parties": 3, **WIDE, "zoom": 0.1}, parts=3),
    "local, described": Case({**LOCAL, "describe": ["ward", "stay"]}, rows=20_000),
    "local, zoom": Case({**LOCAL, "zoom": 0.2, "delta": 0.0}, rows=20_000),
    "local auto": Case({"trust": "local", "epsilon": 4.0, "scale": "bounds"}, rows=20_000),
    "shuffled": Case({"method": "one-round", "trust": "shuffled"}, rows=20_000),
    "users": Case({**HST, "rows_per_user": 2, "describe": ["stay"]}, users=True),
    "not private": Case({"method": "lloyd", "not_private": True, "describe": DESCRIBED}),
    "auto-median": Case({"method": "auto-median", "describe": ["stay"]}),
    "a ball": Case({"method": "hst-means", "bounds": "ball:300"}),
    "the method zoom": Case({"method": "zoom", "options": {"share": 0.1}}),
    "the method described": Case({"method": "described", "components": {"method": "fastlloyd"}}),
    "few rows": Case({"describe": DESCRIBED, **WORDS, "epsilon": 0.3}, rows=300),
}
"""Runs of rows that are in one place."""

PLANS: dict[str, Mapping[str, Any]] = {
    "local, described": {**LOCAL, "describe": ["stay"], "seed": 1},
    "local, zoom": {**LOCAL, "zoom": 0.2, "seed": 1},
    "local, start": {**LOCAL, "method": "kept-centers", "start": START, "zoom": "off", "seed": 1},
    "local, all of it": {
        **LOCAL,
        "method": "auto",
        "start": START,
        "zoom": 0.2,
        "scale": "bounds",
        "describe": ["stay"],
        "seed": 1,
    },
    "shuffled": {"method": "one-round", "trust": "shuffled", "epsilon": 1.0, "seed": 1},
}
"""Published plans."""

REFUSED: dict[str, Mapping[str, Any]] = {
    "no oracle to describe by": {"method": "given-centers", "options": {"centers": "0,0;1,1"}, "describe": ["stay"]},
    "too large a share": {"describe": ["stay"], "describe_share": 0.95},
    "words without delta": {**WORDS, "delta": 0.0},
    "words of people": {**WORDS, "trust": "local"},
    "unknown beside": {"describe": ["stay"], "bounds": {**BOUNDS, "stay": "unknown"}},
    "unknown and local": {**LOCAL, "bounds": "unknown"},
    "a start of others": {"start": {"age": [1, 2, 3]}},
    "a start for others": {"start": START, "method": "fastlloyd"},
    "a start for medians": {"start": START, "method": "auto-median"},
    "zoom twice": {"method": "zoom", "zoom": 0.1},
    "zoom of a ball": {"bounds": "ball:300", "zoom": 0.1},
    "zoom of a method that counts nothing": {"method": "sphere-packing", "zoom": 0.1},
    "no such zoom": {"zoom": "on"},
    "too few": {"bounds": "unknown", "rows": 50},
    "most words of none": {"most_words": 3},
}
"""Requests that are refused, of the columns that they cluster by."""


def facts_of(name: str) -> dict[str, Any]:
    """All that a run with this case's request is planned to be, says, and finds."""
    case = CASES[name]
    population = case.population
    columns = population.columns
    chosen = getattr(population, "selection", None)
    plan = prepare(case.request, columns, chosen_columns=chosen)
    told = explain(case.request, columns, chosen)
    result = fit(case.request, population, noise=NoiseRng.for_tests(1))
    return {
        "digest": plan.digest(),
        "schedule": told.as_dict(),
        "texts": [told.text.splitlines(), plan.price, list(plan.warnings), plan.describe(), *statement_of(result)],
        "record": record_of(result),
        "centers": result.centers.tolist(),
    }


def record_of(result: Result) -> dict[str, Any]:
    """What a saved result holds besides its centres and its statement."""
    facts = result.as_dict()
    details = {name: value for name, value in facts["details"].items() if name != "plan"}
    return {**facts, "details": details, "version": "", "privacy": None, "centers": None}


def statement_of(result: Result) -> list[Any]:
    """The statement, whose notes may stand in another order."""
    return [sorted(result.privacy.notes), sorted(result.privacy.text().splitlines())]


def decoded(plan: CollectionPlan, rows: Any) -> Result:
    """The result of a plan that everybody answers, round by round."""
    with TemporaryDirectory() as folder:
        plan.write(folder, words(plan, plan.rounds()))
        for _ in range(plan.length):
            encoder = PlanEncoder(Transcript.read(folder), noise=NoiseRng.for_tests(2))
            done = advance(folder, encoder.encode(rows, np.arange(len(rows))).to_bytes(), accept_shares=True)
    assert done.result is not None
    return done.result


def plan_of(name: str) -> dict[str, Any]:
    """A published plan, in words, and the result of its reports."""
    asked = {"k": 3, "delta": 1e-6, "rows": 2000, "bounds": BOUNDS, **PLANS[name]}
    made = publish(Request(**asked), COLUMNS)
    facts: dict[str, Any] = {
        "digest": made.digest,
        "texts": words(made, made.rounds()).splitlines()[:-3],
        "schedule": {**made.as_dict(), "version": "", "hash": ""},
    }
    if not made.crowd:
        result = decoded(made, table(2000)[[*COLUMNS, *(["stay"] if made.dimension == 3 else [])]].to_numpy(np.float64))
        facts["record"] = record_of(result)
        facts |= {"texts": [facts["texts"], *statement_of(result)], "centers": result.centers.tolist()}
    return facts


def refusal_of(name: str) -> dict[str, Any]:
    """The message."""
    try:
        prepare(Case(REFUSED[name]).request, COLUMNS)
    except CloisterError as error:
        return {"texts": str(error)}
    raise AssertionError(name)


EVERY: dict[str, Callable[[], dict[str, Any]]] = {
    **{name: lambda name=name: facts_of(name) for name in CASES},  # type: ignore[misc]
    **{f"plan: {name}": lambda name=name: plan_of(name) for name in PLANS},  # type: ignore[misc]
    **{f"refused: {name}": lambda name=name: refusal_of(name) for name in REFUSED},  # type: ignore[misc]
}
