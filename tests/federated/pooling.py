"""Three parties that pool a run of four rounds, in threads, without a network: what they have, and how they are cut
off."""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeVar

import numpy as np
import pytest

from cloister.accounting.ledger.ledger import Ledger
from cloister.core.randomness import NoiseRng, PublicRng
from cloister.core.registry.registry import registry
from cloister.core.types import Floats
from cloister.federated.population import Joined
from cloister.federated.protocol.journal import FileJournal, Memory, SessionJournal
from cloister.federated.protocol.messages import Kind, Rejected, read, refused
from cloister.federated.protocol.vectors import PoolRounds
from cloister.federated.transport import service as desk
from cloister.federated.transport.service import CoordinatorService
from cloister.run.account import Account
from cloister.run.fit import fit
from cloister.run.request import Request, prepare
from tests.asking import asking
from tests.federated.federated_session import NAMES, Keys
from tests.in_process import cloister
from tests.waiting import PATIENCE, until

T = TypeVar("T")
ROWS = np.random.default_rng(1).normal(0, 0.4, (900, 2))
PARTS = np.split(ROWS, [300, 500])
FACTS: dict[str, Any] = {
    "k": 3, "method": "fastlloyd", "epsilon": 1.0, "delta": 1e-6, "bounds": "-1:1", "rows": 900, "seed": 7
}  # fmt: skip
HOUR, MOST = 3600.0, 1000
TOML = (
    'k = 3\nepsilon = 1.0\ndelta = 1e-6\nrows = 900\nmethod = "fastlloyd"\nseed = 1\n'
    'columns = ["x", "y"]\nbounds = [[-1, 1], [-1, 1]]\nset = { rounds = 3 }\n\n'
)
"""The head of a plan's file."""


def request(oracle: str = "masked-gaussian", rounds: int = 4, **changes: Any) -> Request:
    options = {"rounds": rounds, "counts.parties": 3, "sums.parties": 3}
    return asking(**{**FACTS, "components": {"counts": oracle, "sums": oracle}, "options": options, **changes})


def arrays(rows: Floats) -> Any:
    return registry().load(registry().spec("Population", "arrays"))(rows)


def pool(parts: list[Floats] = PARTS, masks: str = "pairwise") -> Any:
    """All parties in this process."""
    members = [arrays(part) for part in parts]
    return registry().load(registry().spec("Population", "parties"))(members, masks)


def central(**changes: Any) -> Any:
    """A curator's result, with the noise that the coordinator draws in ``service``."""
    return fit(asking(**{**FACTS, "options": {"rounds": 4}, **changes}), arrays(ROWS), noise=NoiseRng.for_tests(2))


@cache
def script() -> PoolRounds:
    """Of ``request``: it settles nothing."""
    return PoolRounds(prepare(request(), ("0", "1")).forecast(PublicRng.from_seed(7)), (), 3)


def service(
    keys: Keys, journal: SessionJournal | None = None, rounds: PoolRounds | None = None, **clocks: Any
) -> CoordinatorService:
    coordinator, expected = keys.coordinate(journal), (rounds or script()).expected(NoiseRng.for_tests(2))
    for shape, noise in expected:
        coordinator.expect(shape, noise)
    return CoordinatorService(coordinator, len(expected), **{"patience": PATIENCE, "timeout": PATIENCE, **clocks})


def ledger(path: Path, epsilon: float = 1.5) -> tuple[Ledger, Account]:
    made = Ledger.open(path, create=True)
    made.declare("rows", epsilon, 1e-5, "basic")
    return made, Account(ledger=path, dataset="rows")


def said(reply: bytes) -> Rejected:
    """The refusal in a reply."""
    return refused(read(reply, frozenset({Kind.REFUSAL}), "the coordinator"))


def lay_out(folder: Path, plan: str = TOML) -> Path:
    """A folder with a plan, certificates and every party's rows. Args: plan, the head of its file."""
    made = cloister("test-certificates", "certs", *(x for n in NAMES for x in ("--party", n)), folder=folder)
    (folder / "plan.toml").write_text(plan + made.stdout)
    for name, rows in zip(NAMES, PARTS, strict=True):
        write_rows(folder / f"{name}.csv", rows)
    return folder


def write_rows(path: Path, rows: Floats, header: str = "x,y") -> None:
    np.savetxt(path, rows, delimiter=",", header=header, comments="")


class Direct:
    """A party's line to whatever desk there is at the moment. Dies (as a process would) when ``before`` or ``after``
    says so."""

    def __init__(self, name: str, to: Callable[[], CoordinatorService]) -> None:
        self.name, self.to = name, to
        self.before: Callable[[bytes], None] = lambda data: None
        self.after: Callable[[bytes], None] = lambda data: None

    def exchange(self, data: bytes) -> bytes:
        self.before(data)
        reply = self.to().handle(self.name, data)
        self.after(data)
        return reply


class Killed(BaseException):
    """What a killed process does not get to see."""


def kill_at(round: int, kind: Kind = Kind.VECTOR) -> Callable[[bytes], None]:
    def check(data: bytes) -> None:
        if data[5] == kind and int.from_bytes(data[40:44], "little") == round:
            raise Killed

    return check


def in_thread(call: Callable[[], T]) -> Future[T]:
    """What a call comes to, in a thread that outlives no program."""
    future = Future[T]()

    def run() -> None:
        try:
            future.set_result(call())
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return future


class Programs:
    """Programs of their own."""

    def __init__(self) -> None:
        self.running = list[subprocess.Popen[str]]()

    def run(self, words: Sequence[str], folder: Path, **settings: Any) -> subprocess.Popen[str]:
        self.running.append(subprocess.Popen(words, stdout=-1, stderr=-1, text=True, cwd=folder, **settings))
        return self.running[-1]

    def end(self) -> None:
        for process in self.running:
            if process.poll() is None:
                process.kill()
            process.communicate()


def ended(process: subprocess.Popen[str], code: int = 0) -> str:
    """All that a program said, once it has ended with this code."""
    out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == code, out + err
    return out + err


class Run:
    """Three parties in threads, by name."""

    def __init__(self, keys: Keys, here: CoordinatorService, journals: list[SessionJournal] | None = None) -> None:
        self.keys, self.parties = keys, dict[str, Future[Any]]()
        self.journals = journals or [Memory() for _ in NAMES]
        self.lines = [Direct(name, lambda: here) for name in NAMES]

    def fit(self, i: int, account: Account | None) -> Any:
        """One party's centres."""
        noise = NoiseRng.for_tests(2) if account is None else None
        population = Joined(arrays(PARTS[i]), self.keys.party(i, self.journals[i]), self.lines[i], script())
        return fit(request(), population, noise=noise, account=account).centers

    def start(self, i: int, account: Account | None = None) -> None:
        self.parties[NAMES[i]] = in_thread(lambda: self.fit(i, account))

    def start_all(self, *accounts: Account | None) -> None:
        """Args: accounts, of the last parties."""
        for i, account in enumerate([None] * (3 - len(accounts)) + list(accounts)):
            self.start(i, account)

    def west_dies(self, *accounts: Account | None) -> None:
        """All begin, and west is killed while it sends round 3."""
        self.lines[2].before = kill_at(2)
        self.start_all(*accounts)
        assert isinstance(self.parties["west"].exception(PATIENCE), Killed)

    @property
    def errors(self) -> dict[str, BaseException]:
        """What ended those parties that failed, once all have ended."""
        return {name: error for name, party in self.parties.items() if (error := party.exception(PATIENCE))}

    def end(self) -> None:
        assert not wait(self.parties.values(), PATIENCE).not_done
        for journal in self.journals:
            if isinstance(journal, FileJournal):
                journal.close()

    def check(self) -> None:
        """All have the curator's centres."""
        wanted = central().centers
        assert all(np.array_equal(self.parties[name].result(PATIENCE), wanted) for name in NAMES)


class Clock:
    """The service's: an hour passes whenever nobody but west, who was killed, has not sent."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._ahead = 0.0
        monkeypatch.setattr(desk, "time", SimpleNamespace(monotonic=lambda: time.monotonic() + self._ahead))

    def run(self, here: CoordinatorService, run: Run) -> None:
        """Until all parties' threads have ended."""

        def over() -> bool:
            with here._changed:
                if run.parties["west"].done() and here._coordinator.missing == ("west",):
                    self._ahead += HOUR
                    assert self._ahead < MOST * HOUR, "its timeout is over, and it waits"
                    here._changed.notify_all()
            return all(party.done() for party in run.parties.values())

        until(over)
        run.end()
