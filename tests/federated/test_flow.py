"""A pooled run's order: rows are checked, the party's own ledger is asked, and only then does anybody hear of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pytest

from cloister.accounting.ledger.ledger import Ledger
from cloister.core.errors import BudgetExceeded, InvalidInput, Refused
from cloister.core.types import Floats
from cloister.federated.population import Joined
from cloister.federated.protocol.journal import FileJournal, Memory
from cloister.federated.protocol.messages import Kind, Rejected
from cloister.run.account import Account
from cloister.run.fit import fit, parties, source
from cloister.run.request import Request
from tests.federated.federated_session import Keys
from tests.federated.transport.test_service import (
    HOUR,
    NAMES,
    PARTS,
    Clock,
    Direct,
    Killed,
    Run,
    arrays,
    kill_at,
    request,
    script,
    service,
)
from tests.waiting import PATIENCE

HOLES = np.array([[np.nan, 0.0], [0.1, np.inf], [np.nan, np.nan]])


def capped(most: int) -> Request:
    """A plan in which no party has more rows than this."""
    plan = request()
    return attrs.evolve(plan, options={**plan.options, "counts.most_rows": 10**6, "sums.most_rows": most})


class Silent:
    """A line on which the first word ends the run: whoever says one has been let in."""

    def __init__(self) -> None:
        self.said = list[bytes]()

    def exchange(self, data: bytes) -> bytes:
        self.said.append(data)
        raise Killed


def ledger(path: Path, epsilon: float = 1.5) -> tuple[Ledger, Account]:
    made = Ledger.open(path, create=True)
    made.declare("rows", epsilon, 1e-5, "basic")
    return made, Account(ledger=path, dataset="rows")


def stored(rows: Floats, kind: str, folder: Path) -> Any:
    """Rows in memory, or in files of three kinds of parts; those with holes are dropped."""
    if kind == "arrays":
        return source(rows, None, "drop")
    np.save(folder / "a.npy", rows[:100])
    np.savetxt(folder / "b.csv", rows[100:], delimiter=",", header="0,1", comments="")
    return source([str(folder / "a.npy"), str(folder / "b.csv")], ["0", "1"], "drop")


def test_most_rows_counts_the_rows_that_can_be_used_and_one_more_is_refused_before_joining(tmp_path: Path) -> None:
    for kind in ("arrays", "files"):
        line, keys = Silent(), Keys()
        rows = np.concatenate([HOLES, PARTS[0], HOLES])
        with pytest.raises(Killed):
            fit(capped(300), Joined(stored(rows, kind, tmp_path), keys.party(0), line, script()))
        assert len(line.said) == 1
        line = Silent()
        with pytest.raises(InvalidInput, match="most_rows") as error:
            fit(capped(299), Joined(stored(rows, kind, tmp_path), keys.party(0), line, script()))
        assert not line.said
        assert "300" not in str(error.value)


def test_too_many_rows_are_told_to_that_party_alone_and_cost_nothing(tmp_path: Path) -> None:
    keys, log = Keys(), list[dict[str, Any]]()
    here = service(keys, patience=0.5, log=log.append)
    kept, account = ledger(tmp_path / "west.db")
    with pytest.raises(InvalidInput, match="most_rows"):
        fit(
            capped(399),
            Joined(arrays(PARTS[2]), keys.party(2), Direct("west", lambda: here), script()),
            account=account,
        )
    assert not log
    assert not kept.runs("rows")


def test_a_simulation_refuses_too_many_rows_of_one_party_before_it_pays(tmp_path: Path) -> None:
    kept, account = ledger(tmp_path / "all.db")
    members = {name: arrays(part) for name, part in zip(NAMES, PARTS, strict=True)}
    with pytest.raises(InvalidInput, match="most_rows"):
        fit(capped(399), parties(members), account=account)
    assert not kept.runs("rows")
    assert fit(capped(400), parties(members)).privacy.private


def test_the_statement_says_that_the_check_of_most_rows_is_outside_the_guarantee() -> None:
    members = {name: arrays(part) for name, part in zip(NAMES, PARTS, strict=True)}
    text = fit(request(), parties(members)).privacy.text()
    assert "most_rows" in text
    central = Request(k=3, method="fastlloyd", epsilon=1.0, delta=1e-6, bounds="-1:1", rows=900)
    assert "most_rows" not in fit(central, arrays(PARTS[0])).privacy.text()


def test_a_party_without_budget_is_refused_before_anybody_hears_of_it(tmp_path: Path) -> None:
    keys, log = Keys(), list[dict[str, Any]]()
    here = service(keys, patience=0.5, log=log.append)
    _, account = ledger(tmp_path / "north.db", 0.5)
    with pytest.raises(BudgetExceeded):
        fit(
            request(), Joined(arrays(PARTS[0]), keys.party(0), Direct("north", lambda: here), script()), account=account
        )
    assert not log


@pytest.mark.parametrize("why", ["another plan", "others do not come", "ctrl-c"])
def test_a_party_that_cannot_join_gets_its_reservation_back(why: str, tmp_path: Path) -> None:
    keys = Keys()
    here = service(keys, patience=0.2)
    state = Keys(plan="other bounds").party(0) if why == "another plan" else keys.party(0)
    line = Direct("north", lambda: here)
    kept, account = ledger(tmp_path / "north.db")
    if why == "ctrl-c":

        def interrupted(data: bytes) -> None:
            ((held,),) = [data.runs for data in kept.status()]
            assert (held.state, held.epsilon) == ("open", 1.0)
            raise KeyboardInterrupt

        line.before = interrupted
    with pytest.raises(KeyboardInterrupt if why == "ctrl-c" else Rejected):
        fit(request(), Joined(arrays(PARTS[0]), state, line, script()), account=account)
    (status,) = kept.status()
    assert [(run.state, run.epsilon, run.rounds) for run in status.runs] == [("done", 0.0, 0)]
    assert (status.spent.epsilon, status.spent.delta) == (0.0, 0.0)


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize(
    "when", ["before joining", "after joining", "in the middle", "after sending", "after the last answer"]
)
def test_a_killed_party_with_a_ledger_and_a_journal_goes_on_from_wherever_it_was(
    when: str, named: bool, tmp_path: Path
) -> None:
    """Also where nobody is left to answer: a party that has the last answer finishes without the coordinator. And also
    with the same words as before: its journal names the run, and there is never a second one to pay."""
    keys = Keys()
    here = service(keys)
    kept, account = ledger(tmp_path / "west.db", 5.0)
    journal = FileJournal(tmp_path / "west")
    run = Run(keys, lambda: here, [Memory(), Memory(), journal])
    line = run.lines[2]
    if when == "before joining":
        line.before = kill_at(0, Kind.HELLO)
    elif when == "after joining":
        line.after = kill_at(0, Kind.HELLO)
    elif when == "in the middle":
        line.before = kill_at(2)
    elif when == "after sending":
        line.after = kill_at(2)
    for i in range(2):
        run.start(i)
    if when == "after the last answer":
        with pytest.raises(Killed):
            fit(request(), Joined(arrays(PARTS[2]), keys.party(2, journal), line, script()), account=account, keep=dies)
        run.lines[2] = Direct("west", lambda: pytest.fail("the coordinator is gone"))  # type: ignore[arg-type]
    else:
        run.start(2, account)
        run.threads[2].join(PATIENCE)
        assert isinstance(run.errors.pop("west"), Killed)
        run.lines[2] = Direct("west", lambda: here)
    journal.close()
    ((cut,),) = [data.runs for data in kept.status()]
    assert cut.state == "open"
    run.journals[2] = FileJournal(tmp_path / "west")
    run.start(2, attrs.evolve(account, resume=cut.id if named else None))
    run.end()
    assert not run.errors
    assert np.array_equal(run.results["west"], run.results["north"])
    ((paid,),) = [data.runs for data in kept.status()]
    assert (paid.id, paid.state) == (cut.id, "done")
    assert 0.9 < paid.epsilon <= 1.0
    run.lines[2] = Direct("west", lambda: pytest.fail("nobody is asked"))  # type: ignore[arg-type]
    run.journals[2] = FileJournal(tmp_path / "west")
    run.start(2, account)  # and once more, when all is over: the same result, for nothing
    run.end()
    assert np.array_equal(run.results["west"], run.results["north"])
    assert [data.runs for data in kept.status()] == [(paid,)]


def cut_off(keys: Keys, folder: Path, when: tuple[int, Kind]) -> tuple[Ledger, Account, FileJournal]:
    """West's ledger and journal after it was killed when it sent this message."""
    here = service(keys)
    kept, account = ledger(folder / "west.db", 5.0)
    journal = FileJournal(folder / "west")
    run = Run(keys, lambda: here, [Memory(), Memory(), journal])
    run.lines[2].before = kill_at(*when)
    for i in range(3):
        run.start(i, account if i == 2 else None)
    run.threads[2].join(PATIENCE)
    assert isinstance(run.errors["west"], Killed)
    here.stop("enough")
    run.end()
    return kept, account, FileJournal(folder / "west")


@pytest.mark.parametrize("other", ["no ledger", "another ledger", "another data set", "another run"])
def test_a_session_that_is_paid_for_is_charged_nowhere_else(other: str, tmp_path: Path) -> None:
    keys = Keys()
    kept, account, journal = cut_off(keys, tmp_path, (2, Kind.VECTOR))
    (cut,) = kept.runs()
    kept.declare("others", 5.0, 1e-5)
    elsewhere, there = ledger(tmp_path / "other.db", 5.0)
    given = {
        "no ledger": None,
        "another ledger": there,
        "another data set": attrs.evolve(account, dataset="others"),
        "another run": attrs.evolve(account, resume="0123456789ab"),
    }[other]
    line = Silent()
    with pytest.raises(Refused, match=rf"paid for by run {cut.id} of the data set 'rows': give the ledger"):
        fit(request(), Joined(arrays(PARTS[2]), keys.party(2, journal), line, script()), account=given)
    assert (kept.runs(), elsewhere.runs(), line.said) == ((cut,), (), [])
    journal.close()


def test_a_journal_knows_the_run_before_the_ledger_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that dies right after the reservation has not lost it, and one that dies right before has none."""
    keys, kept_reserve = Keys(), Ledger.reserve
    kept, account = ledger(tmp_path / "west.db", 5.0)
    for after in (False, True):

        def dies(self: Ledger, *given: Any, reserves: bool = after) -> None:
            if reserves:
                kept_reserve(self, *given)
            raise Killed

        journal = FileJournal(tmp_path / "west")
        monkeypatch.setattr(Ledger, "reserve", dies)
        with pytest.raises(Killed):
            fit(request(), Joined(arrays(PARTS[2]), keys.party(2, journal), Silent(), script()), account=account)
        journal.close()
    monkeypatch.undo()
    (cut,) = kept.runs()
    journal = FileJournal(tmp_path / "west")
    again = Joined(arrays(PARTS[2]), keys.party(2, journal), Silent(), script())
    assert again.payer == ("rows", cut.id)
    with pytest.raises(Killed):
        fit(request(), again, account=account)
    assert kept.runs() == (cut,)
    journal.close()


def test_a_party_that_got_its_reservation_back_pays_anew(tmp_path: Path) -> None:
    keys = Keys()
    here = service(keys, patience=0.2)
    kept, account = ledger(tmp_path / "north.db")
    journal = Memory()
    for _ in range(2):
        state = keys.party(0, journal)
        with pytest.raises(Rejected):
            fit(request(), Joined(arrays(PARTS[0]), state, Direct("north", lambda: here), script()), account=account)
    assert [(run.state, run.epsilon) for run in kept.runs()] == [("done", 0.0), ("done", 0.0)]


def dies(result: Any) -> None:
    raise Killed


def test_a_party_that_lost_its_journal_keeps_what_its_rounds_have_cost_as_spent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its reservation is not given back because it cannot join again: rounds were opened."""
    keys, clock = Keys(), Clock(monkeypatch)
    here = service(keys, timeout=HOUR, attempts=1)
    kept, account = ledger(tmp_path / "west.db")
    run = Run(keys, lambda: here)
    run.lines[2].before = kill_at(2)
    for i in range(3):
        run.start(i, account if i == 2 else None)
    run.threads[2].join(PATIENCE)
    ((cut,),) = [data.runs for data in kept.status()]
    again = Joined(arrays(PARTS[2]), keys.party(2), Direct("west", lambda: here), script())
    with pytest.raises(Rejected):
        fit(request(), again, account=attrs.evolve(account, resume=cut.id))
    clock.run(here, run)
    ((held,),) = [data.runs for data in kept.status()]
    assert (held.state, held.epsilon, held.rounds) == ("open", 1.0, 3)


def test_the_ledgers_run_is_told_once_it_cannot_be_given_back(tmp_path: Path) -> None:
    kept, account = ledger(tmp_path / "all.db")
    told = list[str]()
    members = {name: arrays(part) for name, part in zip(NAMES, PARTS, strict=True)}
    fit(request(), parties(members), account=account, reserved=told.append)
    assert told == [run.id for run in kept.runs("rows")]
