"""A pooled run's order: rows are checked, the party's own ledger is asked, and only then does anybody hear of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pytest

from cloister.accounting.ledger.ledger import Ledger
from cloister.core.errors import BudgetExceeded, InvalidInput, Refused
from cloister.federated.population import Joined
from cloister.federated.protocol.journal import FileJournal, Memory, SessionJournal
from cloister.federated.protocol.messages import Kind, Rejected
from cloister.federated.protocol.party import Party
from cloister.run.account import Account
from cloister.run.fit import fit, parties, source
from cloister.run.request import Request
from tests.federated.federated_session import NAMES, Keys
from tests.federated.pooling import (
    FACTS,
    HOUR,
    PARTS,
    Clock,
    Direct,
    Killed,
    Run,
    arrays,
    kill_at,
    ledger,
    request,
    script,
    service,
    write_rows,
)
from tests.waiting import PATIENCE

HOLES = np.array([[np.nan, 0.0], [0.1, np.inf], [np.nan, np.nan]])
MEMBERS = {name: arrays(part) for name, part in zip(NAMES, PARTS, strict=True)}


def capped(most: int) -> Request:
    """A plan in which no party has more rows than this."""
    plan = request()
    return attrs.evolve(plan, method=plan.method.given(options={"counts.most_rows": 10**6, "sums.most_rows": most}))


class Silent:
    """A line on which the first word ends the run: whoever says one has been let in."""

    def __init__(self) -> None:
        self.said = list[bytes]()

    def exchange(self, data: bytes) -> bytes:
        self.said.append(data)
        raise Killed


def pools(state: Party, line: Any, account: Account | None = None, plan: Request | None = None, **more: Any) -> Any:
    """One party's run, on its rows."""
    return fit(plan or request(), Joined(arrays(PARTS[state.me]), state, line, script()), account=account, **more)


def test_most_rows_counts_the_rows_that_can_be_used_and_one_more_is_refused_before_joining(tmp_path: Path) -> None:
    """In files of two kinds, of which rows with holes are dropped."""
    rows = np.concatenate([HOLES, PARTS[0], HOLES])
    np.save(tmp_path / "a.npy", rows[:100])
    write_rows(tmp_path / "b.csv", rows[100:], "0,1")
    own = source([str(tmp_path / "a.npy"), str(tmp_path / "b.csv")], columns=["0", "1"], missing="drop")
    line, keys = Silent(), Keys()
    with pytest.raises(InvalidInput, match="most_rows") as error:
        fit(capped(299), Joined(own, keys.party(0), line, script()))
    assert not line.said
    assert "300" not in str(error.value)
    with pytest.raises(Killed):
        fit(capped(300), Joined(own, keys.party(0), line, script()))
    assert len(line.said) == 1


def test_too_many_rows_are_told_to_that_party_alone_and_cost_nothing(tmp_path: Path) -> None:
    """As they do in a simulation, whose statement says that this check is outside the guarantee."""
    line = Silent()
    kept, account = ledger(tmp_path / "west.db")
    for run in (
        lambda: pools(Keys().party(2), line, account, capped(399)),
        lambda: fit(capped(399), parties(MEMBERS), account=account),
    ):
        with pytest.raises(InvalidInput, match="most_rows"):
            run()
    assert not line.said
    assert not kept.runs("rows")
    told = list[str]()
    text = fit(capped(400), parties(MEMBERS), account=account, reserved=told.append).privacy.text()
    assert told == [run.id for run in kept.runs("rows")]
    assert "most_rows" in text
    assert "most_rows" not in fit(Request(**FACTS), MEMBERS["north"]).privacy.text()


def test_a_party_without_budget_is_refused_before_anybody_hears_of_it(tmp_path: Path) -> None:
    line = Silent()
    _, account = ledger(tmp_path / "north.db", 0.5)
    with pytest.raises(BudgetExceeded):
        pools(Keys().party(0), line, account)
    assert not line.said


@pytest.mark.parametrize("why", ["others do not come", "ctrl-c"])
def test_a_party_that_cannot_join_gets_its_reservation_back_and_pays_anew_the_next_time(
    why: str, tmp_path: Path
) -> None:
    keys, journal = Keys(), Memory()
    here = service(keys, patience=0.1)
    kept, account = ledger(tmp_path / "north.db")
    line = Direct("north", lambda: here)
    if why == "ctrl-c":

        def interrupted(data: bytes) -> None:
            held = kept.runs()[-1]
            assert (held.state, held.epsilon) == ("open", 1.0)
            raise KeyboardInterrupt

        line.before = interrupted
    for times in (1, 2):
        state = keys.party(0, journal)
        with pytest.raises(KeyboardInterrupt if why == "ctrl-c" else Rejected):
            pools(state, line, account)
        (status,) = kept.status()
        assert [(run.state, run.epsilon, run.rounds) for run in status.runs] == [("done", 0.0, 0)] * times
        assert (status.spent.epsilon, status.spent.delta) == (0.0, 0.0)


MOMENTS = {
    "before joining": ("before", kill_at(0, Kind.HELLO)),
    "after joining": ("after", kill_at(0, Kind.HELLO)),
    "in the middle": ("before", kill_at(2)),
    "after sending": ("after", kill_at(2)),
}
"""When west's line kills it."""


@pytest.mark.parametrize("when", [*MOMENTS, "after the last answer"])
def test_a_killed_party_with_a_ledger_and_a_journal_goes_on_from_wherever_it_was(when: str, tmp_path: Path) -> None:
    """Also where nobody is left to answer: a party that has the last answer finishes without the coordinator. And also
    with the same words as before: its journal names the run, and there is never a second one to pay."""
    keys = Keys()
    here = service(keys)
    kept, account = ledger(tmp_path / "west.db", 5.0)
    journal = FileJournal(tmp_path / "west")
    run = Run(keys, here, [Memory(), Memory(), journal])
    gone = Direct("west", lambda: pytest.fail("the coordinator is gone"))  # type: ignore[arg-type]
    if when in MOMENTS:
        setattr(run.lines[2], *MOMENTS[when])
        run.start_all(account)
        assert isinstance(run.parties["west"].exception(PATIENCE), Killed)
        run.lines[2] = Direct("west", lambda: here)
    else:
        run.start(0)
        run.start(1)
        with pytest.raises(Killed):
            pools(keys.party(2, journal), run.lines[2], account, keep=dies)
        run.lines[2] = gone
    journal.close()
    (cut,) = kept.runs()
    assert cut.state == "open"
    named = when in ("after joining", "after sending")
    for resume in (cut.id if named else None, None):  # and once more, when all is over: the same result, for nothing
        run.journals[2] = FileJournal(tmp_path / "west")
        run.start(2, attrs.evolve(account, resume=resume))
        run.end()
        assert np.array_equal(run.parties["west"].result(), run.parties["north"].result())
        (paid,) = kept.runs()
        assert (paid.id, paid.state) == (cut.id, "done")
        assert 0.9 < paid.epsilon <= 1.0
        run.lines[2] = gone


def test_a_session_that_is_paid_for_is_charged_nowhere_else(tmp_path: Path) -> None:
    keys = Keys()
    here = service(keys)
    kept, account = ledger(tmp_path / "west.db", 5.0)
    run = Run(keys, here, [Memory(), Memory(), FileJournal(tmp_path / "west")])
    run.west_dies(account)
    here.stop("enough")
    run.end()
    (cut,) = kept.runs()
    kept.declare("others", 5.0, 1e-5)
    elsewhere, there = ledger(tmp_path / "other.db", 5.0)
    journal, line = FileJournal(tmp_path / "west"), Silent()
    for given in (
        None,
        there,
        attrs.evolve(account, dataset="others"),
        attrs.evolve(account, resume="0123456789ab"),
    ):
        with pytest.raises(Refused, match=rf"paid for by run {cut.id} of the data set 'rows': give the ledger"):
            pools(keys.party(2, journal), line, given)
        assert (kept.runs(), elsewhere.runs(), line.said) == ((cut,), (), [])
    journal.close()


def test_a_journal_knows_the_run_before_the_ledger_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that dies right after the reservation has not lost it, and one that dies right before has none."""
    keys, reserve = Keys(), Ledger.reserve
    journal: SessionJournal = Memory()
    kept, account = ledger(tmp_path / "west.db", 5.0)
    for after in (False, True):

        def dies(self: Ledger, *given: Any, reserves: bool = after) -> None:
            if reserves:
                reserve(self, *given)
            raise Killed

        monkeypatch.setattr(Ledger, "reserve", dies)
        with pytest.raises(Killed):
            pools(keys.party(2, journal), Silent(), account)
    monkeypatch.undo()
    (cut,) = kept.runs()
    again = keys.party(2, journal)
    assert again.payer == ("rows", cut.id)
    with pytest.raises(Killed):
        pools(again, Silent(), account)
    assert kept.runs() == (cut,)


def dies(result: Any) -> None:
    raise Killed


def test_a_party_that_lost_its_journal_keeps_what_its_rounds_have_cost_as_spent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its reservation is not given back because it cannot join again: rounds were opened."""
    keys, clock = Keys(), Clock(monkeypatch)
    here = service(keys, timeout=HOUR, attempts=1)
    kept, account = ledger(tmp_path / "west.db")
    run = Run(keys, here)
    run.west_dies(account)
    (cut,) = kept.runs()
    with pytest.raises(Rejected):
        pools(keys.party(2), Direct("west", lambda: here), attrs.evolve(account, resume=cut.id))
    clock.run(here, run)
    (held,) = kept.runs()
    assert (held.state, held.epsilon, held.rounds) == ("open", 1.0, 3)
