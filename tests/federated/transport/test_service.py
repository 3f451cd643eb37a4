"""Threads and clocks, without a network: parties that come back, that never come back, and a coordinator that
restarts."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from cloister.accounting.ledger.ledger import Ledger
from cloister.core.errors import InvalidInput
from cloister.core.randomness import NoiseRng, PublicRng
from cloister.core.registry.registry import registry
from cloister.core.types import Floats
from cloister.federated.population import Joined
from cloister.federated.protocol.coordinator import CLOSED
from cloister.federated.protocol.journal import FileJournal, Memory, SessionJournal
from cloister.federated.protocol.messages import Kind, Reason, Rejected
from cloister.federated.protocol.vectors import PoolRounds
from cloister.federated.transport import service as desk
from cloister.federated.transport.service import CoordinatorService
from cloister.run.account import Account
from cloister.run.fit import fit
from cloister.run.request import Request, prepare
from tests.federated.federated_session import Keys
from tests.waiting import PATIENCE, until

pytestmark = pytest.mark.thorough

ROWS = np.random.default_rng(1).normal(0, 0.4, (900, 2))
PARTS = np.split(ROWS, [300, 500])
NAMES = ("north", "south", "west")
HOUR, MOST = 3600.0, 1000


def request(oracle: str = "masked-gaussian", rounds: int = 4) -> Request:
    return Request(
        k=3,
        method="fastlloyd",
        epsilon=1.0,
        delta=1e-6,
        bounds="-1:1",
        rows=900,
        seed=7,
        components={"counts": oracle, "sums": oracle},
        options={"rounds": rounds, "counts.parties": 3, "sums.parties": 3},
    )


def arrays(rows: Floats) -> Any:
    return registry().load(registry().spec("Population", "arrays"))(rows)


def central() -> Any:
    plain = Request(
        k=3, method="fastlloyd", epsilon=1.0, delta=1e-6, bounds="-1:1", rows=900, seed=7, options={"rounds": 4}
    )
    return fit(plain, arrays(ROWS), noise=NoiseRng.for_tests(2)).centers


def service(keys: Keys, journal: SessionJournal | None = None, **clocks: Any) -> CoordinatorService:
    coordinator, rounds = keys.coordinate(journal), script().expected(NoiseRng.for_tests(2))
    for shape, noise in rounds:
        coordinator.expect(shape, noise)
    return CoordinatorService(coordinator, len(rounds), **{"patience": PATIENCE, "timeout": PATIENCE, **clocks})


def script() -> PoolRounds:
    """Of ``request``: it settles nothing."""
    return PoolRounds(prepare(request(), ("0", "1")).forecast(PublicRng.from_seed(7)), (), 3)


class Direct:
    """A party's line to whatever desk there is at the moment. Dies (as a process would) when ``before`` or ``after``
    says so."""

    def __init__(self, name: str, to: Callable[[], CoordinatorService]) -> None:
        self.name, self.to, self.count = name, to, 0
        self.before: Callable[[bytes], None] = lambda data: None
        self.after: Callable[[bytes], None] = lambda data: None

    def exchange(self, data: bytes) -> bytes:
        self.before(data)
        reply = self.to().handle(self.name, data)
        self.after(data)
        return reply


class Killed(BaseException):
    """What a killed process does not get to see."""


class Clock:
    """The service's: an hour passes whenever nobody but west, who was killed, has not sent."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._ahead = 0.0
        monkeypatch.setattr(desk, "time", SimpleNamespace(monotonic=lambda: time.monotonic() + self._ahead))

    def run(self, here: CoordinatorService, run: Run) -> None:
        """Until all parties' threads have ended."""

        def over() -> bool:
            with here._changed:
                if "west" in run.errors and here._coordinator.missing == ("west",):
                    self._ahead += HOUR
                    assert self._ahead < MOST * HOUR, "its timeout is over, and it waits"
                    here._changed.notify_all()
            return not any(thread.is_alive() for thread in run.threads)

        until(over)
        run.end()


def kill_at(round: int, kind: Kind = Kind.VECTOR) -> Callable[[bytes], None]:
    def check(data: bytes) -> None:
        if data[5] == kind and int.from_bytes(data[40:44], "little") == round:
            raise Killed

    return check


class Run:
    """Three parties in threads; results and errors by name."""

    def __init__(
        self, keys: Keys, to: Callable[[], CoordinatorService], journals: list[SessionJournal] | None = None
    ) -> None:
        self.keys, self.results, self.errors = keys, dict[str, Any](), dict[str, BaseException]()
        self.journals = journals or [Memory() for _ in NAMES]
        self.lines = [Direct(name, to) for name in NAMES]
        self.threads = list[threading.Thread]()

    def start(self, i: int, account: Account | None = None) -> None:
        def work() -> None:
            try:
                noise = NoiseRng.for_tests(2) if account is None else None
                population = Joined(arrays(PARTS[i]), self.keys.party(i, self.journals[i]), self.lines[i], script())
                self.results[NAMES[i]] = fit(request(), population, noise=noise, account=account).centers
            except BaseException as error:
                self.errors[NAMES[i]] = error

        self.threads.append(threading.Thread(target=work, daemon=True))
        self.threads[-1].start()

    def end(self) -> None:
        for thread in self.threads:
            thread.join(PATIENCE)
        assert not any(t.is_alive() for t in self.threads)
        for journal in self.journals:
            if isinstance(journal, FileJournal):
                journal.close()

    def check(self) -> None:
        wanted = central()
        assert not self.errors
        assert all(np.array_equal(self.results[name], wanted) for name in NAMES)


def test_three_parties_get_the_curators_centres_and_log_lines_hold_no_value() -> None:
    keys, log = Keys(), list[dict[str, Any]]()
    here = service(keys, log=log.append)
    run = Run(keys, lambda: here)
    for i in range(3):
        run.start(i)
    run.end()
    run.check()
    assert here.finished(idle=1)
    assert {e["event"] for e in log} == {"hello", "vector", "answered"}
    allowed = {"event", "party", "round", "attempt", "bytes", "body", "here", "missing"}
    assert all(set(e) <= allowed and all(isinstance(v, (int, str)) for v in e.values()) for e in log)


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
    run = Run(keys, lambda: here)

    def slow(data: bytes) -> None:
        if data[5] == Kind.VECTOR and data[40] == 1 and data[44] == 0:
            time.sleep(0.8)

    run.lines[0].before = slow
    for i in range(3):
        run.start(i)
    run.end()
    run.check()
    assert {e["missing"] for e in log if e["event"] == "given up"} >= {"north"}


def test_a_party_that_never_comes_back_ends_the_session_in_time_with_its_name_and_the_ledgers_say_what_was_spent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys, clock = Keys(), Clock(monkeypatch)
    here = service(keys, timeout=HOUR, attempts=2)
    run = Run(keys, lambda: here)
    run.lines[2].before = kill_at(2)
    ledgers = []
    for i in range(3):
        ledger = Ledger.open(tmp_path / f"{NAMES[i]}.db", create=True)
        ledger.declare("rows", 2.0, 1e-5, "basic")
        ledgers.append(ledger)
        run.start(i, Account(ledger=tmp_path / f"{NAMES[i]}.db", dataset="rows"))
    clock.run(here, run)
    assert isinstance(run.errors["west"], Killed)
    for name in NAMES[:2]:
        error = run.errors[name]
        assert isinstance(error, Rejected)
        assert error.reason is Reason.TIMEOUT
        assert error.party == "west"
        assert "west" in str(error)
    for ledger in ledgers:
        ((spent,),) = [data.runs for data in ledger.status()]
        assert (spent.state, spent.epsilon, spent.rounds) == ("open", 1.0, 3)
    with pytest.raises(Rejected, match="west"):
        here.finished(idle=0.1)


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
    run = Run(keys, lambda: here)
    for i in range(3):
        run.start(i)
    run.end()
    assert sorted(run.errors) == sorted(NAMES)
    assert all("no space left" in str(error) for error in run.errors.values())
    kinds = {reply[5] for reply in replies}
    assert kinds <= {Kind.OPENING, Kind.REFUSAL, Kind.NOTED}  # nobody has an answer
    assert Kind.REFUSAL in kinds
    with pytest.raises(Rejected, match="had to stop"):
        here.finished(idle=0.1)


def test_a_coordinator_that_restarts_from_its_journal_goes_on(tmp_path: Path) -> None:
    keys, desks, gone, again = Keys(), list[CoordinatorService](), threading.Event(), list[FileJournal]()
    journal = FileJournal(tmp_path / "coordinator")
    desks.append(service(keys, journal))

    def to() -> CoordinatorService:
        return desks[-1]

    run = Run(keys, to)

    class Retrying(Direct):
        """As a gRPC line does: the same bytes again when the coordinator is gone."""

        def exchange(self, data: bytes) -> bytes:
            while True:
                here = self.to()
                reply = here.handle(self.name, data)
                if here is self.to() and not (gone.is_set() and len(desks) == 1):
                    return reply
                until(lambda: len(desks) == 2)

    run.lines = [Retrying(name, to) for name in NAMES]
    crashed = kill_at(2)

    def crash(data: bytes) -> None:
        """South's third vector reaches nobody: the coordinator dies, and comes back."""
        try:
            crashed(data)
        except Killed:
            if len(desks) == 1:
                gone.set()
                journal.close()
                again.append(FileJournal(tmp_path / "coordinator"))
                desks.append(service(keys, again[0]))

    original = run.lines[1].exchange

    def exchange(data: bytes) -> bytes:
        crash(data)
        return original(data)

    run.lines[1].exchange = exchange  # type: ignore[method-assign]
    for i in range(3):
        run.start(i)
    until(lambda: len(desks) == 2)
    first = desks[0]
    with first._changed:  # those who wait at the dead one's desk are cut off
        first._coordinator.failed = Rejected(Reason.TIMEOUT, "crashed")
        first._changed.notify_all()
    run.end()
    again[0].close()
    run.check()
