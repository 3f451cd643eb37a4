"""Patience is for silence: a refused party, a wrong column and a certificate that is over end everybody's wait at once,
over real connections. And what ``join --check`` tries beforehand."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import attrs
import pytest

pytest.importorskip("grpc")

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from cloister.commands.coordinate import in_words
from cloister.core.errors import InvalidInput, Refused
from cloister.federated.plan import FederatedPlan, read_pool_plan
from cloister.federated.population import Joined
from cloister.federated.protocol.coordinator import Coordinator
from cloister.federated.protocol.messages import Reason, Rejected
from cloister.federated.protocol.party import Party
from cloister.federated.transport.certificates import Credentials, _certificate, write_secret
from cloister.federated.transport.service import CoordinatorService
from cloister.federated.transport.signatures import check_certificate, check_signatures
from cloister.federated.transport.tls import Line, Server
from tests.federated.federated_session import NAMES, Keys
from tests.federated.pooling import HOUR, PARTS, arrays, lay_out, ledger, said, service, write_rows
from tests.in_process import cloister
from tests.waiting import until

pytestmark = pytest.mark.thorough


class Pool:
    """A coordinator that listens, and the files of three parties. All wait for an hour, if nothing ends it."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.log = folder, list[dict[str, Any]]()
        lay_out(folder)
        self.plan = self.read("plan.toml")
        self.coordinator = Coordinator(self.plan.agreement, private=self.private("coordinator"))
        rounds = self.plan.script.expected(self.plan.noise)
        for shape, noise in rounds:
            self.coordinator.expect(shape, noise)
        self.desk = CoordinatorService(self.coordinator, len(rounds), patience=HOUR, timeout=HOUR, log=self.log.append)
        self.server = Server(self.desk, "127.0.0.1:0", self.credentials("coordinator"), 3, 2**20)
        self.server.start()
        self.errors = dict[str, BaseException]()
        self.threads = list[threading.Thread]()
        self.address = f"127.0.0.1:{self.server.port}"

    def read(self, plan: str) -> FederatedPlan:
        return read_pool_plan(self.folder / plan)

    def credentials(self, name: str) -> Credentials:
        return Credentials.read(self.folder / "certs" / f"{name}.pem")

    def changed(self, old: str, new: str) -> str:
        """Another copy of the plan."""
        text = (self.folder / "plan.toml").read_text()
        assert old in text
        (self.folder / "other.toml").write_text(text.replace(old, new))
        return "other.toml"

    def private(self, name: str) -> bytes:
        return (self.folder / "certs" / f"{name}.pool").read_bytes()

    def sign(self) -> None:
        for name in NAMES:
            cloister("sign", "plan.toml", "--party", name, "--cert", f"certs/{name}.pem", folder=self.folder)

    def begins(self, name: str) -> None:
        """This party joins, in a thread."""

        def joins() -> None:
            line = Line(self.address, self.credentials(name), HOUR)
            state = Party(self.plan.agreement, name, private=self.private(name))
            try:
                Joined(arrays(PARTS[0]), state, line, self.plan.script).join()
            except Refused as error:
                self.errors[name] = error
            line.close()

        self.threads.append(threading.Thread(target=joins, daemon=True))
        self.threads[-1].start()

    def waits(self, *names: str) -> None:
        """These parties have joined, and wait for the others."""
        for name in names:
            self.begins(name)
        until(lambda: {e["party"] for e in self.log if e["event"] == "hello"} >= set(names))

    def still_waits(self, *others: str) -> bool:
        """Whether nothing ended the wait of the first one, and nobody but these was heard of."""
        heard = {e["party"] for e in self.log} <= {"north", *others}
        return heard and self.coordinator.failed is None and self.threads[0].is_alive()

    def join(self, name: str, *more: str, plan: str = "plan.toml", address: str | None = None) -> Any:
        command = f"join {plan} --party {name} --data {name}.csv --cert certs/{name}.pem --unsigned --connect"
        return cloister(*command.split(), address or self.address, *more, folder=self.folder)

    def told(self) -> dict[str, str]:
        """What those who waited were told, at once."""
        for thread in self.threads:
            thread.join(10)
        assert not any(thread.is_alive() for thread in self.threads)
        assert all(isinstance(e, Rejected) and e.reason is Reason.TIMEOUT for e in self.errors.values())
        return {name: str(error) for name, error in self.errors.items()}

    def ended(self) -> str:
        """Why the coordinator ends, once everybody has been told: it waits for nobody any longer."""
        found = list[str]()

        def finishes() -> None:
            try:
                self.desk.finished(idle=HOUR)
            except Rejected as error:
                found.append(str(error))

        thread = threading.Thread(target=finishes, daemon=True)
        thread.start()
        thread.join(10)
        assert not thread.is_alive()
        return found[0]

    def end(self) -> None:
        self.desk.stop()
        self.server.stop(0)


@pytest.fixture
def pool(tmp_path: Path) -> Iterator[Pool]:
    made = Pool(tmp_path)
    yield made
    made.end()


def test_a_party_with_another_plan_ends_everybodys_wait_at_once_and_who_comes_later_is_told_too(pool: Pool) -> None:
    pool.waits("north")
    done = pool.join("west", plan=pool.changed("bounds = [[-1, 1], [-1, 1]]", "bounds = [[-1, 1], [-1, 2]]"))
    assert done.returncode == 2
    words = "'west' agreed to something else: bounds of the plan differs"
    assert words in done.stderr
    told = pool.told()["north"]
    assert words in told
    assert "nothing was sent or spent" in told
    assert words in pool.join("south").stderr
    assert words in pool.ended()


CHANGES = {
    "k": ("k = 3", "k = 4"),
    "epsilon": ("epsilon = 1.0", "epsilon = 2.0"),
    "delta": ("1e-6", "1e-7"),
    "rows": ("rows = 900", "rows = 901"),
    "method": ('"fastlloyd"', '"gauss-lloyd"'),
    "seed": ("seed = 1", "seed = 2"),
    "columns": ('["x", "y"]', '["x", "z"]'),
    "set": ("rounds = 3", "rounds = 4"),
    "oracle": ("seed = 1\n", 'seed = 1\noracle = "masked-gaussian"\n'),
    "zoom": ("seed = 1\n", "seed = 1\nzoom = 0.1\n"),
    "party": ('name = "south"', 'name = "east"'),
    "k, epsilon": ("k = 3\nepsilon = 1.0", "k = 2\nepsilon = 0.5"),
}


def test_each_entry_that_differs_is_named_and_no_other(pool: Pool) -> None:
    private = pool.private("north")
    key = (pool.folder / "plan.toml").read_text().split('coordinator_key = "')[1][:64]
    for entry, change in {**CHANGES, "coordinator_key": (key, "09" + 31 * "00")}.items():
        other = pool.read(pool.changed(*change)).agreement
        with pytest.raises(Rejected, match=f"something else: {entry} of the plan differs") as error:
            pool.coordinator.receive("north", Party(other, "north", private=private).check())
        assert error.value.reason is Reason.OTHER_AGREEMENT


def test_numbers_that_are_equal_are_the_same_entry_and_what_is_left_out_has_its_default(pool: Pool) -> None:
    pool.changed("epsilon = 1.0\n", 'epsilon = 1\nmasks = "pairwise"\nscale = "none"\n')
    (pool.folder / "other.toml").write_text('coordinator = "x:1"\n' + (pool.folder / "other.toml").read_text())
    other = pool.read("other.toml").agreement
    assert other == pool.plan.agreement
    assert "cloister's version" in dict(other.outline)


def test_a_wrong_column_ends_everybodys_wait_at_once(pool: Pool) -> None:
    pool.waits("north", "south")
    write_rows(pool.folder / "west.csv", PARTS[2], "x,why")
    done = pool.join("west", "--journal", "west.journal")
    assert done.returncode == 2
    assert "y" in done.stderr
    assert all("'west' cannot begin" in words for words in pool.told().values())
    assert "west cannot begin" in [in_words(entry, 3, 3) for entry in pool.log]
    assert len(pool.told()) == 2


def test_what_a_check_of_the_rows_says_is_told_to_nobody_else(pool: Pool) -> None:
    """Law 7: a missing cell, a line that cannot be read (it is found when the file is opened, and is one row's fault
    all the same), or a budget that is spent, leaves others to their patience."""
    pool.waits("north")
    for line in ("0.1,nan\n", "0.1,0.2,0.3\n", '"0.1,0.2\n', "0.1\n"):
        (pool.folder / "west.csv").write_text("x,y\n0.5,0.5\n" + line)
        assert pool.join("west").returncode == 2
        assert pool.still_waits()
    ledger(pool.folder / "poor", 0.5)
    assert pool.join("south", "--ledger", "poor", "--dataset", "rows").returncode == 2
    assert pool.still_waits()


# who ends nothing


def test_a_stranger_a_trial_and_a_second_start_beside_the_first_end_nobodys_wait() -> None:
    keys = Keys()
    here, log = service(keys, patience=HOUR), list[bytes]()
    first = threading.Thread(target=lambda: log.append(here.handle("north", keys.party(0).hello())), daemon=True)
    first.start()
    until(lambda: here._waiting["north"])
    other = Keys(plan="other bounds")
    assert said(here.handle("east", other.party(0).hello())).reason is Reason.UNKNOWN_PARTY
    assert said(here.handle("south", other.party(1).check(trial=True))).reason is Reason.OTHER_AGREEMENT
    keys.party(1).noted(here.handle("south", keys.party(1).check(trial=True)))
    keys.party(0).noted(here.handle("north", keys.party(0).check(trial=True)))
    assert said(here.handle("north", keys.party(0).hello())).reason is Reason.DUPLICATE
    assert here._coordinator.failed is None
    first.join(0.3)  # if it was sent away, it is gone by now
    assert first.is_alive()
    here.stop("enough")
    first.join(10)


def test_a_party_that_comes_back_without_its_journal_ends_the_wait_for_it() -> None:
    keys = Keys()
    here = service(keys, patience=HOUR)
    assert said(here.handle("north", keys.party(0).hello(), 0.01)).reason is Reason.TIMEOUT
    assert here._coordinator.failed is None
    assert said(here.handle("north", keys.party(0).hello(), 0.01)).reason is Reason.DUPLICATE
    error = said(here.handle("south", keys.party(1).hello(), 1.0))
    assert "'north' joined this session before, with other coins" in str(error)


def test_nobody_leaves_or_is_refused_in_the_middle_of_a_session_so_that_it_ends() -> None:
    """Once all have joined, whoever was cut off may come back with its journal."""
    keys = Keys()
    here = service(keys, patience=HOUR)
    machines = [keys.party(i) for i in range(3)]
    for machine in machines:
        here._coordinator.receive(machine.name, machine.hello())
    machines[0].noted(here.handle("north", machines[0].leave()))
    assert said(here.handle("north", Keys(plan="other").party(0).hello())).reason is Reason.OTHER_AGREEMENT
    assert here._coordinator.failed is None


# certificates


def certified(folder: Path, days: dict[str, int], authority_days: int = 30) -> Path:
    """Certificates that are over in so many days; 0: over since now."""
    folder.mkdir()
    authority = ec.generate_private_key(ec.SECP256R1())
    root = _certificate("an authority", authority, None, authority, authority_days)
    (folder / "ca.pem").write_bytes(root.public_bytes(Encoding.PEM))
    for name, left in days.items():
        key = ec.generate_private_key(ec.SECP256R1())
        (folder / f"{name}.pem").write_bytes(_certificate(name, key, root, authority, left).public_bytes(Encoding.PEM))
        write_secret(folder / f"{name}.key", key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return folder


@pytest.mark.parametrize(
    ("old", "why"),
    [
        ("west", r"the coordinator's is in order here, so that it refuses this party's: .* its clock \(here it is 20"),
        (
            "coordinator",
            r"the coordinator's certificate is not valid today, but .* this machine's clock, which says 20",
        ),
    ],
)
def test_a_certificate_that_is_over_is_refused_by_the_other_end_at_once(tmp_path: Path, old: str, why: str) -> None:
    folder = certified(tmp_path / "certs", {"coordinator": 30, "west": 30} | {old: 0})
    keys = Keys()
    server = Server(service(keys, patience=HOUR), "127.0.0.1:0", Credentials.read(folder / "coordinator.pem"), 3, 2**20)
    server.start()
    line = Line(f"127.0.0.1:{server.port}", Credentials.read(folder / "west.pem"), HOUR)
    with pytest.raises(Refused, match=f"do not accept each other's certificates: {why}"):
        line.exchange(keys.party(2).check())
    line.close()
    server.stop(0)


def test_a_program_says_that_its_own_certificate_is_over_before_it_connects(pool: Pool) -> None:
    pool.waits("north")
    certified(pool.folder / "old", {"west": 0, "coordinator": 0})
    for more in ((), ("--check",)):
        done = pool.join("west", "--cert", "old/west.pem", "--secret", "certs/west.pool", *more)
        assert done.returncode == 2
        assert "the certificate of 'west' is not valid today, but from " in done.stderr
    command = "coordinate plan.toml --listen 127.0.0.1:0 --cert old/coordinator.pem --unsigned --secret"
    done = cloister(*command.split(), "certs/coordinator.pool", folder=pool.folder)
    assert done.returncode == 2
    assert "the certificate of 'coordinator' is not valid today" in done.stderr
    assert pool.coordinator.failed is None


def test_ones_own_certificate_has_ones_name_ones_key_and_a_living_authority(tmp_path: Path) -> None:
    folder = certified(tmp_path / "certs", {"west": 30, "east": 30})
    west, east = (Credentials.read(folder / f"{name}.pem") for name in ("west", "east"))
    assert check_certificate(west, "west") > datetime.now(UTC) + timedelta(days=29)
    with pytest.raises(InvalidInput, match="is of west, not of 'east'"):
        check_certificate(west, "east")
    with pytest.raises(InvalidInput, match="the private key is not the certificate's"):
        check_certificate(attrs.evolve(west, key=east.key), "west")
    ended = Credentials.read(certified(tmp_path / "ended", {"west": 30}, authority_days=0) / "west.pem")
    with pytest.raises(InvalidInput, match="the authority's certificate is not valid today"):
        check_certificate(ended, "west")
    check_certificate(attrs.evolve(west, authority=ended.authority + west.authority), "west")


def test_a_missing_partys_certificate_that_ends_while_others_wait_ends_their_wait() -> None:
    keys = Keys()
    gone = service(keys, patience=HOUR, valid_until={"west": 0.0, "north": 0.0})
    error = said(gone.handle("north", keys.party(0).hello(), 1.0))
    assert (error.reason, error.party) == (Reason.TIMEOUT, "west")
    assert "the certificate of west is over: it cannot join. Nothing was sent or spent" in str(error)


def test_the_coordinator_knows_from_the_signatures_when_certificates_are_over(
    pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool.sign()
    signed = check_signatures(pool.plan.agreement, pool.folder / "plan.signatures", pool.credentials("north").authority)
    assert signed == {name: check_certificate(pool.credentials(name), name) for name in NAMES}
    soon = {**signed, "west": datetime.now(UTC)}
    monkeypatch.setattr("cloister.federated.transport.signatures.check_signatures", lambda *given: soon)
    pool.server.stop(0)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        pool.address = f"127.0.0.1:{free.getsockname()[1]}"
    pool.begins("north")
    command = f"coordinate plan.toml --listen {pool.address} --cert certs/coordinator.pem --patience 15 --timeout 0.1"
    done = cloister(*command.split(), folder=pool.folder)
    assert done.returncode == 2
    assert "the certificate of west is over" in done.stderr
    assert "the certificate of west is over" in pool.told()["north"]


# join --check


def test_a_check_tries_everything_and_leaves_nothing_behind(pool: Pool) -> None:
    pool.sign()
    kept, _ = ledger(pool.folder / "l")
    more = ("--check", "--journal", "west.journal", "--ledger", "l", "--dataset", "rows", "--out", "west.json")
    before = sorted(path.name for path in pool.folder.rglob("*"))
    (pool.folder / "west.csv").write_text("x,y,more\n" + "nan,no number,1\n" * 3)  # no cell is looked at
    done = pool.join("west", *more)
    assert done.returncode == 0, done.stderr
    for part in ("plan: agreement", "certificate: of 'west', until", "columns: x, y are there", "holds the same plan"):
        assert part in done.stdout
    assert "nothing was reserved or charged, and nothing of a row was sent" in done.stdout
    facts = json.loads(pool.join("west", *more, "--json").stdout)
    assert (facts["parties"], facts["party"], facts["columns"]) == (list(NAMES), "west", ["x", "y"])
    assert facts["agreement"] == pool.plan.agreement.hash.hex()
    assert sorted(path.name for path in pool.folder.rglob("*")) == before
    assert not kept.runs()
    assert pool.coordinator.missing == NAMES
    assert pool.log == 2 * [{"event": "tried", "party": "west", "round": 0}]


def test_a_check_says_what_is_wrong_and_ends_nobodys_wait(pool: Pool) -> None:
    pool.waits("north")
    other = pool.changed("epsilon = 1.0", "epsilon = 2.0")
    assert "epsilon of the plan differs" in pool.join("west", "--check", plan=other).stderr
    (pool.folder / "west.csv").write_text("x,why\n0,0\n")
    assert "why" in pool.join("west", "--check").stderr
    assert [entry["event"] for entry in pool.log if entry["party"] == "west"] == ["refused", "tried"]  # law 7
    (pool.folder / "west.csv").write_text("x,y\n0,0\n")
    ledger(pool.folder / "poor", 0.5)
    assert "0.5" in pool.join("west", "--check", "--ledger", "poor", "--dataset", "rows").stderr
    assert "nobody" in pool.join("west", "--check", "--ledger", "poor", "--dataset", "nobody").stderr
    cloister("party-key", "other.pool", folder=pool.folder)
    assert "does not belong" in pool.join("west", "--check", "--secret", "other.pool").stderr
    nobody = pool.join("west", "--check", "--patience", "0.2", address="127.0.0.1:9")
    assert "127.0.0.1:9 did not answer within 0.2 seconds" in nobody.stderr
    assert pool.join("west", "--check").returncode == 0
    assert pool.still_waits("west")
