"""A publisher who lies: nobody answers a changed plan, changed answers, another round or a dearer one, and nobody pays
more for it."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pytest

from cloister.collection.client.encoder import State, encode, transcript_of
from cloister.collection.plan.canonical_json import hash_of, pretty_json
from cloister.collection.plan.plan import CollectionPlan
from cloister.collection.plan.transcript import Transcript
from cloister.core.budget import Budget, Event
from cloister.core.errors import CloisterError, Damaged, InvalidInput, Refused
from cloister.core.questions import Round
from cloister.core.record import Lookup
from tests.collection.rounds_fakes import (
    EPSILON,
    ROUNDS,
    ROWS,
    USERS,
    N,
    advanced,
    answered,
    lied,
    planned,
    up_to,
)


@pytest.fixture(scope="module")
def plan() -> CollectionPlan:
    return planned()


@pytest.fixture(scope="module")
def two_closed(tmp_path_factory: pytest.TempPathFactory, plan: CollectionPlan) -> Path:
    return up_to(tmp_path_factory.mktemp("closed"), plan, 2)


@pytest.fixture
def folder(tmp_path: Path, two_closed: Path) -> Path:
    """Two rounds are closed, everybody has answered them."""
    return Path(shutil.copytree(two_closed, tmp_path / "all"))


def test_any_byte_that_is_changed_is_refused_or_says_the_same(folder: Path) -> None:
    """Of the plan file another layout of the same facts is the same plan; of answers there is one layout."""
    place, rng = folder / "plan", np.random.default_rng(7)
    true = Transcript.read(place)
    for name in ("plan.json", "round-1.json", "round-2.json"):
        path, content = place / name, (place / name).read_bytes()
        for position in rng.integers(0, len(content), 60).tolist():
            for change in (content[position] ^ int(rng.integers(1, 256)), content[position] ^ 1):
                path.write_bytes(content[:position] + bytes([change]) + content[position + 1 :])
                try:
                    found = Transcript.read(place)
                except CloisterError:
                    continue
                assert name == "plan.json"
                assert found.heads == true.heads
        path.write_bytes(content)
    assert Transcript.read(place).heads == true.heads


def resealed(path: Path, **changes: Any) -> None:
    """Change facts of answers, and seal them anew."""
    facts = json.loads(path.read_text())
    facts.pop("hash")
    facts.update(changes)
    path.write_text(pretty_json({**facts, "hash": hash_of(facts)}) + "\n")


@pytest.mark.parametrize(
    "changes",
    [
        {"plan": "00" * 32},
        {"previous": "00" * 32},
        {"round": 1},
        {"round": 3},
        {"digest": "00" * 32},
        {"next": None},
        {"format": 2},
        {"reports": {}},
        {"reports": {"accepted": "five"}},
        {"reports": {"accepted": -1}},
        {"looks": [{}]},
        {"looks": {}},
        {"more": 1},
        {"reports": {"accepted": 5}, "previous": "11" * 32},
    ],
)
def test_answers_that_do_not_fit_are_refused(folder: Path, changes: dict[str, Any]) -> None:
    resealed(folder / "plan" / "round-2.json", **changes)
    with pytest.raises(Damaged):
        Transcript.read(folder / "plan")


def test_a_gap_or_a_round_too_many_is_refused(folder: Path) -> None:
    answered(folder)
    advanced(folder)
    first, beyond = (folder / "plan" / f"round-{number}.json" for number in (1, ROUNDS + 1))
    shutil.copy(first, beyond)
    with pytest.raises(Damaged, match="do not belong to this plan"):
        Transcript.read(folder / "plan")
    beyond.unlink()
    first.unlink()
    with pytest.raises(Damaged, match="lacks the answers of a round before"):
        Transcript.read(folder / "plan")


@pytest.mark.parametrize("number", [1, 2])
def test_other_answers_than_before_get_no_report(folder: Path, plan: CollectionPlan, number: int) -> None:
    """The lie is perfect: every hash fits, and the round that it leads to is the method's. Whoever has seen nothing
    cannot know, and pays no more for it."""
    state, late = State(folder / "mine.state"), State(folder / "late.state")
    encode(folder / "plan", ROWS, USERS, state=state)  # she has seen both rounds' answers
    before = (folder / "mine.state").read_bytes()
    assert lied(folder, number, 1000.0).index == number
    with pytest.raises(Refused, match="has changed answers that were published before"):
        encode(folder / "plan", ROWS, USERS, state=state)
    assert state.spent(0) == EPSILON
    assert (folder / "mine.state").read_bytes() == before
    assert len(encode(folder / "plan", ROWS, USERS, state=late).users) == N
    assert late.spent(0) == EPSILON
    with closing(sqlite3.connect(folder / "mine.state", isolation_level=None)) as db:
        db.execute("update rounds set head = 'another' where number = 0")
    with pytest.raises(Refused, match="has changed answers that were published before"):
        encode(plan, ROWS, USERS, state=state)


def test_other_answers_of_an_earlier_round_get_no_report_of_a_later_one(folder: Path) -> None:
    """She answered two rounds and has not seen the third; the publisher changes the first, and closes the second with
    other people."""
    hers = (folder / "mine.state").rename(folder / "hers.state")
    lied(folder, 1, 1000.0)
    answered(folder)
    assert advanced(folder).transcript.index == 2
    with pytest.raises(Refused, match="has changed answers that were published before"):
        encode(folder / "plan", ROWS, USERS, state=hers)
    assert State(hers).spent(0) == EPSILON


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_answers_that_are_no_numbers_or_of_other_shapes_are_one_line(
    tmp_path: Path, plan: CollectionPlan, two_closed: Path
) -> None:
    true = Transcript.read(two_closed / "plan").closed[0]
    looks = true.lookups

    def alike(values: Callable[[Lookup], Any]) -> tuple[Lookup, ...]:
        return tuple(attrs.evolve(look, values=values(look)) for look in looks)

    wrong = [
        alike(lambda look: look.values * np.nan),
        alike(lambda look: np.full_like(look.values, np.inf)),
        alike(lambda look: np.zeros((len(look.ids), 7))),
        looks[:1],
        (),
        tuple(attrs.evolve(look, level=1) for look in looks),
    ]
    for false in wrong:
        answers = Transcript(plan).extended(attrs.evolve(true, lookups=false))
        with pytest.raises(Refused) as error:
            encode(answers, ROWS, USERS, state=tmp_path / "late.state")
        assert "\n" not in str(error.value)
    assert not (tmp_path / "late.state").exists()


def test_a_round_with_another_digest_gets_no_report(folder: Path) -> None:
    resealed(folder / "plan" / "round-2.json", next="00" * 32)
    with pytest.raises(Refused, match="round 2 is not the one that was opened"):
        encode(folder / "plan", ROWS, USERS, state=folder / "new.state")
    assert not (folder / "new.state").exists()


@pytest.mark.parametrize(
    "changes", [{"asked": 0.0}, {"asked": -1.0}, {"asked": float("1e999")}, {"events": [{}]}, {"events": [[]]}]
)
def test_a_schedule_that_makes_no_sense_is_no_plan(plan: CollectionPlan, changes: dict[str, Any]) -> None:
    facts = json.loads(json.dumps(plan.as_dict()))
    facts["rounds"][1].update(changes)
    with pytest.raises((ValueError, KeyError)):
        CollectionPlan.from_dict(facts)


def dearer(round: Round[Any]) -> tuple[Event, ...]:
    return tuple(Event(part.channel.events[0].mechanism, Budget("pure", 4.0)) for part in round.parts)


def test_a_round_that_costs_more_than_planned_gets_no_report(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    true = Round.events.fget  # type: ignore[attr-defined]
    monkeypatch.setattr(Round, "events", property(lambda round: dearer(round) if round.index == 2 else true(round)))
    with pytest.raises(Refused, match="the cost of its rounds comes out differently here"):
        encode(folder / "plan", ROWS, USERS, state=folder / "new.state")
    forecast = transcript_of(folder / "plan").plan
    monkeypatch.setattr(Round, "events", property(true))
    rounds = forecast.rounds()
    monkeypatch.setattr(CollectionPlan, "rounds", lambda plan: rounds)
    monkeypatch.setattr(
        Round, "events", property(lambda round: true(round) if any(round is one for one in rounds) else dearer(round))
    )
    with pytest.raises(Refused, match="asks for other events than its forecast"):
        encode(folder / "plan", ROWS, USERS, state=folder / "new.state")
    assert not (folder / "new.state").exists()


def test_a_plan_whose_schedule_was_changed_gets_no_report(tmp_path: Path, plan: CollectionPlan) -> None:
    first, *rest = plan.schedule
    cheap = attrs.evolve(first, events=tuple({**event, "amount": 0.1} for event in first.events))
    fewer = attrs.evolve(first, asked=0.5)
    for schedule in ((cheap, *rest), (fewer, *rest), plan.schedule[:2], (*plan.schedule, first), tuple(rest)):
        false = attrs.evolve(plan, schedule=schedule)
        with pytest.raises(Refused, match="the cost of its rounds comes out differently here"):
            encode(false, ROWS, USERS, state=tmp_path / "mine.state")
    assert not (tmp_path / "mine.state").exists()


def test_reports_of_another_versions_answers_do_not_count(folder: Path) -> None:
    """Those whom the lie reached first sent reports of another round: they are recognised."""
    place = folder / "plan"
    true = (place / "round-2.json").read_bytes()
    false = lied(folder, 2, 50.0)
    (folder / "mine.state").rename(folder / "kept.state")
    answered(folder)
    (place / "round-2.json").write_bytes(true)
    assert Transcript.read(place).head != false.head
    with pytest.raises(InvalidInput, match="refused 1 files or batches of reports that answer another plan"):
        advanced(folder)


def test_two_servers_publish_one_version(folder: Path) -> None:
    answered(folder)
    stale = Transcript.read(folder / "plan")
    done = advanced(folder).transcript
    (mine,) = done.closed[-1:]
    assert stale.publish(folder / "plan", mine).heads == done.heads
    with pytest.raises(Refused, match="has been closed with other reports"):
        stale.publish(folder / "plan", attrs.evolve(mine, reports={"accepted": 1}))
    assert Transcript.read(folder / "plan").heads == done.heads


@pytest.mark.parametrize("second", [0, 1])
def test_a_second_look_at_a_closed_round_is_refused(
    folder: Path, plan: CollectionPlan, monkeypatch: pytest.MonkeyPatch, second: int
) -> None:
    """Late reports would change what it shows: the reports of the round that is open are not looked at for it."""
    kind, closed = type(plan.compose().value), 2
    cluster = kind.cluster

    def curious(self: Any, problem: Any, session: Any, rng: Any) -> Any:
        asked, tables = session.ask, list[Any]()

        def ask(*questions: Any) -> Any:
            found = asked(*questions)
            tables.append(found)
            if len(tables) == closed + 1:
                tables[0][second].at(np.arange(3))  # after the next round was asked
            return found

        session.ask = ask
        return cluster(self, problem, session, rng)

    answered(folder)
    before = sorted((folder / "plan").iterdir())
    monkeypatch.setattr(kind, "cluster", curious)
    with pytest.raises(Refused, match="looks again at round 1, which is closed: all lookups in a round"):
        advanced(folder)
    monkeypatch.undo()
    assert sorted((folder / "plan").iterdir()) == before
    assert advanced(folder).transcript.index == closed + 1
