"""Threads and clocks, without a network: parties that come late, that come twice, that never come back, and a
coordinator whose disk is full."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cloister.commands.coordinate import in_words
from cloister.core.errors import InvalidInput
from cloister.federated.protocol.coordinator import CLOSED
from cloister.federated.protocol.journal import Memory
from cloister.federated.protocol.messages import Kind, Reason, Rejected
from cloister.federated.transport import service as desk
from tests.federated.federated_session import NAMES, Keys
from tests.federated.pooling import HOUR, Clock, Killed, Run, kill_at, ledger, said, service
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
    assert {e["here"] for e in log if e["event"] == "vector"} == {1, 2, 3}
    shown = [in_words(e, 3, 4) for e in log]
    assert shown[:3] == [
        "north has joined (1 of 3); waiting for south, west",
        "south has joined (2 of 3); waiting for west",
        "west has joined (3 of 3)",
    ]
    first = [words for words in shown if words.startswith("round 1 of 4")]
    assert len(first) == 4
    assert first[0].partition(" has sent ")[2].startswith("(1 of 3); waiting for ")
    assert first[2].endswith("has sent (3 of 3)")
    assert first[3] == "round 1 of 4: answered"
    assert shown[-1] == "round 4 of 4: answered"


def test_who_is_refused_or_does_not_join_is_shown() -> None:
    keys, log = Keys(), list[dict[str, Any]]()
    refusal = said(service(keys, log=log.append).handle("north", Keys(plan="other").party(0).hello()))
    service(keys, patience=0.1, log=log.append).handle("north", keys.party(0).hello())
    shown = [in_words(e, 3, 4) for e in log]
    assert shown[0] == f"north was refused: {refusal}"
    assert "south, west did not join in time" in shown


def test_strangers_of_any_names_and_a_party_that_goes_on_being_refused_fill_no_log() -> None:
    log, keys = list[dict[str, Any]](), Keys()
    here, wrong = service(keys, log=log.append), Keys(plan="other").party(0).hello()
    for i in range(3 * desk.MOST_REFUSALS):
        here.handle(f"stranger {i}", wrong)
        here.handle("north", wrong)
    shown = [in_words(e, 3, 4) for e in log]
    assert len(shown) == 2 * desk.MOST_REFUSALS
    assert shown[-2].startswith(f"stranger {desk.MOST_REFUSALS - 1} was refused: ")
    assert shown[-2].endswith(". No further refusal of strangers is logged")
    assert shown[-1].endswith(". No further refusal of north is logged")


def test_a_party_that_comes_and_goes_holds_one_call_at_a_time() -> None:
    keys, replies = Keys(), list[bytes]()
    here = service(keys)
    hello = keys.party(0).hello()
    calls = [
        threading.Thread(target=lambda: replies.append(here.handle("north", hello)), daemon=True) for _ in range(20)
    ]
    for call in calls:
        call.start()
    until(lambda: len(replies) == 19)
    assert sum(call.is_alive() for call in calls) == 1  # the last one waits for the others to join
    assert {reply[5] for reply in replies} == {Kind.REFUSAL}
    here.handle("nobody", hello)  # whoever is refused takes nobody's place
    assert sum(call.is_alive() for call in calls) == 1


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
    run.lines[2].before = kill_at(2)
    ledgers = [ledger(tmp_path / f"{name}.db") for name in NAMES]
    run.start_all(*(account for _, account in ledgers))
    clock.run(here, run)
    assert isinstance(run.errors["west"], Killed)
    for error in (run.errors[name] for name in NAMES[:2]):
        assert isinstance(error, Rejected)
        assert (error.reason, error.party) == (Reason.TIMEOUT, "west")
        assert "west" in str(error)
    for kept, _ in ledgers:
        (spent,) = kept.runs()
        assert (spent.state, spent.epsilon, spent.rounds) == ("open", 1.0, 3)
    with pytest.raises(Rejected, match="west"):
        here.finished(idle=0.1)
    shown = [in_words(e, 3, 4) for e in log]
    assert "round 3 of 4: given up, for want of west" in shown
    assert "round 3 of 4, attempt 2: given up, for want of west" in shown
    assert any(words.startswith("round 3 of 4, attempt 2: south has sent") for words in shown)


def test_a_coordinator_whose_journal_cannot_be_written_tells_everybody_and_answers_nothing() -> None:
    class Full(Memory):
        def write(self, kind: int, body: bytes) -> None:
            if kind == CLOSED:
                raise InvalidInput("cannot write the journal: no space left")
            super().write(kind, body)

    keys = Keys()
    here, replies = service(keys, Full()), list[bytes]()
    handle = here.handle

    def heard(sender: str, data: bytes) -> bytes:
        replies.append(handle(sender, data))
        return replies[-1]

    here.handle = heard  # type: ignore[method-assign]
    run = Run(keys, here)
    run.start_all()
    run.end()
    assert set(run.errors) == set(NAMES)
    assert all("no space left" in str(error) for error in run.errors.values())
    kinds = {reply[5] for reply in replies}
    assert kinds <= {Kind.OPENING, Kind.REFUSAL, Kind.NOTED}  # nobody has an answer
    assert Kind.REFUSAL in kinds
    with pytest.raises(Rejected, match="had to stop"):
        here.finished(idle=0.1)


def test_a_stranger_who_goes_on_calling_keeps_nobody_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """She has a certificate of the same authority, and is in no plan: that she is heard of says nothing of parties."""
    now = [0.0]
    monkeypatch.setattr(desk, "time", SimpleNamespace(monotonic=lambda: now[0]))
    here = service(Keys())
    now[0] = 2 * HOUR
    assert said(here.handle("stranger", b"here I am")).reason is Reason.UNKNOWN_PARTY
    assert here._quiet(HOUR)
    here.handle("north", b"here I am")
    assert not here._quiet(HOUR)
