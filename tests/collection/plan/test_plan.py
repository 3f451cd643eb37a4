"""Published plans: what is read is what was written, and anything else is refused in one line."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from functools import cache, reduce
from itertools import permutations
from operator import getitem
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest

from cloister.collection.client.encoder import PlanEncoder
from cloister.collection.plan.canonical_json import hash_of
from cloister.collection.plan.costs import union_length
from cloister.collection.plan.plan import FILE, WORDS, CollectionPlan, read
from cloister.collection.plan.publish import publish, words
from cloister.collection.server.aggregator import decode
from cloister.core.budget import Share
from cloister.core.errors import CloisterError, Damaged, InvalidInput, UnknownName
from cloister.core.randomness import NoiseRng, PublicRng
from cloister.core.registry.registry import built_in, registry
from cloister.run.request import Request
from tests.asking import asking
from tests.collection import rounds_fakes, shuffled_plans


def request(**changes: Any) -> Request:
    given = {"k": 4, "method": "one-round", "epsilon": 2.0, "bounds": "ball:1", "rows": 100_000, "seed": 5, **changes}
    return asking(**given)


LLOYD = {"counts": "optimised-local-hashing", "sums": "hadamard-vector"}
LOCAL: dict[str, Callable[[], CollectionPlan]] = {
    "one-round": lambda: publish(request(), dimension=8),
    "grid": lambda: publish(request(bounds="0:2.5,-1:1e3"), columns=["age", "income"]),
    "lsh": lambda: publish(request(method="one-round-lsh", epsilon=0.7), dimension=5),
    "lloyd": lambda: publish(
        request(method="fastlloyd", components=LLOYD, options={"rounds": "1"}), columns=["a", "b"]
    ),
}
PLANS = LOCAL | {"rounds": rounds_fakes.planned, "shuffled": lambda: shuffled_plans.small_plan(rows=shuffled_plans.FEW)}


@cache
def planned(name: str) -> CollectionPlan:
    return PLANS[name]()


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder, plan = tmp_path_factory.mktemp("whole") / "plan", planned("one-round")
    plan.write(folder, words(plan, plan.rounds()))
    return folder


@pytest.fixture
def folder(tmp_path: Path, whole: Path) -> Path:
    return Path(shutil.copytree(whole, tmp_path / "plan"))


@pytest.mark.parametrize("name", PLANS)
def test_what_is_read_is_what_was_written(name: str, tmp_path: Path) -> None:
    plan = planned(name)
    (tmp_path / "plan").mkdir()
    plan.write(tmp_path / "plan", "words")
    found = read(tmp_path / "plan")
    assert found.as_dict() == plan.as_dict()
    assert found.round().digest() == plan.round().digest() == plan.digest
    assert sorted(path.name for path in (tmp_path / "plan").iterdir()) == [WORDS, FILE]


Place = tuple[Any, ...]
"""Names and numbers that lead to a fact, from the outside in."""


def places(facts: Any, outer: Place = ()) -> Iterator[Place]:
    """The place of every fact, and of those that hold others."""
    items = facts.items() if isinstance(facts, dict) else enumerate(facts) if isinstance(facts, list) else ()
    for key, inner in items:
        yield (*outer, key)
        yield from places(inner, (*outer, key))


def rewrite(folder: Path, place: Place, value: Any) -> str:
    """Say something else in a plan, and seal it anew. Its hash."""
    facts = json.loads((folder / FILE).read_text())
    *outer, last = place
    reduce(getitem, outer, facts)[last] = value
    facts["hash"] = hash_of({name: fact for name, fact in facts.items() if name != "hash"})
    (folder / FILE).write_text(json.dumps(facts))
    return str(facts["hash"])


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        (("digest",), "00" * 32, "another version"),
        (("epsilon",), 1.0, "another version"),
        (("problem", "rows"), 99_999, "contradict each other"),
        (("method", "slots", "counts", "name"), "hadamard-response", "another version"),
        (("method", "slots", "counts", "name"), "discrete-laplace", "is Local|Central"),
        (("method", "slots", "counts", "name"), "hadamard-respons", "did you mean hadamard-response"),
        (("method", "name"), "lloyd", "slot|NOT private"),
        (("method", "options", "partitions"), "os.system", "partitions"),
    ],
)
def test_a_plan_that_was_changed_and_sealed_anew_gets_no_report(
    folder: Path, place: Place, value: Any, message: str
) -> None:
    rewrite(folder, place, value)
    with pytest.raises(CloisterError, match=message):
        PlanEncoder(read(folder))


def test_a_plan_whose_method_is_not_private_gets_no_report(folder: Path) -> None:
    exact = {"name": "exact", "options": {}, "slots": {}}
    for slot, said in (("counts", "Local"), ("sums", r"NOT private.*: nobody should send")):
        rewrite(folder, ("method", "slots", slot), exact)
        with pytest.raises(CloisterError, match=said):
            PlanEncoder(read(folder))


MALFORMED = {
    "null": b"null",
    "utf-16": '{"format": 1}'.encode("utf-16"),
    "nan": b'{"format": NaN}',
    "twice": b'{"format": 1, "format": 1}',
    "deep": b"[" * 100_000,
    "other format": b'{"format": 2, "hash": ""}',
    "long number": b'{"format": ' + b"9" * 5000 + b"}",
    "surrogate": b'{"format": 1, "hash": "\\ud800"}',
}


@pytest.mark.parametrize("content", MALFORMED.values(), ids=MALFORMED)
def test_a_malformed_plan_is_one_line(tmp_path: Path, content: bytes) -> None:
    (tmp_path / FILE).write_bytes(content)
    with pytest.raises(Damaged) as error:
        read(tmp_path)
    assert "\n" not in str(error.value)


NONSENSE = [None, True, -1, 0, 2**70, 1.5, 1e308, "", "x", [], [0], [[{}]], {}, {"a": 0}]


def test_a_sealed_plan_of_nonsense_anywhere_is_refused_or_whole(tmp_path: Path) -> None:
    folder, plan = tmp_path / "plan", planned("grid")
    plan.write(folder, "")
    original = (folder / FILE).read_text()
    for place in places(plan.as_dict()):
        for value in NONSENSE:
            (folder / FILE).write_text(original)
            sealed = rewrite(folder, place, value)
            try:
                found = read(folder)
            except Damaged:
                continue
            assert found.hash == sealed, (place, value)


def test_a_crash_while_writing_leaves_no_plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    full = OSError(28, "No space left on device")
    for files in range(3):  # for which there is room
        monkeypatch.setattr("os.fsync", Mock(side_effect=[None] * files + [full]))
        with pytest.raises(InvalidInput, match="No space left"):
            planned("one-round").write(tmp_path / "other", "words", {"bundle-1.json": b""})
        assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("changes", "columns", "message"),
    [
        ({"method": "lloyd", "not_private": True}, ["a"], "NOT private, so nobody can be asked"),
        ({"rows": 2**31 + 1}, ["a"], "public number of rows"),
        ({"rows": None}, ["a"], "no public number of rows"),
        ({}, 2**40, "the dimension is"),
    ],
)
def test_a_request_that_makes_no_plan_is_refused(changes: dict[str, Any], columns: Any, message: str) -> None:
    """What else the program refuses stands in ``tests/commands/bad_inputs/collection.txt``."""
    with pytest.raises(CloisterError, match=message) as error:
        publish(request(**changes), **{"dimension" if isinstance(columns, int) else "columns": columns})
    assert "\n" not in str(error.value)


def test_the_expected_error_is_said_and_so_are_the_rows_that_would_do() -> None:
    few = publish(request(rows=1000, epsilon=0.5), dimension=50)
    assert few.outlook is not None
    assert few.outlook.error > 1
    assert any("expect no better than one centre" in warning for warning in few.warnings)
    enough = publish(request(rows=few.outlook.rows_needed, epsilon=0.5), dimension=50)
    assert enough.outlook is not None
    assert 0.08 < enough.outlook.error <= 0.1
    assert enough.warnings == ()


def test_a_method_that_cannot_predict_has_no_outlook() -> None:
    plan = publish(request(method="nearest-centers"), dimension=3)
    assert plan.outlook is None
    assert "does not predict its accuracy" in words(plan, plan.rounds())


@pytest.mark.parametrize("name", [*LOCAL, "rounds"])
def test_bytes_per_user_are_what_is_sent(name: str) -> None:
    plan = planned(name)
    n, size = min(plan.rows, 4000), plan.schedule[0].size if plan.schedule else plan.size
    sent = PlanEncoder(plan, noise=NoiseRng.for_tests(0)).encode(np.zeros((n, plan.dimension)), np.arange(n)).columns()
    users = sum(v.nbytes for name, v in sent.items() if name.endswith(".users"))
    answers = sum(v.nbytes for name, v in sent.items() if v.ndim == 2)
    assert answers / n == pytest.approx(size.answers, rel=0.05)
    assert (sum(v.nbytes for v in sent.values()) - users - answers) / n == pytest.approx(size.stamps, rel=0.05)


def test_the_light_registry_has_all_that_is_built_in() -> None:
    assert set(map(str, built_in().specs())) == set(map(str, registry().plugins[0].specs))


def test_a_strangers_component_is_looked_for_in_all_that_is_installed(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = list[bool]()
    monkeypatch.setattr("cloister.collection.plan.plan.registry", lambda: asked.append(True) or built_in())
    read(folder).round()
    assert not asked
    rewrite(folder, ("method", "slots", "tree", "name"), "strange-tree")
    with pytest.raises((UnknownName, InvalidInput), match="strange-tree"):
        read(folder).round()
    assert asked


def test_a_plan_scales_columns_as_a_fit_does_and_takes_them_from_bounds_that_name_them() -> None:
    bounds = {"age": (0.0, 1.0), "income": (0.0, 100.0)}
    made, raw = (publish(request(epsilon=4.0, bounds=bounds, zoom="off", **scale)) for scale in ({}, {"scale": "none"}))
    assert made.columns == raw.columns == ("age", "income")
    assert (made.method["name"], made.method["options"]["scale"], raw.method["name"]) == ("zoom", "bounds", "one-round")
    assert CollectionPlan.from_dict(made.as_dict()).hash == made.hash


def test_a_statement_on_reports_says_that_the_start_of_a_plan_counts_as_public() -> None:
    start = dict(zip("01234", np.eye(5)[:3].T.tolist(), strict=True))
    kept = {"k": 3, "method": "kept-centers", "rows": 500, "bounds": (-1, 1), "trust": "Local", "zoom": "off"}
    plan = publish(request(start=start, epsilon=4.0, **kept), list("01234"))
    some = PlanEncoder(plan).encode(np.zeros((500, 5)), np.arange(500))
    text = decode(plan, some.to_bytes()).result.privacy.text()
    assert "The centres that the run began from count as public" in text


@pytest.mark.parametrize(
    ("intervals", "length"),
    [
        ([], 0.0),
        ([(0.25, 0.5), (0.75, 1.0)], 0.5),
        ([(0.0, 0.5), (0.25, 0.75)], 0.75),
        ([(0.0, 0.75), (0.125, 0.25), (0.5, 0.625)], 0.75),
        ([(0.0, 0.75), (0.125, 0.25), (0.5, 0.875)], 0.875),
        ([(0.25, 0.5), (0.25, 0.5)], 0.25),
        ([(0.0, 0.5), (0.5, 1.0)], 1.0),
    ],
)
def test_who_is_asked_by_several_shares_is_counted_once(intervals: list[tuple[float, float]], length: float) -> None:
    shares = [Share(PublicRng.from_seed(1), part, *ends) for part, ends in enumerate(intervals)]
    for order in permutations(shares):
        assert union_length(order) == length
