"""Client bundles: they follow from the plan to the byte, and anything else is refused."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, final

import attrs
import pytest

from cloister.accounting.composition import Spent
from cloister.accounting.total import Total
from cloister.collection.plan import bundle
from cloister.collection.plan.bundle import Bundle, addable, bundle_of
from cloister.collection.plan.costs import sent_bytes
from cloister.collection.plan.plan import CollectionPlan, read
from cloister.collection.plan.publish import publish, words
from cloister.collection.wire.answers import layout_of
from cloister.core.budget import Budget, Event, Share
from cloister.core.errors import Damaged, InvalidInput, Refused
from cloister.core.randomness import PublicRng
from cloister.run.request import Request
from tests.collection.shuffled_plans import small_plan


def local(**changes: Any) -> CollectionPlan:
    given = {"k": 4, "method": "one-round", "epsilon": 2.0, "bounds": "ball:1", "rows": 100_000, "seed": 5, **changes}
    return publish(Request(**given), dimension=8)


PLANS: dict[str, Callable[[], CollectionPlan]] = {
    "local": local,
    "grid": lambda: local(bounds="-1:2"),
    "lsh": lambda: local(method="one-round-lsh", delta=1e-6),
    "privunit": lambda: local(options={"sums.randomiser": "privunit"}),
    "subsets": lambda: local(components={"counts": "subset-selection"}),
    "tree": lambda: local(method="tree-means", trust="local"),
    "shuffled": small_plan,
    "everybody": lambda: small_plan(
        components={"counts": "blanket-histogram", "sums": "split-and-mix"}, options={"share": "budget"}
    ),
}


@pytest.fixture(params=PLANS)
def plan(request: pytest.FixtureRequest) -> CollectionPlan:
    return PLANS[request.param]()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = local()
    bundle.write(made, tmp_path / "plan", words(made, made.rounds()))
    return tmp_path / "plan"


def test_a_bundle_is_made_with_its_plan_and_is_the_same_bytes_for_every_reader(
    plan: CollectionPlan, tmp_path: Path
) -> None:
    bundle.write(plan, tmp_path / "plan", "")
    found, made = Bundle.read(tmp_path / "plan", 1), bundle_of(read(tmp_path / "plan"))
    assert (found.content, found.arrays) == (made.content, made.arrays)
    assert found.sha256 == hashlib.sha256((tmp_path / "plan" / "bundle-1.json").read_bytes()).hexdigest()
    found.check(tmp_path / "plan")


def test_its_text_is_canonical_and_ascii(plan: CollectionPlan) -> None:
    content, arrays = bundle_of(plan).content, bundle_of(plan).arrays
    facts = json.loads(content)
    assert content == json.dumps(facts, sort_keys=True, separators=(",", ":")).encode("ascii") + b"\n"
    assert facts["arrays"] == {"bytes": len(arrays), "sha256": hashlib.sha256(arrays).hexdigest()}


def test_no_integer_of_it_is_beyond_what_every_reader_of_json_holds(plan: CollectionPlan) -> None:
    def seen(value: Any) -> list[int]:
        if isinstance(value, dict):
            return [one for inner in value.values() for one in seen(inner)]
        if isinstance(value, list):
            return [one for inner in value for one in seen(inner)]
        return [value] if isinstance(value, int) else []

    assert max(map(abs, seen(json.loads(bundle_of(plan).content)))) <= 2**53


def test_it_says_what_the_plan_promises_and_how_long_an_answer_is(plan: CollectionPlan) -> None:
    facts, round, page = bundle_of(plan).as_dict(), plan.round(), words(plan, plan.rounds())
    assert (facts["plan"], facts["head"], facts["round"], facts["rounds"]) == (plan.hash, plan.hash, 1, plan.length)
    assert (facts["epsilon"], facts["delta"]) == (plan.total.epsilon, plan.total.delta)
    assert all(f"  {line}\n" in page for line in facts["words"])
    layout = layout_of(round)
    assert sent_bytes(round) == 18 + facts["answer_bytes"]
    assert f"{sent_bytes(round):,} bytes" in page
    assert facts["answer_bytes"] == layout.bytes == sum(one["bytes"] for one in facts["drawings"])
    assert sorted(j for one in facts["drawings"] for j in one["questions"]) == list(range(len(round.parts)))
    assert [one["body_bytes"] for one in facts["questions"]] == [body.bytes for body in layout.bodies]


def test_a_share_of_the_users_is_the_same_in_whole_numbers() -> None:
    """Also for those whose hash is at a share's very ends."""
    plan = local()
    ends = [one["share"][name] for one in bundle_of(plan).as_dict()["questions"] for name in ("from", "to")]
    for part, one in zip(plan.round().parts, bundle_of(plan).as_dict()["questions"], strict=True):
        share = part.user_share
        assert share is not None
        assert one["share"]["key"] == share.rng.key[:16].hex()
        for high in (end + i for end in ends for i in (-1, 0, 1) if 0 <= end + i < 2**53):
            u = high * 2.0**-53
            assert (share.low <= u < share.high) == (one["share"]["from"] <= high < one["share"]["to"])


def test_a_question_says_what_its_answer_costs_with_and_without_a_shuffler() -> None:
    for one in bundle_of(local()).as_dict()["questions"]:
        assert (one["epsilon"], one["alone"], one["delta"]) == (2.0, 2.0, 0.0)
    shuffled = PLANS["shuffled"]()
    assert shuffled.crowd is not None
    for one in bundle_of(shuffled).as_dict()["questions"]:
        assert (one["epsilon"], one["delta"]) == (1.0, 1e-6)
        assert 1.0 < one["alone"] <= shuffled.crowd.epsilon_without_shuffler
    for one in bundle_of(PLANS["everybody"]()).as_dict()["questions"]:
        assert one["alone"] is None
        assert 0 < one["epsilon"] < 1.0
        assert 0 < one["delta"] < 1e-6


@pytest.mark.parametrize("name", ["words", "epsilon", "questions", "domain", "head", "warnings"])
def test_a_bundle_that_says_anything_else_than_its_plan_is_refused(name: str, folder: Path) -> None:
    path = folder / "bundle-1.json"
    facts = json.loads(path.read_text())
    changed = {
        "words": [],
        "epsilon": 0.5,
        "questions": facts["questions"][:1],
        "warnings": ["none"],
        "head": "00" * 32,
        "domain": {**facts["domain"], "unit": 0.5},
    }
    facts[name] = changed[name]
    path.write_text(json.dumps(facts, sort_keys=True, separators=(",", ":")) + "\n")
    with pytest.raises(Damaged, match=f"is not what this plan says, in: {name}. Make it again"):
        Bundle.read(folder, 1).check(folder)


def test_another_layout_of_the_same_facts_is_refused_too(folder: Path) -> None:
    path = folder / "bundle-1.json"
    path.write_text(json.dumps(json.loads(path.read_text())))
    with pytest.raises(Damaged, match="is not what this plan says"):
        Bundle.read(folder, 1).check(folder)


def test_the_bundle_of_another_plan_is_refused(folder: Path) -> None:
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
    path, whole = folder / "bundle-1.json", (folder / "bundle-1.json").read_bytes()
    newer, second = json.loads(whole), json.loads(whole)
    newer["bundle"], second["round"] = 2, 2
    texts = {json.dumps(newer): "format 2", json.dumps(second): "bundle of round 2"}
    for text in ("", "null", "[]", "{}", "[" * 100_000, whole[:-5].decode(), '{"bundle":1}', *texts):
        path.write_text(text)
        with pytest.raises(Damaged, match=texts.get(text, "is no bundle of cloister, or it is damaged")) as error:
            Bundle.read(folder, 1)
        assert "\n" not in str(error.value)
    path.unlink()
    with pytest.raises(InvalidInput, match="cannot read the bundle"):
        Bundle.read(folder, 1)


def test_there_is_no_bundle_of_a_round_that_is_not_asked_yet(folder: Path) -> None:
    for number in (0, 2):
        with pytest.raises(Refused, match="the open one is 1"):
            bundle_of(folder, number)


def test_what_an_accountant_shows_but_a_device_cannot_add_up_has_no_bundle() -> None:
    """A third party's method in rho: its plan is within its total, and devices would refuse it for their sum."""
    total, rho = Total(0.6, 1e-6), Budget("zcdp", 0.5 * 0.01**2)
    events = [Event("small", rho, pure=0.01) for _ in range(100)]
    assert Spent.on(events).epsilon(total.delta) < total.epsilon
    with pytest.raises(Refused, match=r"one person answers add up to epsilon = 1 and delta = 0, above the plan's 0\.6"):
        addable(total, events)
    addable(total, events[:60])


def test_noise_without_an_epsilon_of_its_own_has_no_bundle_for_one_person_alone() -> None:
    with pytest.raises(Refused, match="has no epsilon of its own"):
        addable(Total(1.0, 1e-6), [Event("wide", Budget("zcdp", 1e-9))])
    with pytest.raises(Refused, match=r"delta = 2e-06, above"):
        addable(Total(1.0, 1e-6), [Event("rare", Budget("pure", 0.1), delta=2e-6)])


def test_people_who_are_divided_over_questions_add_up_only_what_one_of_them_answers() -> None:
    key = PublicRng.from_seed(1)
    halves = [Budget("pure", 1.0, Share(key, part, part / 2, (part + 1) / 2)) for part in (0, 1)]
    addable(Total(1.0, 0.0), [Event("half", budget) for budget in halves])
    with pytest.raises(Refused, match="add up to epsilon = 2"):
        addable(Total(1.0, 0.0), [Event("half", halves[0])] * 2)


def test_a_plan_whose_questions_come_to_more_than_its_total_has_no_bundle(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = local()
    twice = tuple(attrs.evolve(one, parts=tuple(map(_dear, one.parts))) for one in plan.rounds())
    monkeypatch.setattr(CollectionPlan, "rounds", lambda self: twice)
    with pytest.raises(Refused, match="add up to epsilon = 4 and delta = 0, above the plan's 2 and 0"):
        bundle_of(plan)


def _dear(part: Any) -> Any:
    """The question, answered by a channel that costs twice as much."""
    return attrs.evolve(part, channel=Dear(part.channel))


@final
@attrs.frozen
class Dear:
    """Args: inner (a channel)."""

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


def test_a_plan_with_a_component_that_says_nothing_of_itself_has_no_bundle_and_warns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All else of the plan is as ever."""
    plan, derived = local(), CollectionPlan.round
    bundle.write(plan, tmp_path / "whole", words(plan, plan.rounds()))

    def strange(self: CollectionPlan, record: Any = None) -> Any:
        found = derived(self, record)
        return attrs.evolve(
            found, parts=tuple(attrs.evolve(part, channel=Stranger(part.channel)) for part in found.parts)
        )

    monkeypatch.setattr(CollectionPlan, "round", strange)
    bundle.write(plan, tmp_path / "plan", words(plan, plan.rounds()))
    assert sorted(path.name for path in (tmp_path / "plan").iterdir()) == ["README.txt", "plan.json"]
    assert (tmp_path / "plan" / "plan.json").read_bytes() == (tmp_path / "whole" / "plan.json").read_bytes()
    said = "WARNING: there is no bundle for devices that run no Python: Stranger cannot be described"
    assert said in (tmp_path / "plan" / "README.txt").read_text()
    assert "no bundle" not in (tmp_path / "whole" / "README.txt").read_text()
    with pytest.raises(Refused, match="ask the author of its plugin"):
        bundle_of(plan)
