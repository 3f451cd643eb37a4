"""Threads and clocks, without a network: parties that come late, that come twice, that never come back, and a
coordinator whose disk is full."""

from __future__ import annotations

import time
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cloister.federated.protocol.coordinator import CLOSED
from cloister.federated.protocol.messages import Kind, Reason, Rejected
from cloister.federated.protocol.party import ANSWERED
from cloister.federated.transport import service as desk
from tests.federated.federated_session import NAMES, Full, Keys
from tests.federated.pooling import HOUR, Clock, Run, in_thread, ledger, said, service
from tests.waiting import until

pytestmark = pytest.mark.thorough


def test_three_parties_get_the_curators_centres_and_the_log_shows_who_has_sent_what_and_no_value() -> None:
    keys, log = Keys(), list[dict[str, Any]]()
    here = service(keys, log=log.append)
    run = Run(keys, here)
    for i, name in enumerate(NAMES):
        run.start(i)
        until(lambda name=name: any(e["event"] == "hello" and e["party"] == name for e in log))
    run.end()
    run.check()
    assert here.finished(idle=1)
    assert {e["event"] for e in log} == {"hello", "vector", "answered"}
    allowed = {"event", "party", "round", "attempt", "bytes", "body", "here", "missing"}
    assert all(set(e) <= allowed and all(isinstance(v, (int, str)) for v in e.values()) for e in log)
    heard = [(e["party"], e["here"], e["missing"]) for e in log if e["event"] == "hello"]
    assert heard == [("north", 1, "south, west"), ("south", 2, "west"), ("west", 3, "")]
    assert sorted((e["round"], e["here"]) for e in log if e["event"] == "vector") == [*product(range(4), (1, 2, 3))]
    assert [e["round"] for e in log if e["event"] == "answered"] == [0, 1, 2, 3]


def test_strangers_of_any_names_and_a_party_that_goes_on_being_refused_fill_no_log() -> None:
    log, keys = list[dict[str, Any]](), Keys()
    here, wrong = service(keys, log=log.append), Keys(plan="other").party(0).hello()
    for i in range(3 * desk.MOST_REFUSALS):
        here.handle(f"stranger {i}", wrong)
        here.handle("north", wrong)
    assert [entry["event"] for entry in log] == 2 * desk.MOST_REFUSALS * ["refused"]
    *_, stranger, north = (entry["why"] for entry in log)
    assert stranger.endswith(". No further refusal of strangers is logged")
    assert north.endswith(". No further refusal of north is logged")


def test_a_party_that_comes_and_goes_holds_one_call_at_a_time() -> None:
    keys = Keys()
    here, hello = service(keys), keys.party(0).hello()
    calls = [in_thread(lambda: here.handle("north", hello)) for _ in range(20)]
    until(lambda: sum(call.done() for call in calls) == 19)  # the last one waits for the others to join
    assert {call.result()[5] for call in calls if call.done()} == {Kind.REFUSAL}
    here.handle("nobody", hello)  # whoever is refused takes nobody's place
    assert sum(call.done() for call in calls) == 19


def test_a_party_that_is_late_for_an_attempt_takes_part_in_the_next() -> None:
    keys = Keys()
    log = list[dict[str, Any]]()
    here = service(keys, timeout=0.3, attempts=50, log=log.append)
    run = Run(keys, here)

    def slow(data: bytes) -> None:
        if data[5] == Kind.VECTOR and data[40] == 1 and data[44] == 0:
            time.sleep(0.8)

    run.lines[0].before = slow
    run.start_all()
    run.end()
    run.check()
    assert {e["missing"] for e in log if e["event"] == "given up"} >= {"north"}


def test_a_party_that_never_comes_back_ends_the_session_in_time_with_its_name_and_the_ledgers_say_what_was_spent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys, clock, log = Keys(), Clock(monkeypatch), list[dict[str, Any]]()
    here = service(keys, timeout=HOUR, attempts=2, log=log.append)
    run = Run(keys, here)
    ledgers = [ledger(tmp_path / f"{name}.db") for name in NAMES]
    run.west_dies(*(account for _, account in ledgers))
    clock.run(here, run)
    for name in NAMES[:2]:
        with pytest.raises(Rejected, match="west did not send") as error:
            run.parties[name].result()
        assert (error.value.reason, error.value.party) == (Reason.TIMEOUT, "west")
    for kept, _ in ledgers:
        (spent,) = kept.runs()
        assert (spent.state, spent.epsilon, spent.rounds) == ("open", 1.0, 3)
    with pytest.raises(Rejected, match="west"):
        here.finished(idle=0.1)
    given_up = [(e["round"], e["attempt"], e["missing"]) for e in log if e["event"] == "given up"]
    assert given_up == [(2, 0, "west"), (2, 1, "west")]


def test_a_coordinator_whose_journal_cannot_be_written_tells_everybody_and_answers_nothing() -> None:
    keys = Keys()
    here = service(keys, Full(CLOSED))
    run = Run(keys, here)
    run.start_all()
    run.end()
    assert set(run.errors) == set(NAMES)
    assert all("no space left" in str(error) for error in run.errors.values())
    memories = [journal.entries for journal in run.journals]
    assert all(entries and ANSWERED not in dict(entries) for entries in memories)
    with pytest.raises(Rejected, match="had to stop"):
        here.finished(idle=0.1)


def test_a_stranger_who_goes_on_calling_keeps_nobody_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """She has a certificate of the same authority, and is in no plan: that she is heard of says nothing of parties."""
    now = [0.0]
    monkeypatch.setattr(desk, "time", SimpleNamespace(monotonic=lambda: now[0]))
    here = service(Keys())
    now[0] = 2 * HOUR
    assert said(here.handle("stranger", b"here I am")).reason is Reason.UNKNOWN_PARTY
    assert here._silent_for(HOUR)
    here.handle("north", b"here I am")
    assert not here._silent_for(HOUR)
