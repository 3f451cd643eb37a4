"""Client bundles: they follow from the plan to the byte, anything else is refused, and a crash leaves whole ones."""

from __future__ import annotations

import hashlib
import json
import shutil
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
from cloister.collection.plan.canonical_json import laid_out, with_hash
from cloister.collection.plan.plan import CollectionPlan, read
from cloister.collection.plan.publish import words
from cloister.collection.plan.transcript import Transcript
from cloister.core.budget import Budget, Event, Share
from cloister.core.errors import Damaged, InvalidInput, Refused
from cloister.core.questions import Round
from cloister.core.randomness import PublicRng
from tests.collection import rounds_fakes
from tests.collection.plans import local_plan
from tests.collection.shuffled_plans import FEW, MIXED, small_plan
from tests.in_process import cloister


def local(**changes: Any) -> CollectionPlan:
    return local_plan(8, **{"k": 4, "rows": 100_000, **changes})


PLANS: dict[str, Callable[[], CollectionPlan]] = {
    "local": local,
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


@pytest.fixture(scope="module")
def closed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A plan's folder with one of three rounds closed."""
    return rounds_fakes.up_to(tmp_path_factory.mktemp("closed"), rounds_fakes.planned(), 1) / "plan"


@pytest.fixture
def second(closed: Path, tmp_path: Path) -> Path:
    """A folder of its own, whose second round is open."""
    return Path(shutil.copytree(closed, tmp_path / "plan"))


def bundles_in(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.glob("bundle-*")}


def test_bundles_that_a_crash_left_out_are_made_and_are_the_same_beside_the_plan_or_apart(
    second: Path, tmp_path: Path
) -> None:
    whole = bundles_in(second)
    assert len(whole) == 4
    for missing in ([], ["bundle-2.json"], ["bundle-2.bin", "bundle-2.json"], list(whole)):
        for name in missing:
            (second / name).unlink()
        bundle.make(second)
        assert bundles_in(second) == whole
    assert not list(second.glob("*.tmp"))
    for name in whole:
        (second / name).unlink()
    bundle.make(second, tmp_path / "apart" / "deep")
    assert bundles_in(tmp_path / "apart" / "deep") == whole
    assert not bundles_in(second)
    assert [one.round for one in bundle.check(second, tmp_path / "apart" / "deep")] == [1, 2]


def test_a_file_that_differs_is_never_written_over(second: Path) -> None:
    (second / "bundle-2.json").unlink()
    (second / "bundle-1.bin").write_bytes(b"")
    with pytest.raises(Damaged, match=r"bundle-1\.bin is not what this plan says: nothing was made"):
        bundle.make(second)
    assert (second / "bundle-1.bin").read_bytes() == b""
    assert not (second / "bundle-2.json").exists()


def test_other_answers_of_a_closed_round_have_another_bundle(second: Path) -> None:
    """Of a publisher who shows people different answers."""
    transcript = Transcript.read(second)
    facts = transcript.closed[0]._facts() | {"reports": {**transcript.closed[0].reports, "accepted": 1}}
    (second / "round-1.json").write_text(laid_out(with_hash(facts)) + "\n")
    with pytest.raises(Damaged, match="in: head"):
        bundle.check(second)


def test_a_full_disk_leaves_no_half_of_a_bundle(second: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in bundles_in(second):
        (second / name).unlink()
    before = sorted(second.iterdir())

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(InvalidInput, match="No space left"):
        bundle.make(second)
    assert sorted(second.iterdir()) == before


def test_the_command_makes_and_checks(second: Path) -> None:
    whole = bundles_in(second)
    (second / "bundle-2.json").unlink()
    failed = cloister("bundle", str(second), "--check")
    assert (failed.returncode, "cannot read the bundle" in failed.stderr) == (2, True)
    made = cloister("bundle", str(second), "--json")
    assert Bundle.read(second, 2).sha256 in made.stdout
    assert bundles_in(second) == whole
    said = cloister("bundle", str(second), "--check")
    assert (said.returncode, said.stdout.count("is what the plan says")) == (0, 2)
