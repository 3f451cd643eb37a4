"""Published plans: what is read is what was written, and anything else is refused in one line."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from cloister.collection.client.encoder import PlanEncoder
from cloister.collection.plan.canonical_json import hash_of
from cloister.collection.plan.plan import FILE, WORDS, CollectionPlan, read
from cloister.collection.plan.publish import publish, words
from cloister.core.errors import CloisterError, Damaged, InvalidInput, Refused, UnknownName
from cloister.core.registry.registry import built_in, registry
from cloister.run.request import Request
from tests.collection import rounds_fakes, shuffled_plans


def request(**changes: Any) -> Request:
    return Request(
        **{"k": 4, "method": "one-round", "epsilon": 2.0, "bounds": "ball:1", "rows": 100_000, "seed": 5, **changes}
    )


PLANS: dict[str, Callable[[], CollectionPlan]] = {
    "one-round": lambda: publish(request(), dimension=8),
    "grid": lambda: publish(request(bounds="0:2.5,-1:1e3"), columns=["age", "income"]),
    "lsh": lambda: publish(request(method="one-round-lsh", epsilon=0.7), dimension=5),
    "swapped": lambda: publish(
        request(components={"counts": "hadamard-response"}, options={"partitions": "3"}), dimension=8
    ),
    "lloyd": lambda: publish(
        request(
            method="fastlloyd",
            components={"counts": "optimised-local-hashing", "sums": "hadamard-vector"},
            options={"rounds": "1"},
        ),
        columns=["a", "b"],
    ),
}


@pytest.fixture(params=PLANS)
def plan(request: pytest.FixtureRequest) -> CollectionPlan:
    return PLANS[request.param]()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = PLANS["one-round"]()
    made.write(tmp_path / "plan", words(made, made.rounds()))
    return tmp_path / "plan"


@pytest.mark.parametrize("made", [*PLANS.values(), rounds_fakes.planned, shuffled_plans.small_plan])
def test_what_is_read_is_what_was_written(made: Callable[[], CollectionPlan], tmp_path: Path) -> None:
    plan = made()
    plan.write(tmp_path / "plan", "words")
    found = read(tmp_path / "plan")
    assert found.as_dict() == plan.as_dict()
    assert (found.hash, found.problem, found.seed) == (plan.hash, plan.problem, plan.seed)
    assert (found.schedule, found.crowd, found.trust) == (plan.schedule, plan.crowd, plan.trust)
    assert found.round().digest() == plan.round().digest() == plan.digest
    assert sorted(path.name for path in (tmp_path / "plan").iterdir()) == [WORDS, FILE]
    assert [path.name for path in tmp_path.iterdir()] == ["plan"]


def test_a_plan_is_made_the_same_from_the_same_seed_and_differently_from_a_fresh_one() -> None:
    assert PLANS["one-round"]().hash == PLANS["one-round"]().hash
    fresh = [publish(request(seed=None), dimension=8) for _ in range(2)]
    assert len({p.hash for p in fresh} | {p.digest for p in fresh}) == 4


def test_the_folder_says_in_words_what_is_promised(folder: Path) -> None:
    text, plan = (folder / WORDS).read_text(), read(folder)
    for part in (
        plan.hash,
        "epsilon = 2, Local trust",
        "replace one row",
        "100,000 people",
        "rows: v = 0.1 needs about",
    ):
        assert part in text


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    found = False
    for key, inner in items:
        found = True
        yield from leaves(inner, (*path, key))
    if not found:
        yield path


def flipped(value: Any) -> Any:
    if isinstance(value, bool):
        return not value
    if isinstance(value, (int, float)):
        return value + 1
    if isinstance(value, str):
        return value[:-1] + ("0" if value[-1:] != "0" else "1")
    return ["x"] if value is None or value == [] else None


def rewrite(folder: Path, change: Callable[[dict[str, Any]], None], sealed: bool = False) -> None:
    facts = json.loads((folder / FILE).read_text())
    change(facts)
    if sealed:
        facts["hash"] = hash_of({name: value for name, value in facts.items() if name != "hash"})
    (folder / FILE).write_text(json.dumps(facts))


def at(path: tuple[Any, ...], change: Callable[[Any], Any]) -> Callable[[dict[str, Any]], None]:
    def apply(facts: Any) -> None:
        for key in path[:-1]:
            facts = facts[key]
        facts[path[-1]] = change(facts[path[-1]])

    return apply


def test_a_plan_with_any_field_flipped_is_refused(folder: Path) -> None:
    original = (folder / FILE).read_text()
    every = list(leaves(json.loads(original)))
    assert len(every) > 40
    for path in every:
        (folder / FILE).write_text(original)
        rewrite(folder, at(path, flipped))
        with pytest.raises(Damaged) as error:
            read(folder)
        assert "\n" not in str(error.value), path
    for name in json.loads(original):
        (folder / FILE).write_text(original)
        rewrite(folder, lambda facts, name=name: facts.pop(name))  # type: ignore[misc]
        with pytest.raises(Damaged):
            read(folder)


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("digest",), "00" * 32, "another version"),
        (("seed",), "11" * 32, "another version"),
        (("epsilon",), 1.0, "another version"),
        (("problem", "rows"), 99_999, "does not fit together"),
        (("method", "slots", "counts", "name"), "hadamard-response", "another version"),
        (("method", "slots", "counts", "name"), "discrete-laplace", "is Local|Central"),
        (("method", "slots", "counts", "name"), "hadamard-respons", "did you mean hadamard-response"),
        (("method", "name"), "lloyd", "slot|NOT private"),
        (("method", "options", "partitions"), 99, "partitions"),
        (("method", "options", "partitions"), "os.system", "partitions"),
    ],
)
def test_a_plan_that_was_changed_and_sealed_anew_gets_no_report(
    folder: Path, path: tuple[str, ...], value: Any, message: str
) -> None:
    rewrite(folder, at(path, lambda _: value), sealed=True)
    with pytest.raises(CloisterError, match=message):
        PlanEncoder(read(folder))


def test_a_plan_whose_method_is_not_private_gets_no_report(folder: Path) -> None:
    exact = {"name": "exact", "options": {}, "slots": {}}
    rewrite(folder, at(("method", "slots", "counts"), lambda _: exact), sealed=True)
    with pytest.raises(CloisterError, match="Local"):
        PlanEncoder(read(folder))
    rewrite(folder, at(("method", "slots", "sums"), lambda _: exact), sealed=True)
    with pytest.raises(Refused, match=r"NOT private.*: nobody should send"):
        PlanEncoder(read(folder))


MALFORMED = {
    "empty": b"",
    "null": b"null",
    "list": b"[]",
    "text": b'"plan"',
    "number": b"7",
    "braces": b"{}",
    "cut": b'{"format": 1, "cloi',
    "binary": bytes(range(256)),
    "utf-16": '{"format": 1}'.encode("utf-16"),
    "nan": b'{"format": NaN}',
    "infinite": b'{"format": 1, "hash": 1e999}',
    "twice": b'{"format": 1, "format": 1}',
    "deep": b"[" * 100_000,
    "other format": b'{"format": 2, "hash": ""}',
    "long number": b'{"format": ' + b"9" * 5000 + b"}",
    "surrogate": b'{"format": 1, "hash": "\\ud800"}',
    "pickle": b"\x80\x04\x95.",
}


@pytest.mark.parametrize("content", MALFORMED.values(), ids=MALFORMED)
def test_a_malformed_plan_is_one_line(folder: Path, content: bytes) -> None:
    (folder / FILE).write_bytes(content)
    with pytest.raises(Damaged) as error:
        read(folder)
    assert "\n" not in str(error.value)


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-5, 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)


GRID = json.dumps(PLANS["grid"]().as_dict())


@settings(max_examples=300, deadline=None, derandomize=True)
@given(data=st.data())
def test_a_sealed_plan_of_nonsense_is_refused_or_whole(data: st.DataObject) -> None:
    facts = json.loads(GRID)
    nodes = [path[:depth] for path in leaves(facts) for depth in range(1, len(path) + 1)]
    at(data.draw(st.sampled_from(nodes)), lambda _: data.draw(JSON))(facts)
    facts["hash"] = hash_of({name: value for name, value in facts.items() if name != "hash"})
    try:
        found = CollectionPlan.from_dict(facts)
    except (CloisterError, ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError):
        return  # what ``read`` turns into one line
    assert found.hash == facts["hash"]


def test_no_plan_is_written_over_anything(folder: Path, tmp_path: Path) -> None:
    plan = read(folder)
    with pytest.raises(InvalidInput, match="is not empty"):
        plan.write(folder, "")
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidInput, match="it is a file"):
        plan.write(tmp_path / "file", "")
    (tmp_path / "empty").mkdir()
    plan.write(tmp_path / "empty", "")
    assert read(tmp_path / "empty").hash == plan.hash
    plan.write(tmp_path / "new" / "deep", "")
    assert read(tmp_path / "new" / "deep").hash == plan.hash


@pytest.mark.parametrize("file", [1, 2, 3])
def test_a_crash_while_writing_leaves_no_plan(
    file: int, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan, calls = read(folder), list[int]()

    def fail(descriptor: int) -> None:
        calls.append(descriptor)
        if len(calls) == file:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", fail)
    with pytest.raises(InvalidInput, match="No space left"):
        plan.write(tmp_path / "other", "words", {"bundle-1.json": b""})
    assert [path.name for path in tmp_path.iterdir()] == ["plan"]


def test_there_is_no_plan_where_there_is_none(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="cannot read the plan"):
        read(tmp_path)


@pytest.mark.parametrize(
    ("changes", "columns", "message"),
    [
        ({"method": "fastlloyd"}, ["a"], "a plan is answered by people who randomise their own rows"),
        ({"method": "lloyd"}, ["a"], "NOT private"),
        ({"method": "lloyd", "not_private": True}, ["a"], "NOT private: nobody can be asked"),
        ({"epsilon": 0}, ["a"], "epsilon is 0"),
        ({"epsilon": float("nan")}, ["a"], "epsilon is nan"),
        ({"rows": 2}, ["a"], "k is 4, but the public number of rows is 2"),
        ({"rows": 2**31 + 1}, ["a"], "public number of rows"),
        ({"rows": None}, ["a"], "no public number of rows"),
        ({"bounds": None}, ["a"], "no bounds"),
        ({"bounds": "0:1,0:1"}, ["a"], "bounds for 2 columns"),
        ({"bounds": "ball:nan"}, ["a"], "positive finite radius"),
        ({"options": {"partition": "2"}}, ["a"], "did you mean partitions"),
        ({}, ["a", "a"], "different ones"),
        ({}, ["a", ""], "columns must have names"),
        ({}, [], "columns must have names"),
        ({}, None, "either their names"),
        ({}, 0, "the dimension is 0"),
        ({}, 2**40, "the dimension is"),
    ],
)
def test_a_request_that_makes_no_plan_is_refused(changes: dict[str, Any], columns: Any, message: str) -> None:
    given = {"dimension": columns} if isinstance(columns, int) else {"columns": columns}
    with pytest.raises(CloisterError, match=message) as error:
        publish(request(**changes), **given)
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
    assert enough.outlook.excess == pytest.approx(enough.outlook.error / (1 + enough.outlook.error))


def test_a_large_epsilon_is_warned_of() -> None:
    assert publish(request(epsilon=8.0), dimension=4).warnings == ()
    assert "a report of epsilon = 9 hides little" in publish(request(epsilon=9.0), dimension=4).warnings[0]


def test_a_method_that_cannot_predict_has_no_outlook() -> None:
    plan = publish(request(method="naive-noise"), dimension=3)
    assert plan.outlook is None
    assert "cannot say beforehand" in words(plan, plan.rounds())


def test_bytes_per_user_are_what_is_sent(plan: CollectionPlan) -> None:
    encoder = PlanEncoder(plan)
    n = 20_000
    sent = encoder.encode(np.zeros((n, plan.dimension)), np.arange(n)).columns()
    users = sum(v.nbytes for name, v in sent.items() if name.endswith(".users"))
    answers = sum(v.nbytes for name, v in sent.items() if v.ndim == 2)
    assert answers / n == pytest.approx(plan.size.answers, rel=0.05)
    assert (sum(v.nbytes for v in sent.values()) - users - answers) / n == pytest.approx(plan.size.stamps, rel=0.05)


def test_the_light_registry_has_all_that_is_built_in() -> None:
    assert built_in().specs() == registry().plugins[0].specs or set(map(str, built_in().specs())) == set(
        map(str, registry().plugins[0].specs)
    )


def test_a_strangers_component_is_looked_for_in_all_that_is_installed(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = list[bool]()

    def everything() -> Any:
        asked.append(True)
        return built_in()

    monkeypatch.setattr("cloister.collection.plan.plan.registry", everything)
    read(folder).round()
    assert not asked
    rewrite(folder, at(("method", "slots", "tree", "name"), lambda _: "strange-tree"), sealed=True)
    with pytest.raises((UnknownName, InvalidInput), match="strange-tree"):
        read(folder).round()
    assert asked


def test_a_plan_scales_columns_as_a_fit_does_and_takes_them_from_bounds_that_name_them() -> None:
    bounds = {"age": (0.0, 1.0), "income": (0.0, 100.0)}
    asked = {"k": 3, "method": "one-round", "epsilon": 4.0, "bounds": bounds, "rows": 10**5, "zoom": "off", "seed": 1}
    made, raw = publish(Request(**asked)), publish(Request(**asked, scale="none"))  # type: ignore[arg-type]  # by name
    assert made.columns == raw.columns == ("age", "income")
    assert (made.method["name"], made.method["options"]["scale"]) == ("zoom", "bounds")
    assert raw.method["name"] == "one-round"
    assert "by one-round" in words(made, made.rounds())
    assert made.outlook is not None
    assert CollectionPlan.from_dict(made.as_dict()).hash == made.hash
