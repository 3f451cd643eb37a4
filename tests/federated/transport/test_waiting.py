"""Who waits for whom, for how long, who is named when nobody waits any longer, and how a program that is cut off says
how to go on."""

from __future__ import annotations

import errno
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("grpc")

import typer

from cloister.commands.coordinate import in_words
from cloister.commands.program import ending
from cloister.commands.progress import event_log
from cloister.core.errors import InvalidInput, Refused
from cloister.core.randomness import NoiseRng
from cloister.federated.population import Joined
from cloister.federated.protocol.journal import FileJournal
from cloister.federated.protocol.messages import HEAD, Kind, Message, Reason, Rejected, refused
from cloister.federated.transport.certificates import Credentials, make_test_certificates
from cloister.federated.transport.service import CoordinatorService, Stopped
from cloister.federated.transport.tls import Line, Server
from cloister.run.fit import fit
from tests.federated.federated_session import Keys, opened, vector
from tests.federated.transport.test_service import (
    HOUR,
    NAMES,
    PARTS,
    Clock,
    Run,
    arrays,
    kill_at,
    request,
    script,
    service,
)
from tests.in_process import cloister
from tests.waiting import PATIENCE, until

pytestmark = pytest.mark.thorough


def said(reply: bytes) -> Rejected:
    """The refusal in a reply."""
    assert reply[5] == Kind.REFUSAL
    _, _, _, _, name, round, attempt, *_ = HEAD.unpack_from(reply)
    return refused(Message(Kind.REFUSAL, 0, name, round, attempt, reply[HEAD.size :]))


@pytest.mark.parametrize("again", [False, True])
def test_the_first_round_waits_for_timeout_and_not_for_patience(again: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also after a party that had joined has asked once more to."""
    keys, clock = Keys(), Clock(monkeypatch)
    here = service(keys, patience=HOUR**2, timeout=HOUR, attempts=2)
    run = Run(keys, lambda: here)
    run.lines[2].before = kill_at(0)
    if again:
        hellos = list[bytes]()

        def twice(data: bytes) -> None:
            if data[5] == Kind.HELLO:
                hellos.append(data)
            if data[5] == Kind.VECTOR:
                here.handle("north", hellos[0])

        run.lines[0].before = twice
    for i in range(3):
        run.start(i)
    clock.run(here, run)
    for name in NAMES[:2]:
        error = run.errors[name]
        assert isinstance(error, Rejected)
        assert error.party == "west"
        assert "round 1 was given up" in str(error)
        assert "0 of 4 rounds" in str(error)
        assert "-1" not in str(error)


def test_a_party_that_stops_waiting_is_told_who_is_missing() -> None:
    keys = Keys()
    here = service(keys, patience=HOUR, timeout=HOUR)
    error = said(here.handle("north", keys.party(0).hello(), 0.2))
    assert (error.reason, error.party) == (Reason.TIMEOUT, "south, west")
    assert "south, west" in str(error)
    assert "--patience" in str(error)
    run = Run(keys, lambda: here)
    run.lines[0].exchange = lambda data: here.handle("north", data, PATIENCE if data[5] == Kind.HELLO else 2.0)  # type: ignore[method-assign]
    run.lines[2].before = kill_at(1)
    here = service(keys, patience=HOUR, timeout=HOUR)
    for i in range(3):
        run.start(i)
    run.threads[0].join(PATIENCE)
    here.stop()
    run.end()
    assert isinstance(run.errors["south"], Stopped)  # who has more patience goes on waiting
    assert isinstance(run.errors["north"], Rejected)
    assert "west" in run.errors["north"].party
    assert "to send round 2" in str(run.errors["north"])


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


@pytest.mark.thorough
def test_a_line_whose_patience_ends_names_the_missing_parties_and_not_the_coordinator(tmp_path: Path) -> None:
    make_test_certificates(tmp_path / "certs", NAMES)
    keys = Keys()
    with serving(service(keys, patience=HOUR), tmp_path / "certs") as port:
        line = Line(f"127.0.0.1:{port}", Credentials.read(tmp_path / "certs" / "north.pem"), 4.0)
        with pytest.raises(Refused, match="south, west did not") as error:
            fit(request(), Joined(arrays(PARTS[0]), keys.party(0), line, script()), noise=NoiseRng.for_tests(2))
        line.close()
    assert isinstance(error.value, Rejected)
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


def test_the_coordinator_shows_who_has_joined_and_who_has_sent_what_as_it_happens() -> None:
    keys, log = Keys(), list[dict[str, Any]]()
    here = service(keys, log=log.append)
    run = Run(keys, lambda: here)
    shown = lambda: [in_words(e, 3, 4) for e in log]  # noqa: E731
    for i, name in enumerate(NAMES):
        run.start(i)
        until(lambda name=name: any(e["event"] == "hello" and e["party"] == name for e in log))
    run.end()
    assert shown()[:3] == [
        "north has joined (1 of 3); waiting for south, west",
        "south has joined (2 of 3); waiting for west",
        "west has joined (3 of 3)",
    ]
    first = [words for words in shown() if words.startswith("round 1 of 4")]
    assert len(first) == 4
    assert first[0].partition(" has sent ")[2].startswith("(1 of 3); waiting for ")
    assert first[2].endswith("has sent (3 of 3)")
    assert first[3] == "round 1 of 4: answered"
    assert {e["here"] for e in log if e["event"] == "vector"} == {1, 2, 3}
    assert shown()[-1] == "round 4 of 4: answered"


def test_rounds_and_attempts_count_from_1_in_words() -> None:
    coordinator, sides = opened()
    coordinator.receive("north", vector(sides[0], 0))
    with pytest.raises(Rejected, match="second vector for round 1, attempt 1"):
        coordinator.receive("north", vector(sides[0], 0))
    with pytest.raises(Rejected, match="asks for round 3; round 1 is open"):
        coordinator.receive("south", sides[1].ask(2))
    coordinator.abort()
    with pytest.raises(Rejected, match="for round 1, attempt 1; attempt 2 is open"):
        coordinator.receive("south", vector(sides[1], 0))


def test_given_up_attempts_and_refusals_are_shown_with_the_party_that_they_are_about(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    keys, log, clock = Keys(), list[dict[str, Any]](), Clock(monkeypatch)
    refusal = said(service(keys, log=log.append).handle("north", Keys(plan="other").party(0).hello()))
    here = service(keys, timeout=HOUR, attempts=2, log=log.append)
    run = Run(keys, lambda: here)
    run.lines[2].before = kill_at(1)
    for i in range(3):
        run.start(i)
    clock.run(here, run)
    shown = [in_words(e, 3, 4) for e in log]
    assert shown[0] == f"north was refused: {refusal}"
    assert "round 2 of 4: given up, for want of west" in shown
    assert "round 2 of 4, attempt 2: given up, for want of west" in shown
    assert any(words.startswith("round 2 of 4, attempt 2: south has sent") for words in shown)
    late = service(keys, patience=0.1, log=log.append)
    late.handle("north", keys.party(0).hello())
    assert "south, west did not join in time" in [in_words(e, 3, 4) for e in log]


def test_a_session_that_was_given_up_goes_on_when_all_come_back_with_their_journals(tmp_path: Path) -> None:
    """What a coordinator says when it ends: start again with the same journals."""
    keys = Keys()
    journals = [FileJournal(tmp_path / name) for name in (*NAMES, "coordinator")]
    here = service(keys, journals[3], timeout=0.2, attempts=2)
    run = Run(keys, lambda: here, list(journals[:3]))
    run.lines[2].before = kill_at(2)
    for i in range(3):
        run.start(i)
    run.end()
    journals[3].close()
    assert set(run.errors) == set(NAMES)
    journals = [FileJournal(tmp_path / name) for name in (*NAMES, "coordinator")]
    there = service(keys, journals[3])
    run = Run(keys, lambda: there, list(journals[:3]))
    for i in range(3):
        run.start(i)
    run.end()
    journals[3].close()
    run.check()


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (KeyboardInterrupt(), 130, "cloister: interrupted; go on with --journal x\n"),
        (InvalidInput("no room"), 2, "cloister: no room; go on with --journal x\n"),
        (
            OSError(errno.ENOSPC, "No space left on device"),
            2,
            "cloister: No space left on device; go on with --journal x\n",
        ),
    ],
)
def test_whatever_cuts_a_program_off_is_one_line_that_says_how_to_go_on(
    error: BaseException, code: int, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(typer.Exit) as ended, ending(lambda error: "go on with --journal x", lambda: True):
        raise error
    assert ended.value.exit_code == code
    assert capsys.readouterr().err == words


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_a_log_that_cannot_be_written_is_said_once_and_ends_no_run(capsys: pytest.CaptureFixture[str]) -> None:
    with event_log(Path("/dev/full")) as write:
        write({"event": "joined"})
        write({"event": "round"})
    assert capsys.readouterr().err.count("/dev/full") == 1


class Site:
    """A plan, certificates and rows for the commands, in one process with the coordinator."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        made = cloister("test-certificates", "certs", *(x for n in NAMES for x in ("--party", n)), folder=folder)
        facts = (
            "k = 3\nepsilon = 1.0\ndelta = 1e-6\nrows = 900\n"
            'method = "fastlloyd"\ncolumns = ["0", "1"]\nbounds = [[-1, 1], [-1, 1]]\nseed = 1\n'
        )
        (folder / "plan.toml").write_text(f"{facts}set = {{ rounds = 3 }}\n\n{made.stdout}")
        for name, rows in zip(NAMES, PARTS, strict=True):
            np.save(folder / f"{name}.npy", rows)
        cloister("ledger", "declare", "north.ledger", "patients", "--epsilon", "1.5", "--delta", "1e-5", folder=folder)

    def join(self, *more: str) -> Any:
        command = (
            "join plan.toml --party north --data north.npy --cert certs/north.pem --connect 127.0.0.1:9 --unsigned "
            "--patience 0.2 --ledger north.ledger --dataset patients"
        )
        return cloister(*command.split(), *more, folder=self.folder)

    def runs(self) -> list[dict[str, Any]]:
        shown = cloister("ledger", "show", "north.ledger", "--json", folder=self.folder)
        found: list[dict[str, Any]] = json.loads(shown.stdout)[0]["runs"]
        return found


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


def test_a_party_that_fails_before_joining_says_that_others_wait_for_it(site: Site) -> None:
    rows = PARTS[0].copy()
    rows[3, 1] = np.nan
    np.save(site.folder / "north.npy", rows)
    done = site.join()
    assert done.returncode == 2
    assert "--missing drop" in done.stderr
    assert "'north' has not joined" in done.stderr
    assert "coordinator" not in done.stderr
    assert not site.runs()


def test_a_party_that_cannot_reach_the_coordinator_says_so_and_what_it_needs_to_go_on(site: Site) -> None:
    done = site.join("--journal", "north.journal")
    assert done.returncode == 2
    (line,) = [words for words in done.stderr.splitlines() if words.startswith("cloister: ")]
    assert "127.0.0.1:9 did not answer" in line
    assert "start the same command again, with --journal north.journal" in line
    assert [(run["state"], run["epsilon"]) for run in site.runs()] == [("done", 0.0)]


@pytest.mark.parametrize("journal", [True, False])
def test_a_party_whose_disk_is_full_in_the_middle_names_its_run_and_its_journal(
    journal: bool, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Full:
        """A line to a coordinator that all others have joined, on a disk with no room for a vector."""

        sent = received = 0

        def __init__(self, *given: Any) -> None: ...

        def exchange(self, data: bytes) -> bytes:
            raise AssertionError("nothing is sent")

        def close(self) -> None: ...

    def joined(self: Joined) -> None:
        monkeypatch.setattr(type(self), "opened", property(lambda self: True))

    def full(*given: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("cloister.federated.transport.tls.Line", Full)
    monkeypatch.setattr(Joined, "join", joined)
    monkeypatch.setattr(Joined, "gather", full)
    done = site.join(*(("--journal", "north.journal") if journal else ()))
    (run,) = site.runs()
    assert (done.returncode, run["state"]) == (2, "open")
    (line,) = [words for words in done.stderr.splitlines() if words.startswith("cloister: ")]
    assert "No space left on device" in line
    assert run["id"] in line
    assert (f"--journal north.journal --resume {run['id']}" in line) == journal
    assert ("cannot come back" in line) != journal
