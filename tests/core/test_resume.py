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
from cloister.core.session import Session, next_round
from tests.core.core_fakes import BOX, LOOKS, SEED, Charges, Crash, Durable, Explorer, InMemory, copied, same

PROBLEM = Problem(3, BOX, 200, Budget("gaussian", 1e5))
"""Noise well below one row, so that a wrong answer shows, and yet never twice the same."""
ROWS = np.random.default_rng(0).normal(0, 0.5, (200, 2))
ENTRIES = 2 * (2 + LOOKS)
"""What a whole run writes: each round is opened and closed, and each look is an entry."""


def session_of(record: Record | None = None, problem: Problem = PROBLEM, population: Any = None, **more: Any) -> Any:
    return Session[Any](problem, SEED, population, record=record, **more)


def explored(session: Session[Any], seen: Any = lambda _: None) -> np.ndarray:
    return Explorer(seen=seen).cluster(session.problem, session, SEED.child("method")).centers


def run(journal: Durable, record: Record, process: int, log: list[str], seen: Any = lambda _: None) -> np.ndarray:
    """One process. Its noise is not that of any other process, so that whatever is drawn again shows."""
    books, noise = Charges(log), NoiseRng.for_tests(process)
    rows = InMemory(ROWS, log)
    return explored(session_of(record, population=rows, accountant=books, journal=journal, noise=noise), seen)


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
    log, seen = list[str](), list[np.ndarray]()
    with pytest.raises(Crash):
        run(first, Record(), 1, log, lambda values: seen.append(values.copy()))
    kept = copied(first.kept)
    assert len(first.log) == fail - (not after)
    assert len(seen) <= len(kept.lookups)
    for look, values in zip(kept.lookups, seen, strict=False):
        assert np.array_equal(look.values, values)

    second = Durable(kept=copied(kept))
    log.clear()
    centers = run(second, copied(kept), 2, log)
    assert [entry for entry in log if "charge" in entry] == [f"charge {i}" for i in range(len(kept.digests), 2)]
    assert max(log.count("gather 0"), log.count("gather 1")) <= 1
    assert second.kept.digests[: len(kept.digests)] == kept.digests
    assert same(second.kept.lookups[: len(kept.lookups)], kept.lookups)
    one_value_per_bucket(second.kept)
    for look, right in zip(second.kept.lookups, whole()[1].lookups, strict=True):
        assert look.error == right.error
        assert np.allclose(look.values, right.values, rtol=0, atol=3)

    replay = session_of(copied(second.kept), accountant=Charges(error=Crash()))
    assert explored(replay).tobytes() == centers.tobytes()


def test_a_closed_round_whose_looks_are_all_recorded_is_not_read_again() -> None:
    log, record = list[str](), copied(whole()[1])
    record.lookups.pop()
    run(Durable(kept=copied(record)), record, 2, log)
    assert log == ["gather 1"]


@pytest.mark.parametrize("looks", [0, 1, LOOKS - 1, LOOKS, 2 * LOOKS - 1])
def test_a_record_that_ends_early_is_refused_without_rows(looks: int) -> None:
    _, record = whole()
    record.lookups = record.lookups[:looks]
    with pytest.raises(Refused, match=f"record of round {looks // LOOKS} ends early, and there are no rows"):
        explored(session_of(record))
    assert len(record.lookups) == looks


@pytest.mark.parametrize("opened", [1, 2])
def test_a_record_of_one_closed_round_leaves_the_second_one_open_and_one_of_all_rounds_none(opened: int) -> None:
    _, record = whole()
    partial = Record(record.digests[:opened], 1, record.lookups[:LOOKS])
    pending = next_round(Explorer(), PROBLEM, SEED, partial)
    assert (pending.index, pending.digest()) == (1, record.digests[1])
    assert (partial.digests, partial.closed, len(partial.lookups)) == (record.digests[:opened], 1, LOOKS)
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
        with pytest.raises(Refused, match="round 0 is not the one that was opened before"):
            explored(session_of(copied(record), other, population, accountant=Charges(log)))
    assert log == []


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        *(
            (change, "round 0 asks for other buckets than the recorded run")
            for change in ({"ids": np.arange(2)}, {"ids": np.array([0, 2, 1])}, {"level": 1}, {"error": True})
        ),
        ({"values": np.full(3, 5e3)}, "round 1 is not the one"),
    ],
)
def test_a_replay_that_looks_elsewhere_or_at_other_values_than_its_record_is_refused(changes: Any, told: str) -> None:
    _, record = whole()
    record.lookups[0] = attrs.evolve(record.lookups[0], **changes)
    log: list[str] = []
    with pytest.raises(Refused, match=told):
        explored(session_of(record, population=InMemory(ROWS, log)))
    assert log == []
