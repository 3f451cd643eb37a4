"""Client bundles: they follow from the plan to the byte, and anything else is refused."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, final

import attrs
import pytest

from cloister.accounting.composition import Spent
from cloister.accounting.total import Total
from cloister.collection.plan import bundle
from cloister.collection.plan.bundle import Bundle, addable, bundle_of
from cloister.collection.plan.plan import CollectionPlan, read
from cloister.collection.plan.publish import words
from cloister.core.budget import Budget, Event, Share
from cloister.core.errors import Damaged, InvalidInput, Refused
from cloister.core.questions import Round
from cloister.core.randomness import PublicRng
from tests.collection.plans import local_plan
from tests.collection.shuffled_plans import FEW, MIXED, small_plan


def local(**changes: Any) -> CollectionPlan:
    return local_plan(8, **{"k": 4, "rows": 100_000, **changes})


PLANS: dict[str, Callable[[], CollectionPlan]] = {
    "local": local,
    "lsh": lambda: local(method="one-round-lsh", delta=1e-6),
    "tree": lambda: local(method="tree-means", trust="local"),
    "shuffled": lambda: small_plan(rows=FEW),
    "everybody": lambda: small_plan(rows=FEW, **{**MIXED, "options": {"share": "budget"}}),
}


@cache
def planned(name: str) -> CollectionPlan:
    return PLANS[name]()


@cache
def bundled(name: str) -> Bundle:
    return bundle_of(planned(name))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    planned("local").write(tmp_path / "plan", "", bundled("local").files)
    return tmp_path / "plan"


@pytest.mark.parametrize("name", PLANS)
def test_a_bundle_is_made_with_its_plan_and_is_the_same_bytes_for_every_reader(name: str, tmp_path: Path) -> None:
    """Its text is canonical, of ASCII, and holds no integer beyond what every reader of JSON holds."""
    bundle.write(planned(name), tmp_path / "plan", "")
    found, made = Bundle.read(tmp_path / "plan", 1), bundle_of(read(tmp_path / "plan"))
    assert (found.content, found.arrays) == (made.content, made.arrays)
    assert found.sha256 == hashlib.sha256((tmp_path / "plan" / "bundle-1.json").read_bytes()).hexdigest()
    found.check(tmp_path / "plan")
    integers = list[int]()
    facts = json.loads(made.content, parse_int=lambda text: integers.append(int(text)) or int(text))
    assert max(map(abs, integers)) <= 2**53
    assert made.content == json.dumps(facts, sort_keys=True, separators=(",", ":")).encode("ascii") + b"\n"
    assert facts["arrays"] == {"bytes": len(made.arrays), "sha256": hashlib.sha256(made.arrays).hexdigest()}


def test_a_question_says_what_its_answer_costs_with_and_without_a_shuffler() -> None:
    for one in bundled("local").as_dict()["questions"]:
        assert (one["epsilon"], one["alone"], one["delta"]) == (2.0, 2.0, 0.0)
    crowd = planned("shuffled").crowd
    assert crowd is not None
    for one in bundled("shuffled").as_dict()["questions"]:
        assert (one["epsilon"], one["delta"]) == (1.0, 1e-6)
        assert 1.0 < one["alone"] <= crowd.epsilon_without_shuffler
    for one in bundled("everybody").as_dict()["questions"]:
        assert one["alone"] is None
        assert 0 < one["epsilon"] < 1.0
        assert 0 < one["delta"] < 1e-6


@pytest.mark.parametrize("name", ["words", "epsilon", "questions", "domain", "head", "warnings"])
def test_a_bundle_that_says_anything_else_than_its_plan_is_refused(name: str, folder: Path) -> None:
    path = folder / "bundle-1.json"
    facts = json.loads(path.read_text())
    facts[name] = {
        "words": [],
        "epsilon": 0.5,
        "questions": facts["questions"][:1],
        "warnings": ["none"],
        "head": "00" * 32,
        "domain": {**facts["domain"], "unit": 0.5},
    }[name]
    path.write_text(json.dumps(facts, sort_keys=True, separators=(",", ":")) + "\n")
    with pytest.raises(Damaged, match=f"is not what this plan says, in: {name}. Make it again"):
        Bundle.read(folder, 1).check(folder)


def test_another_layout_of_the_same_facts_and_another_plan_s_bundle_are_refused(folder: Path) -> None:
    path = folder / "bundle-1.json"
    path.write_text(json.dumps(json.loads(path.read_text())))
    with pytest.raises(Damaged, match="is not what this plan says"):
        Bundle.read(folder, 1).check(folder)
    with pytest.raises(Damaged, match=r"in: .*plan"):
        bundle_of(local(seed=6)).check(folder)


def test_arrays_that_were_changed_are_refused(folder: Path) -> None:
    path = folder / "bundle-1.bin"
    content = path.read_bytes()
    for other in (content[:-1], content + b"\0", b"", bytes([content[0] ^ 1]) + content[1:]):
        path.write_bytes(other)
        with pytest.raises(Damaged, match=r"bundle-1\.bin beside it is another one"):
            Bundle.read(folder, 1)


def test_what_is_no_bundle_is_refused_in_one_line(folder: Path) -> None:
    path, whole = folder / "bundle-1.json", bundled("local").content
    facts, none = json.loads(whole), "is no bundle of cloister, or it is damaged"
    texts = dict.fromkeys(("", "null", "[]", "{}", "[" * 100_000, whole[:-5].decode(), '{"bundle":1}'), none)
    texts |= {json.dumps(facts | {"bundle": 2}): "format 2", json.dumps(facts | {"round": 2}): "bundle of round 2"}
    for text, said in texts.items():
        path.write_text(text)
        with pytest.raises(Damaged, match=said) as error:
            Bundle.read(folder, 1)
        assert "\n" not in str(error.value)
    path.unlink()
    with pytest.raises(InvalidInput, match="cannot read the bundle"):
        Bundle.read(folder, 1)
    for number in (0, 2):
        with pytest.raises(Refused, match="the open one is 1"):
            bundle_of(folder, number)


RHO = Budget("zcdp", 0.5 * 0.01**2)
HALVES = [Budget("pure", 1.0, Share(PublicRng.from_seed(1), part, part / 2, (part + 1) / 2)) for part in (0, 1)]
UNADDABLE: dict[str, tuple[float, list[Event], str]] = {
    "each is little, all of them are not": (
        0.6,
        [Event("small", RHO, pure=0.01)] * 100,
        r"one person answers add up to epsilon = 1 and delta = 0, above the plan's 0\.6",
    ),
    "noise without an epsilon": (1.0, [Event("wide", Budget("zcdp", 1e-9))], "has no epsilon of its own"),
    "too much delta": (1.0, [Event("rare", Budget("pure", 0.1), delta=2e-6)], r"delta = 2e-06, above"),
    "two questions to one half": (1.0, [Event("half", HALVES[0])] * 2, "add up to epsilon = 2"),
}


@pytest.mark.parametrize(("epsilon", "events", "said"), UNADDABLE.values(), ids=UNADDABLE)
def test_what_a_device_cannot_add_up_has_no_bundle(epsilon: float, events: list[Event], said: str) -> None:
    """A third party's method in rho: its plan is within its total, and devices would refuse it for their sum."""
    with pytest.raises(Refused, match=said):
        addable(Total(epsilon, 1e-6), events)


def test_people_who_are_divided_over_questions_add_up_only_what_one_of_them_answers() -> None:
    addable(Total(1.0, 0.0), [Event("half", budget) for budget in HALVES])
    small = [Event("small", RHO, pure=0.01)]
    assert Spent.on(small * 100).epsilon(1e-6) < 0.6
    addable(Total(0.6, 1e-6), small * 60)


@final
@attrs.frozen
class Dear:
    """A channel that costs twice as much. Args: inner (a channel)."""

    inner: Any

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    @property
    def events(self) -> tuple[Event, ...]:
        """Everything twice."""
        return (*self.inner.events, *self.inner.events)


@final
@attrs.frozen
class Stranger:
    """The channel of a plugin's oracle from before there were bundles."""

    inner: Any

    def __getattr__(self, name: str) -> Any:
        if name == "bundled":
            raise AttributeError(name)
        return getattr(self.inner, name)


def answered_by(channel: Any, round: Round[Any]) -> Round[Any]:
    """The round, with other channels around its own."""
    return attrs.evolve(round, parts=tuple(attrs.evolve(one, channel=channel(one.channel)) for one in round.parts))


def test_a_plan_whose_questions_come_to_more_than_its_total_has_no_bundle(monkeypatch: pytest.MonkeyPatch) -> None:
    twice = tuple(answered_by(Dear, round) for round in planned("local").rounds())
    monkeypatch.setattr(CollectionPlan, "rounds", lambda self: twice)
    with pytest.raises(Refused, match="add up to epsilon = 4 and delta = 0, above the plan's 2 and 0"):
        bundle_of(planned("local"))


def test_a_plan_with_a_component_that_says_nothing_of_itself_has_no_bundle_and_warns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All else of the plan is as ever."""
    plan, strange = planned("local"), answered_by(Stranger, planned("local").round())
    bundle.write(plan, tmp_path / "whole", words(plan, plan.rounds()))
    monkeypatch.setattr(CollectionPlan, "round", lambda self, record=None: strange)
    bundle.write(plan, tmp_path / "plan", words(plan, plan.rounds()))
    assert sorted(path.name for path in (tmp_path / "plan").iterdir()) == ["README.txt", "plan.json"]
    assert (tmp_path / "plan" / "plan.json").read_bytes() == (tmp_path / "whole" / "plan.json").read_bytes()
    said = "WARNING: there is no bundle for devices that run no Python: Stranger cannot be described"
    assert said in (tmp_path / "plan" / "README.txt").read_text()
    assert "no bundle" not in (tmp_path / "whole" / "README.txt").read_text()
    with pytest.raises(Refused, match="ask the author of its plugin"):
        bundle_of(plan)
