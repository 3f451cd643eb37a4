"""A killed run goes on without paying twice, and a full record is the run."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np
import pytest

from cloister.core.budget import Budget
from cloister.core.clustering import Problem
from cloister.core.domains import Box
from cloister.core.errors import Refused
from cloister.core.randomness import NoiseRng
from cloister.core.record import Record
from cloister.core.session import Pending, Session, next_round
from tests.core.core_fakes import BOX, LOOKS, SEED, Charges, Crash, Durable, Explorer, InMemory, copied, same

PROBLEM = Problem(3, BOX, 200, Budget("gaussian", 1e5))
"""Noise well below one row, so that a wrong answer shows, and yet never twice the same."""
ROWS = np.random.default_rng(0).normal(0, 0.5, (200, 2))
ENTRIES = 2 * (2 + LOOKS)
"""What a whole run writes: each round is opened and closed, and each look is an entry."""


def run(journal: Durable, record: Record, process: int, log: list[str], seen: Any = lambda _: None) -> np.ndarray:
    """One process. Its noise is not that of any other process, so that whatever is drawn again shows."""
    session: Session[Any] = Session(
        PROBLEM,
        SEED,
        InMemory(ROWS, log),
        accountant=Charges(log),
        record=record,
        journal=journal,
        noise=NoiseRng.for_tests(process),
    )
    return Explorer(seen=seen).cluster(PROBLEM, session, SEED.child("method")).centers


def whole() -> tuple[np.ndarray, Record]:
    journal = Durable()
    return run(journal, Record(), 1, []), journal.kept


def one_value_per_bucket(record: Record) -> None:
    values: dict[tuple[int, ...], bytes] = {}
    for look in record.lookups:
        for id, value in zip(look.ids.tolist(), look.values, strict=True):
            place = (look.round, look.question, look.level, look.error, id)
            assert values.setdefault(place, value.tobytes()) == value.tobytes(), f"{place} was drawn twice"


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("fail", range(1, ENTRIES + 1))
def test_a_run_that_dies_at_any_entry_goes_on_without_paying_or_drawing_twice(fail: int, after: bool) -> None:
    first = Durable(fail=fail, after=after)
    log: list[str] = []
    seen: list[np.ndarray] = []
    with pytest.raises(Crash):
        run(first, Record(), 1, log, lambda values: seen.append(values.copy()))
    kept = copied(first.kept)
    assert len(first.log) == fail - (not after)
    for look, values in zip(kept.lookups, seen, strict=False):
        assert np.array_equal(look.values, values)
    assert len(seen) <= len(kept.lookups)

    second = Durable(kept=copied(kept))
    log.clear()
    centers = run(second, copied(kept), 2, log)
    rounds = [entry for entry in log if entry.startswith("charge")]
    assert rounds == [f"charge {i}" for i in range(len(kept.digests), 2)]
    assert sum(entry == "gather 0" for entry in log) <= 1
    assert sum(entry == "gather 1" for entry in log) <= 1
    assert second.kept.digests[: len(kept.digests)] == kept.digests
    assert same(second.kept.lookups[: len(kept.lookups)], kept.lookups)
    assert len(second.kept.lookups) == 2 * LOOKS
    one_value_per_bucket(second.kept)
    right = whole()[1].lookups
    assert [look.error for look in second.kept.lookups] == [look.error for look in right]
    assert all(np.allclose(a.values, b.values, rtol=0, atol=3) for a, b in zip(second.kept.lookups, right, strict=True))

    replay: Session[Any] = Session(PROBLEM, SEED, record=copied(second.kept), accountant=Charges(error=Crash()))
    again = Explorer().cluster(PROBLEM, replay, SEED.child("method")).centers
    assert again.tobytes() == centers.tobytes()


@pytest.mark.parametrize("index", [0, 1])
def test_a_round_that_died_while_it_was_read_is_read_again_under_the_same_charge(index: int) -> None:
    log: list[str] = []

    class Fragile:
        def gather(self, round: Any, rng: NoiseRng) -> Any:
            if round.index == index:
                raise Crash
            return InMemory(ROWS, log).gather(round, rng)

    journal = Durable()
    session: Session[Any] = Session(
        PROBLEM, SEED, Fragile(), accountant=Charges(log), journal=journal, noise=NoiseRng.for_tests(1)
    )
    with pytest.raises(Crash):
        Explorer().cluster(PROBLEM, session, SEED.child("method"))
    assert (len(journal.kept.digests), journal.kept.closed) == (index + 1, index)
    run(Durable(kept=copied(journal.kept)), copied(journal.kept), 2, log)
    assert [entry for entry in log if entry.startswith("charge")] == ["charge 0", "charge 1"]
    assert [entry for entry in log if entry.startswith("gather")] == ["gather 0", "gather 1"]


def test_a_run_may_die_many_times() -> None:
    record, log = Record(), list[str]()
    for process in range(1, 30):
        journal = Durable(kept=copied(record), fail=1 if process % 3 else 2, after=True)
        try:
            run(journal, copied(record), process, log)
            break
        except Crash:
            assert same(journal.kept.lookups[: len(record.lookups)], record.lookups)
            record = journal.kept
    assert len(record.lookups) == 2 * LOOKS
    assert [entry for entry in log if entry.startswith("charge")] == ["charge 0", "charge 1"]
    one_value_per_bucket(record)


def test_a_closed_round_whose_looks_are_all_recorded_is_not_read_again() -> None:
    centers, record = whole()
    log: list[str] = []
    journal = Durable(kept=copied(record))
    assert np.array_equal(run(journal, copied(record), 2, log), centers)
    assert log == journal.log == []
    cut = attrs.evolve(copied(record), lookups=copied(record).lookups[:-1])
    run(Durable(kept=copied(cut)), copied(cut), 3, log)
    assert log == ["gather 1"]


@pytest.mark.parametrize("looks", range(2 * LOOKS))
def test_a_record_that_ends_early_is_refused_without_rows(looks: int) -> None:
    _, record = whole()
    record.lookups = record.lookups[:looks]
    session: Session[Any] = Session(PROBLEM, SEED, record=record)
    with pytest.raises(Refused, match=f"record of round {looks // LOOKS} ends early, and there are no rows"):
        Explorer().cluster(PROBLEM, session, SEED.child("method"))
    assert len(record.lookups) == looks


@pytest.mark.parametrize("opened", [1, 2])
def test_a_record_of_one_closed_round_leaves_the_second_one_open(opened: int) -> None:
    _, record = whole()
    partial = Record(record.digests[:opened], 1, record.lookups[:LOOKS])
    pending = next_round(Explorer(), PROBLEM, SEED, partial)
    assert pending.index == 1
    assert pending.digest() == record.digests[1]
    assert (partial.digests, partial.closed, len(partial.lookups)) == (record.digests[:opened], 1, LOOKS)
    with pytest.raises(Pending):
        Explorer().cluster(PROBLEM, Session[Any](PROBLEM, SEED, record=partial), SEED.child("method"))


def test_after_the_last_round_there_is_no_next_one() -> None:
    _, record = whole()
    with pytest.raises(Refused, match="no open round left"):
        next_round(Explorer(), PROBLEM, SEED, record)


@pytest.mark.parametrize("closed", [0, 2])
@pytest.mark.parametrize(
    "other",
    [
        attrs.evolve(PROBLEM, domain=Box((-2.0, -1.0), (1.0, 1.0))),
        attrs.evolve(PROBLEM, budget=attrs.evolve(PROBLEM.budget, amount=PROBLEM.budget.amount / 2)),
    ],
)
def test_a_round_that_was_opened_as_another_one_is_refused(other: Problem, closed: int) -> None:
    _, record = whole()
    record = Record(record.digests, closed, record.lookups if closed else [])
    log: list[str] = []
    for population in (None, InMemory(ROWS, log)):
        session: Session[Any] = Session(other, SEED, population, record=copied(record), accountant=Charges(log))
        with pytest.raises(Refused, match="round 0 is not the one that was opened before"):
            Explorer().cluster(other, session, SEED.child("method"))
    assert log == []


def test_changed_answers_lead_to_another_second_round_which_is_refused() -> None:
    _, record = whole()
    record.lookups[0] = attrs.evolve(record.lookups[0], values=record.lookups[0].values + 5)
    with pytest.raises(Refused, match="round 1 is not the one"):
        Explorer().cluster(PROBLEM, Session[Any](PROBLEM, SEED, record=record), SEED.child("method"))


@pytest.mark.parametrize(
    "changes", [{"ids": np.array([0, 1])}, {"ids": np.array([0, 2, 1])}, {"level": 1}, {"error": True}]
)
def test_a_replay_that_looks_elsewhere_than_its_record_is_refused(changes: dict[str, Any]) -> None:
    _, record = whole()
    record.lookups[0] = attrs.evolve(record.lookups[0], **changes)
    log: list[str] = []
    session: Session[Any] = Session(PROBLEM, SEED, InMemory(ROWS, log), record=record)
    with pytest.raises(Refused, match="round 0 asks for other buckets than the recorded run"):
        Explorer().cluster(PROBLEM, session, SEED.child("method"))
    assert log == []
