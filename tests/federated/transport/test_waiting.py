"""Who waits for whom, for how long, who is named when nobody waits any longer, and how a program that is cut off says
how to go on."""

from __future__ import annotations

import errno
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("grpc")


from cloister.core.randomness import NoiseRng
from cloister.federated.population import Joined
from cloister.federated.protocol.journal import FileJournal
from cloister.federated.protocol.messages import Kind, Reason, Rejected
from cloister.federated.transport.certificates import Credentials, make_test_certificates
from cloister.federated.transport.service import CoordinatorService, Stopped
from cloister.federated.transport.tls import Line, Server
from cloister.run.fit import fit
from tests.federated.federated_session import NAMES, Keys
from tests.federated.pooling import (
    HOUR,
    PARTS,
    Clock,
    Run,
    arrays,
    kill_at,
    lay_out,
    ledger,
    request,
    said,
    script,
    service,
    write_rows,
)
from tests.in_process import cloister
from tests.waiting import PATIENCE, until

pytestmark = pytest.mark.thorough


@pytest.mark.parametrize("again", [False, True])
def test_the_first_round_waits_for_timeout_and_not_for_patience(again: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also after a party that had joined has asked once more to."""
    keys, clock = Keys(), Clock(monkeypatch)
    here = service(keys, patience=HOUR**2, timeout=HOUR, attempts=2)
    run = Run(keys, here)
    run.lines[2].before = kill_at(0)
    if again:
        hellos = list[bytes]()

        def twice(data: bytes) -> None:
            if data[5] == Kind.HELLO:
                hellos.append(data)
            if data[5] == Kind.VECTOR:
                here.handle("north", hellos[0])

        run.lines[0].before = twice
    run.start_all()
    clock.run(here, run)
    for error in (run.errors[name] for name in NAMES[:2]):
        assert isinstance(error, Rejected)
        assert error.party == "west"
        assert "round 1 was given up" in str(error)
        assert "0 of 4 rounds" in str(error)


def test_a_party_that_stops_waiting_is_told_who_is_missing() -> None:
    keys = Keys()
    here = service(keys, patience=HOUR, timeout=HOUR)
    error = said(here.handle("north", keys.party(0).hello(), 0.2))
    assert (error.reason, error.party) == (Reason.TIMEOUT, "south, west")
    assert "south, west" in str(error)
    assert "--patience" in str(error)
    here = service(keys, patience=HOUR, timeout=HOUR)
    run = Run(keys, here)
    run.lines[0].exchange = lambda data: here.handle("north", data, PATIENCE if data[5] == Kind.HELLO else 2.0)  # type: ignore[method-assign]
    run.lines[2].before = kill_at(1)
    run.start_all()
    run.threads[0].join(PATIENCE)
    here.stop()
    run.end()
    assert isinstance(run.errors["south"], Stopped)  # who has more patience goes on waiting
    with pytest.raises(Rejected, match="to send round 2") as left:
        raise run.errors["north"]
    assert "west" in left.value.party


@contextmanager
def serving(here: CoordinatorService, folder: Path, port: int = 0) -> Iterator[int]:
    """A desk on a port; whoever waits there at the end is let go, so that no thread outlives a test that fails."""
    server = Server(here, f"127.0.0.1:{port}", Credentials.read(folder / "coordinator.pem"), 3, 2**20)
    server.start()
    try:
        yield server.port
    finally:
        here.stop()
        server.stop()


def test_a_line_whose_patience_ends_names_the_missing_parties_and_not_the_coordinator(tmp_path: Path) -> None:
    make_test_certificates(tmp_path / "certs", NAMES)
    keys = Keys()
    with serving(service(keys, patience=HOUR), tmp_path / "certs") as port:
        line = Line(f"127.0.0.1:{port}", Credentials.read(tmp_path / "certs" / "north.pem"), 4.0)
        with pytest.raises(Rejected, match="south, west did not") as error:
            fit(request(), Joined(arrays(PARTS[0]), keys.party(0), line, script()), noise=NoiseRng.for_tests(2))
        line.close()
    assert error.value.reason is Reason.TIMEOUT


def test_a_coordinator_that_is_stopped_and_comes_back_is_waited_for(tmp_path: Path) -> None:
    """Parties cannot tell it from one that was killed: they send again."""
    make_test_certificates(tmp_path / "certs", NAMES)
    keys, log, replies = Keys(), list[dict[str, Any]](), list[bytes]()
    first, second = service(keys, patience=HOUR, log=log.append), service(keys, patience=0.5)
    with serving(first, tmp_path / "certs") as port:
        line = Line(f"127.0.0.1:{port}", Credentials.read(tmp_path / "certs" / "north.pem"), PATIENCE)
        party = threading.Thread(target=lambda: replies.append(line.exchange(keys.party(0).hello())), daemon=True)
        party.start()
        until(lambda: log)
    with pytest.raises(Stopped):
        first.handle("south", keys.party(1).hello())
    with serving(second, tmp_path / "certs", port):
        party.join(PATIENCE)
    assert "south, west did not join" in str(said(replies[0]))
    line.close()


def test_a_session_that_was_given_up_goes_on_when_all_come_back_with_their_journals(tmp_path: Path) -> None:
    """What a coordinator says when it ends: start again with the same journals."""
    keys = Keys()
    for clocks in ({"timeout": 0.2, "attempts": 2}, {}):
        *journals, own = [FileJournal(tmp_path / name) for name in (*NAMES, "coordinator")]
        run = Run(keys, service(keys, own, **clocks), list(journals))
        if clocks:
            run.lines[2].before = kill_at(2)
        run.start_all()
        run.end()
        own.close()
        assert set(run.errors) == (set(NAMES) if clocks else set())
    run.check()


class Site:
    """A plan, certificates, rows and north's ledger, and nobody who listens."""

    def __init__(self, folder: Path) -> None:
        self.folder = lay_out(folder)
        self.ledger, _ = ledger(folder / "north.ledger")

    def join(self, *more: str) -> str:
        """What is said. Raises: AssertionError: anything but 'cloister: ...' in the end."""
        command = (
            "join plan.toml --party north --data north.csv --cert certs/north.pem --connect 127.0.0.1:9 --unsigned "
            "--patience 0.2 --ledger north.ledger --dataset rows"
        )
        done = cloister(*command.split(), *more, folder=self.folder)
        assert done.returncode == 2
        return "".join(line for line in done.stderr.splitlines() if line.startswith("cloister: "))


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


def test_a_party_that_fails_before_joining_says_that_others_wait_for_it(site: Site) -> None:
    write_rows(site.folder / "north.csv", np.array([[0.1, np.nan]]))
    words = site.join()
    assert "--missing drop" in words
    assert "'north' has not joined" in words
    assert "coordinator" not in words
    assert not site.ledger.runs()


def test_a_party_that_cannot_reach_the_coordinator_says_so_and_what_it_needs_to_go_on(site: Site) -> None:
    words = site.join("--journal", "north.journal")
    assert "127.0.0.1:9 did not answer" in words
    assert "start the same command again, with --journal north.journal" in words
    assert [(run.state, run.epsilon) for run in site.ledger.runs()] == [("done", 0.0)]


@pytest.mark.parametrize("journal", [True, False])
def test_a_party_whose_disk_is_full_in_the_middle_names_its_run_and_its_journal(
    journal: bool, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All have joined; on its disk is no room for a vector."""

    def full(*given: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Joined, "join", lambda self: monkeypatch.setattr(Joined, "opened", True))
    monkeypatch.setattr(Joined, "gather", full)
    words = site.join(*(("--journal", "north.journal") if journal else ()))
    (run,) = site.ledger.runs()
    assert run.state == "open"
    assert "No space left on device" in words
    assert run.id in words
    assert (f"--journal north.journal --resume {run.id}" in words) == journal
    assert ("cannot come back" in words) != journal
