"""Who waits for whom, and for how long. Patience is for silence: a refused party, a wrong column and a certificate that
is over end everybody's wait at once, over real connections. What ``join --check`` tries beforehand, and how a program
that is cut off says how to go on."""

from __future__ import annotations

import errno
import socket
from collections.abc import Iterator
from concurrent.futures import Future, wait
from contextlib import ExitStack, closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("grpc")

from cloister.commands.progress import event_log
from cloister.federated.plan import FederatedPlan, read_pool_plan
from cloister.federated.population import Joined
from cloister.federated.protocol.journal import FileJournal
from cloister.federated.protocol.messages import Kind, Reason, Rejected
from cloister.federated.transport.certificates import Credentials
from cloister.federated.transport.service import Stopped
from cloister.federated.transport.signatures import check_certificate, check_signatures
from cloister.federated.transport.tls import Line
from tests.federated.federated_session import NAMES, Keys, join, refuses
from tests.federated.pooling import (
    HOUR,
    PARTS,
    Clock,
    Run,
    arrays,
    in_thread,
    kill_at,
    lay_out,
    ledger,
    said,
    script,
    service,
    write_rows,
)
from tests.federated.transport.ends import certified, serving
from tests.in_process import ran, refused
from tests.waiting import PATIENCE, until

pytestmark = pytest.mark.thorough


class Pool:
    """A coordinator that listens, and the files of three parties. All wait for an hour, if nothing ends it."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.folder, self.log = lay_out(folder), list[dict[str, Any]]()
        self.plan = self.read("plan.toml")
        self.keys = Keys()
        self.keys.agreement = self.plan.agreement
        self.keys.coordinator, *self.keys.private = (
            (folder / "certs" / f"{name}.pool").read_bytes() for name in ("coordinator", *NAMES)
        )
        self.desk = service(self.keys, rounds=self.plan.script, patience=HOUR, timeout=HOUR, log=self.log.append)
        self.coordinator = self.desk._coordinator
        self.address = stack.enter_context(serving(self.desk, folder / "certs" / "coordinator.pem"))
        self.waiting = dict[str, Future[None]]()

    def read(self, plan: str) -> FederatedPlan:
        return read_pool_plan(self.folder / plan)

    def changed(self, old: str, new: str) -> str:
        """Another copy of the plan."""
        text = (self.folder / "plan.toml").read_text()
        assert old in text
        (self.folder / "other.toml").write_text(text.replace(old, new))
        return "other.toml"

    def waits(self, *names: str) -> None:
        """These parties have joined, and wait for the others."""
        for name in names:
            self.begins(name)
        until(lambda: {e["party"] for e in self.log if e["event"] == "hello"} >= set(names))

    def begins(self, name: str) -> None:
        """This party joins, in a thread."""

        def joins() -> None:
            with closing(Line(self.address, Credentials.read(self.folder / "certs" / f"{name}.pem"), HOUR)) as line:
                state = self.keys.party(NAMES.index(name))
                Joined(arrays(PARTS[0]), state, line, self.plan.script).join()

        self.waiting[name] = in_thread(joins)

    def still_waits(self, *others: str) -> bool:
        """Whether nothing ended the wait of the first one, and nobody but these was heard of."""
        heard = {e["party"] for e in self.log} <= {"north", *others}
        return heard and self.coordinator.failed is None and not self.waiting["north"].done()

    def line(self, name: str, *more: str, plan: str = "plan.toml") -> str:
        """What a party types to join."""
        files = f"--data {name}.csv --cert certs/{name}.pem --unsigned --connect {self.address}"
        return " ".join(("join", plan, "--party", name, files, *more))

    def refused(self, name: str, *more: str, plan: str = "plan.toml") -> str:
        """What a party is told that does not join."""
        return refused(self.line(name, *more, plan=plan), self.folder)

    def told(self) -> list[str]:
        """What those who waited were told, at once."""
        errors = [waiting.exception(10) for waiting in self.waiting.values()]
        assert all(isinstance(e, Rejected) and e.reason is Reason.TIMEOUT for e in errors)
        return [str(error) for error in errors]


@pytest.fixture
def pool(tmp_path: Path) -> Iterator[Pool]:
    with ExitStack() as stack:
        yield Pool(tmp_path, stack)


def test_a_party_with_another_plan_ends_everybodys_wait_at_once_and_who_comes_later_is_told_too(pool: Pool) -> None:
    pool.waits("north")
    words = "'west' agreed to something else: bounds of the plan differs"
    assert words in pool.refused("west", plan=pool.changed("[[-1, 1], [-1, 1]]", "[[-1, 1], [-1, 2]]"))
    (told,) = pool.told()
    assert words in told
    assert "nothing was sent or spent" in told
    assert words in pool.refused("south")
    ended = in_thread(lambda: pool.desk.finished(idle=HOUR)).exception(10)  # all have been told: it waits for nobody
    assert words in str(ended)


CHANGES = {
    "k": ("k = 3", "k = 4"),
    "columns": ('["x", "y"]', '["x", "z"]'),
    "set": ("rounds = 3", "rounds = 4"),
    "oracle": ("seed = 1\n", 'seed = 1\noracle = "masked-gaussian"\n'),
    "party": ('name = "south"', 'name = "east"'),
    "k, epsilon": ("k = 3\nepsilon = 1.0", "k = 2\nepsilon = 0.5"),
}


def test_each_entry_that_differs_is_named_and_no_other(pool: Pool) -> None:
    key = pool.plan.agreement.coordinator_key.hex()
    for entry, change in {**CHANGES, "coordinator_key": (key, "09" + 31 * "00")}.items():
        check = pool.keys.party(0, agreement=pool.read(pool.changed(*change)).agreement).check()
        words = f"something else: {entry} of the plan differs"
        refuses(pool.coordinator, "north", check, Reason.OTHER_AGREEMENT, words)


def test_numbers_that_are_equal_are_the_same_entry_and_what_is_left_out_has_its_default(pool: Pool) -> None:
    pool.changed("k = 3\nepsilon = 1.0\n", 'k = 3\nepsilon = 1\nmasks = "pairwise"\ncoordinator = "x:1"\n')
    other = pool.read("other.toml").agreement
    assert other == pool.plan.agreement
    assert "cloister's version" in dict(other.outline)


def test_a_wrong_column_ends_everybodys_wait_at_once(pool: Pool) -> None:
    pool.waits("north", "south")
    write_rows(pool.folder / "west.csv", PARTS[2], "x,why")
    assert "y" in pool.refused("west", "--journal", "west.journal")
    assert ["'west' cannot begin" in words for words in pool.told()] == [True, True]
    assert "left" in [entry["event"] for entry in pool.log]


def test_what_a_check_of_the_rows_says_is_told_to_nobody_else(pool: Pool) -> None:
    """Law 7: a missing cell, a line that cannot be read (it is found when the file is opened, and is one row's fault
    all the same), or a budget that is spent, leaves others to their patience."""
    pool.waits("north")
    for line in ("0.1,nan\n", "0.1,0.2,0.3\n", '"0.1,0.2\n', "0.1\n"):
        (pool.folder / "west.csv").write_text("x,y\n0.5,0.5\n" + line)
        pool.refused("west")
        assert pool.still_waits()
    ledger(pool.folder / "poor", 0.5)
    pool.refused("south", "--ledger", "poor", "--dataset", "rows")
    assert pool.still_waits()


# who ends nothing


def test_a_stranger_a_trial_and_a_second_start_beside_the_first_end_nobodys_wait() -> None:
    keys = Keys()
    here = service(keys, patience=HOUR)
    north, south = keys.party(0), keys.party(1)
    first = in_thread(lambda: here.handle("north", north.hello()))
    until(lambda: here._waiting["north"])
    other = Keys(plan="other bounds")
    for name, data, reason in (
        ("east", other.party(0).hello(), Reason.UNKNOWN_PARTY),
        ("south", other.party(1).check(trial=True), Reason.OTHER_AGREEMENT),
        ("north", keys.party(0).hello(), Reason.DUPLICATE),
    ):
        assert said(here.handle(name, data)).reason is reason
    for party in (south, north):
        party.take_noted(here.handle(party.name, party.check(trial=True)))
    assert here._coordinator.failed is None
    wait([first], 0.3)  # if it was sent away, it is gone by now
    assert not first.done()
    here.stop("enough")
    first.result(10)


def test_a_party_that_comes_back_without_its_journal_ends_the_wait_for_it() -> None:
    keys = Keys()
    here = service(keys, patience=HOUR)
    for reason in (Reason.TIMEOUT, Reason.DUPLICATE):
        assert here._coordinator.failed is None
        assert said(here.handle("north", keys.party(0).hello(), 0.01)).reason is reason
    error = said(here.handle("south", keys.party(1).hello(), 1.0))
    assert "'north' joined this session before, with another nonce" in str(error)


def test_nobody_leaves_or_is_refused_in_the_middle_of_a_session_so_that_it_ends() -> None:
    """Once all have joined, whoever was cut off may come back with its journal."""
    keys = Keys()
    here, (north, *others) = service(keys, patience=HOUR), [keys.party(i) for i in range(3)]
    join(here._coordinator, [north, *others])
    north.take_noted(here.handle("north", north.leave()))
    assert said(here.handle("north", Keys(plan="other").party(0).hello())).reason is Reason.OTHER_AGREEMENT
    assert here._coordinator.failed is None


# certificates


def test_a_program_says_that_its_own_certificate_is_over_before_it_connects(pool: Pool) -> None:
    certified(pool.folder / "old", {"west": 0, "coordinator": 0})
    coordinate = "coordinate plan.toml --listen 127.0.0.1:0 --unsigned"
    for line in (pool.line("west"), pool.line("west", "--check"), coordinate):
        name = "coordinator" if line is coordinate else "west"
        words = refused(f"{line} --cert old/{name}.pem --secret certs/{name}.pool", pool.folder)
        assert f"the certificate of '{name}' is valid from " in words
    assert not pool.log


def test_a_missing_partys_certificate_that_ends_while_others_wait_ends_their_wait() -> None:
    keys = Keys()
    gone = service(keys, patience=HOUR, valid_until={"west": 0.0, "north": 0.0})
    error = said(gone.handle("north", keys.party(0).hello(), 1.0))
    assert (error.reason, error.party) == (Reason.TIMEOUT, "west")
    assert "the certificate of west has expired: it cannot join. Nothing was sent or spent" in str(error)


def test_the_coordinator_knows_from_the_signatures_when_certificates_are_over(
    pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in NAMES:
        ran(f"sign plan.toml --party {name} --cert certs/{name}.pem", pool.folder)
    own = {name: Credentials.read(pool.folder / "certs" / f"{name}.pem") for name in NAMES}
    signed = check_signatures(pool.plan.agreement, pool.folder / "plan.signatures", own["north"].authority)
    assert signed == {name: check_certificate(credentials, name) for name, credentials in own.items()}
    soon = {**signed, "west": datetime.now(UTC)}
    monkeypatch.setattr("cloister.federated.transport.signatures.check_signatures", lambda *given: soon)
    with socket.create_server(("127.0.0.1", 0)) as free:
        pool.address = f"127.0.0.1:{free.getsockname()[1]}"
    pool.begins("north")
    command = f"coordinate plan.toml --listen {pool.address} --cert certs/coordinator.pem --patience 15 --timeout 0.1"
    for words in (refused(command, pool.folder), *pool.told()):
        assert "the certificate of west has expired" in words


# join --check


def test_a_check_tries_everything_and_leaves_nothing_behind(pool: Pool) -> None:
    kept, _ = ledger(pool.folder / "l")
    line = pool.line("west", "--check --journal west.journal --ledger l --dataset rows --out west.json")
    before = sorted(path.name for path in pool.folder.rglob("*"))
    (pool.folder / "west.csv").write_text("x,y,more\n" + "nan,no number,1\n" * 3)  # no cell is looked at
    told = ran(line, pool.folder).stdout
    for part in ("plan: agreement", "certificate: of 'west', until", "columns: x, y are there", "holds the same plan"):
        assert part in told
    assert "nothing was reserved or charged, and nothing about any row was sent" in told
    assert pool.plan.agreement.hash.hex()[:16] in told
    assert sorted(path.name for path in pool.folder.rglob("*")) == before
    assert not kept.runs()
    assert pool.coordinator.missing == NAMES
    assert pool.log == [{"event": "tried", "party": "west", "round": 0}]


def test_a_check_says_what_is_wrong_and_ends_nobodys_wait(pool: Pool) -> None:
    pool.waits("north")
    other = pool.changed("epsilon = 1.0", "epsilon = 2.0")
    assert "epsilon of the plan differs" in pool.refused("west", "--check", plan=other)
    (pool.folder / "west.csv").write_text("x,why\n0,0\n")
    assert "why" in pool.refused("west", "--check")
    assert [entry["event"] for entry in pool.log if entry["party"] == "west"] == ["refused", "tried"]  # law 7
    (pool.folder / "west.csv").write_text("x,y\n0,0\n")
    ledger(pool.folder / "poor", 0.5)
    ran("party-key other.pool", pool.folder)
    for more, words in (
        ("--ledger poor --dataset rows", "0.5"),
        ("--ledger poor --dataset nobody", "nobody"),
        ("--secret other.pool", "does not belong"),
        ("--patience 0.2 --connect 127.0.0.1:9", "127.0.0.1:9 did not answer within 0.2 seconds"),
    ):
        assert words in pool.refused("west", "--check", more)
    ran(pool.line("west", "--check"), pool.folder)
    assert pool.still_waits("west")


# who waits for whom, and for how long


def test_the_first_round_waits_for_timeout_and_not_for_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also after a party that had joined has asked once more to."""
    keys, clock, hellos = Keys(), Clock(monkeypatch), list[bytes]()
    here = service(keys, patience=HOUR**2, timeout=HOUR, attempts=2)
    run = Run(keys, here)

    def twice(data: bytes) -> None:
        if data[5] == Kind.HELLO:
            hellos.append(data)
        if data[5] == Kind.VECTOR:
            here.handle("north", hellos[0])

    run.lines[0].before, run.lines[2].before = twice, kill_at(0)
    run.start_all()
    clock.run(here, run)
    for name in NAMES[:2]:
        with pytest.raises(Rejected, match=r"round 1 was given up.* 0 of 4 rounds") as error:
            run.parties[name].result()
        assert error.value.party == "west"


def test_a_line_whose_patience_ends_names_the_missing_parties_and_not_the_coordinator(certs: Path) -> None:
    keys = Keys()
    with (
        serving(service(keys, patience=HOUR), certs / "ours" / "coordinator.pem") as address,
        closing(Line(address, Credentials.read(certs / "ours" / "north.pem"), 4.0)) as line,
        pytest.raises(Rejected, match="south, west did not") as error,
    ):
        Joined(arrays(PARTS[0]), keys.party(0), line, script()).join()
    assert error.value.reason is Reason.TIMEOUT


def test_a_coordinator_that_is_stopped_and_comes_back_is_waited_for(certs: Path) -> None:
    """Parties cannot tell it from one that was killed: they send again."""
    keys, log = Keys(), list[dict[str, Any]]()
    first, second = (service(keys, patience=patience, log=log.append) for patience in (HOUR, 0.5))
    with serving(first, certs / "ours" / "coordinator.pem") as address:
        line = Line(address, Credentials.read(certs / "ours" / "north.pem"), PATIENCE)
        party = in_thread(lambda: line.exchange(keys.party(0).hello()))
        until(lambda: log)
    with pytest.raises(Stopped):
        first.handle("south", keys.party(1).hello())
    with closing(line), serving(second, certs / "ours" / "coordinator.pem", address):
        assert "south, west did not join" in str(said(party.result(PATIENCE)))
    assert "not joined" in [entry["event"] for entry in log]


def test_a_session_that_was_given_up_goes_on_when_all_come_back_with_their_journals(tmp_path: Path) -> None:
    """What a coordinator says when it ends: start again with the same journals."""
    keys = Keys()
    for clocks in ({"timeout": 0.2, "attempts": 2}, {}):
        *journals, own = [FileJournal(tmp_path / name) for name in (*NAMES, "coordinator")]
        run = Run(keys, service(keys, own, **clocks), list(journals))
        if clocks:
            run.west_dies()
        else:
            run.start_all()
        run.end()
        own.close()
        assert set(run.errors) == (set(NAMES) if clocks else set())
    run.check()


# what a party is told that is cut off


ALONE = "--connect 127.0.0.1:9 --patience 0.2 --ledger north.ledger --dataset rows"
"""How north, which has a ledger, joins where nobody listens."""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_a_log_that_cannot_be_written_is_said_once_and_ends_no_run(capsys: pytest.CaptureFixture[str]) -> None:
    with event_log(Path("/dev/full")) as write:
        write({"event": "joined"})
        write({"event": "round"})
    assert capsys.readouterr().err.count("/dev/full") == 1


def test_a_party_that_fails_before_joining_says_that_others_wait_for_it(pool: Pool) -> None:
    (pool.folder / "north.csv").write_text("x,y\n0.1,nan\n")
    kept, _ = ledger(pool.folder / "north.ledger")
    words = pool.refused("north", ALONE).splitlines()[-1]
    assert "--missing drop" in words
    assert "'north' has not joined" in words
    assert "coordinator" not in words
    assert not kept.runs()


def test_a_party_that_cannot_reach_the_coordinator_says_so_and_what_it_needs_to_go_on(pool: Pool) -> None:
    kept, _ = ledger(pool.folder / "north.ledger")
    words = pool.refused("north", ALONE, "--journal north.journal").splitlines()[-1]
    assert "127.0.0.1:9 did not answer" in words
    assert "start the same command again, with --journal north.journal" in words
    assert [(run.state, run.epsilon) for run in kept.runs()] == [("done", 0.0)]


@pytest.mark.parametrize("journal", [True, False])
def test_a_party_whose_disk_is_full_in_the_middle_names_its_run_and_its_journal(
    journal: bool, pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All have joined; on its disk is no room for a vector."""

    def full(*given: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Joined, "join", lambda self: monkeypatch.setattr(Joined, "opened", True))
    monkeypatch.setattr(Joined, "gather", full)
    kept, _ = ledger(pool.folder / "north.ledger")
    words = pool.refused("north", ALONE, *["--journal north.journal"] * journal).splitlines()[-1]
    (run,) = kept.runs()
    assert run.state == "open"
    assert "No space left on device" in words
    assert run.id in words
    assert (f"--journal north.journal --resume {run.id}" in words) == journal
    assert ("cannot come back" in words) != journal
