"""Client bundles: they follow from the plan to the byte, anything else is refused, and a crash leaves whole ones."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, final

import attrs
import pytest

from cloister.accounting.composition import Spent
from cloister.accounting.privacy_target import PrivacyTarget
from cloister.collection.plan import bundle_folder
from cloister.collection.plan.bundle import Bundle, bundle_of, check_addable
from cloister.collection.plan.plan import CollectionPlan, read
from cloister.collection.plan.publish import words
from cloister.core.budget import Budget, Event, Share
from cloister.core.errors import Damaged, Refused
from cloister.core.randomness import PublicRng
from tests.collection import rounds_fakes
from tests.collection.plans import local_plan
from tests.collection.shuffled_plans import FEW, MIXED, small_plan
from tests.in_process import ran


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
    bundle_folder.write(planned(name), tmp_path / "plan", "")
    found, made = Bundle.read(tmp_path / "plan", 1), bundle_of(read(tmp_path / "plan"))
    assert (found.content, found.arrays) == (made.content, made.arrays)
    integers = list[int]()
    facts = json.loads(made.content, parse_int=lambda text: integers.append(int(text)) or int(text))
    assert max(map(abs, integers)) <= 2**53
    assert made.content == laid(facts).encode("ascii")


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


def laid(facts: dict[str, Any]) -> str:
    """A bundle's JSON."""
    return json.dumps(facts, sort_keys=True, separators=(",", ":")) + "\n"


OTHERS = {"words": [], "epsilon": 0.5, "questions": [], "domain": {}, "head": "00" * 32, "warnings": ["none"]}


@pytest.mark.parametrize("name", OTHERS)
def test_a_bundle_that_says_anything_else_than_its_plan_is_refused(name: str, folder: Path) -> None:
    path = folder / "bundle-1.json"
    path.write_text(laid(json.loads(path.read_text()) | {name: OTHERS[name]}))
    with pytest.raises(Damaged, match=f"does not follow from this plan, in: {name}. Make it again"):
        Bundle.read(folder, 1).check(folder)


def test_arrays_that_were_changed_are_refused(folder: Path) -> None:
    path = folder / "bundle-1.bin"
    content = path.read_bytes()
    for other in (content + b"\0", bytes([content[0] ^ 1]) + content[1:]):
        path.write_bytes(other)
        with pytest.raises(Damaged, match=r"bundle-1\.bin beside it belongs to another one"):
            Bundle.read(folder, 1)


def test_what_is_no_bundle_is_refused_in_one_line(folder: Path) -> None:
    path, whole = folder / "bundle-1.json", bundled("local").content
    facts, none = json.loads(whole), "is no bundle of cloister, or it is damaged"
    texts = dict.fromkeys(("null", "[" * 100_000, whole[:-5].decode(), '{"bundle":1}'), none)
    texts |= {laid(facts | {"bundle": 2}): "format 2", laid(facts | {"round": 2}): "bundle of round 2"}
    for text, said in texts.items():
        path.write_text(text)
        with pytest.raises(Damaged, match=said) as error:
            Bundle.read(folder, 1)
        assert "\n" not in str(error.value)


SMALL = Event("small", Budget("zcdp", 0.5 * 0.01**2), pure=0.01)
HALVES = [
    Event("half", Budget("pure", 1.0, Share(PublicRng.from_seed(1), part, part / 2, (part + 1) / 2))) for part in (0, 1)
]
UNADDABLE: dict[str, tuple[float, list[Event], str]] = {
    "each is little, all of them are not": (0.6, [SMALL] * 100, r"epsilon = 1 and delta = 0, above the plan's 0\.6"),
    "noise without an epsilon": (1.0, [Event("wide", Budget("zcdp", 1e-9))], "has no pure epsilon"),
    "too much delta": (1.0, [Event("rare", Budget("pure", 0.1), delta=2e-6)], r"delta = 2e-06, above"),
    "two questions to one half": (1.0, HALVES[:1] * 2, "add up to epsilon = 2"),
}


@pytest.mark.parametrize(("epsilon", "events", "said"), UNADDABLE.values(), ids=UNADDABLE)
def test_what_a_device_cannot_add_up_has_no_bundle(epsilon: float, events: list[Event], said: str) -> None:
    """A third party's method in rho: its plan is within its total, and devices would refuse it for their sum."""
    with pytest.raises(Refused, match=said):
        check_addable(PrivacyTarget(epsilon, 1e-6), events)


def test_people_who_are_divided_over_questions_add_up_only_what_one_of_them_answers() -> None:
    check_addable(PrivacyTarget(1.0, 0.0), HALVES)
    assert Spent.on([SMALL] * 100).epsilon(1e-6) < 0.6
    check_addable(PrivacyTarget(0.6, 1e-6), [SMALL] * 60)


@final
@attrs.frozen
class Stranger:
    """The channel of a plugin's oracle from before there were bundles."""

    inner: Any

    def __getattr__(self, name: str) -> Any:
        if name == "bundled":
            raise AttributeError(name)
        return getattr(self.inner, name)


def test_a_plan_whose_questions_come_to_more_than_its_total_has_no_bundle(monkeypatch: pytest.MonkeyPatch) -> None:
    rounds = planned("local").rounds()
    monkeypatch.setattr(CollectionPlan, "rounds", lambda self: rounds * 2)
    with pytest.raises(Refused, match="add up to epsilon = 4 and delta = 0, above the plan's 2 and 0"):
        bundle_of(planned("local"))


def test_a_plan_with_a_component_that_says_nothing_of_itself_has_no_bundle_and_warns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan, round = planned("local"), planned("local").round()
    parts = tuple(attrs.evolve(part, channel=Stranger(part.channel)) for part in round.parts)
    strange = attrs.evolve(round, parts=parts)
    assert "no bundle" not in words(plan, plan.rounds())
    monkeypatch.setattr(CollectionPlan, "round", lambda self, record=None: strange)
    bundle_folder.write(plan, tmp_path / "plan", words(plan, plan.rounds()))
    assert sorted(path.name for path in (tmp_path / "plan").iterdir()) == ["README.txt", "plan.json"]
    said = "WARNING: there is no bundle for devices without Python: Stranger cannot be described"
    assert said in (tmp_path / "plan" / "README.txt").read_text()
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
    for missing in (["bundle-2.json"], list(whole)):
        for name in missing:
            (second / name).unlink()
        bundle_folder.make(second)
        assert bundles_in(second) == whole
    for name in whole:
        (second / name).unlink()
    bundle_folder.make(second, tmp_path / "apart" / "deep")
    assert bundles_in(tmp_path / "apart" / "deep") == whole
    assert not bundles_in(second)
    assert [one.round for one in bundle_folder.check(second, tmp_path / "apart" / "deep")] == [1, 2]


def test_a_file_that_differs_is_never_written_over(second: Path) -> None:
    (second / "bundle-2.json").unlink()
    (second / "bundle-1.bin").write_bytes(b"")
    with pytest.raises(Damaged, match=r"bundle-1\.bin does not follow from this plan: nothing was made"):
        bundle_folder.make(second)
    assert (second / "bundle-1.bin").read_bytes() == b""
    assert not (second / "bundle-2.json").exists()


def test_the_command_makes_and_checks(second: Path) -> None:
    whole = bundles_in(second)
    (second / "bundle-2.json").unlink()
    made = ran("bundle plan --json", second.parent)
    assert Bundle.read(second, 2).sha256 in made.stdout
    assert bundles_in(second) == whole
    assert ran("bundle plan --check", second.parent).stdout.count("is what the plan says") == 2
