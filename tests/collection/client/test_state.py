"""A person's state: no answer is drawn twice, no epsilon is spent twice or unnoticed, whatever dies or runs beside
it."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cloister.collection.client import state as memory
from cloister.collection.client.encoder import PlanEncoder, State, encode, read, transcript_of
from cloister.collection.plan.plan import CollectionPlan
from cloister.core.errors import BudgetExceeded, Damaged, InvalidInput, Refused
from cloister.core.randomness import NoiseRng
from cloister.core.types import AnyArray
from tests.collection.plans import local_plan

D, N = 5, 1000
ROWS = np.random.default_rng(0).normal(0, 0.3, (N, D))
USERS = np.arange(N, dtype=np.uint64)


@cache
def planned(seed: int = 1, epsilon: float = 2.0, delta: float = 0.0) -> CollectionPlan:
    return local_plan(D, epsilon=epsilon, delta=delta, rows=N, seed=seed)


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "mine.state"


def answers(state: Path, plan: CollectionPlan, who: slice = slice(3), **lifetime: Any) -> AnyArray:
    """What some people answer."""
    return encode(plan, ROWS[who], USERS[who], state=state, **lifetime).answers


def test_encoding_again_gives_the_same_bytes_whatever_the_rows_say(state: Path) -> None:
    plan = planned()
    early = answers(state, plan, slice(1, N, 2))
    first = answers(state, plan, slice(N))
    assert np.array_equal(first[1::2], early)
    assert len(np.unique(first[::2], axis=0)) > 20
    again = encode(plan, -ROWS[::-1], USERS[::-1], state=state)
    assert np.array_equal(first, again.answers)
    part = encode(plan, ROWS[:7] * 0, USERS[100:107], state=State(state))
    assert np.array_equal(part.answers, first[100:107])
    assert State(state).spent(3) == 2.0
    assert not np.array_equal(first, encode(plan, ROWS, USERS).answers)


def test_an_older_copy_of_a_state_draws_anew_and_forgets_what_was_charged(state: Path, tmp_path: Path) -> None:
    """Two answers to one question, each of which cost the plan's epsilon."""
    answers(state, planned(2, 0.5), slice(N), lifetime=2.5)
    older = Path(shutil.copy(state, tmp_path / "older.state"))
    plan = planned(1, 2.0)
    first = answers(state, plan, slice(N))
    with pytest.raises(BudgetExceeded):
        answers(state, planned(3, 0.5))
    assert (State(state).spent(3), State(older).spent(3)) == (2.5, 0.5)
    assert not np.array_equal(first, answers(older, plan, slice(N)))


def test_repeatable_noise_is_not_remembered(state: Path) -> None:
    with pytest.raises(InvalidInput, match="repeatable noise"):
        answers(state, planned(), noise=NoiseRng.for_tests(1))
    assert not state.exists()


def test_every_plan_is_charged_to_its_users(state: Path) -> None:
    for plan, who in ((planned(1, 1.0), slice(10)), (planned(2, 0.5), slice(10)), (planned(1, 1.0), slice(5, 15))):
        answers(state, plan, who)
    assert [State(state).spent(user) for user in (0, 9, 12, 20)] == [1.5, 1.5, 1.0, 0.0]


def test_a_lifetime_refuses_before_anything_is_drawn_and_nobody_is_charged(
    state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = planned(1, 2.0), planned(2, 1.5)
    answers(state, first, slice(10), lifetime=3.0)
    before = state.read_bytes()
    monkeypatch.setattr(PlanEncoder, "draw", lambda *_: pytest.fail("something was drawn"))
    with pytest.raises(BudgetExceeded) as error:
        answers(state, second, slice(N), lifetime=3.0)
    assert "10 of these people has 1 (at least) left, 1.5 was asked: nothing was read or spent" in str(error.value)
    assert state.read_bytes() == before
    monkeypatch.undo()
    answers(state, second, slice(10, N), lifetime=3.0)
    assert [State(state).spent(user) for user in (0, 10)] == [2.0, 1.5]
    answers(state, first, slice(10), lifetime=0.5)  # paid already: no charge


def test_a_lifetime_is_met_exactly(state: Path) -> None:
    """What was spent before there was one counts."""
    for seed in range(10):
        answers(state, planned(seed, 0.1), lifetime=1.0 if seed else None)
    with pytest.raises(BudgetExceeded):
        answers(state, planned(10, 0.1))
    with pytest.raises(BudgetExceeded):
        answers(state, planned(11, 1.0 + 1e-6), slice(5, 6))


def test_a_lifetime_bounds_delta_too(state: Path) -> None:
    """A plan of a small epsilon with delta next to 1 could have her row as it is; so could many plans of a smaller one
    each."""
    with pytest.raises(
        BudgetExceeded, match=r"the lifetime delta of 0.001 of 3 of these people has 0.001 \(at least\) left, 0.9 was"
    ):
        answers(state, planned(1, 0.1, 0.9), lifetime=3.0)
    for seed in range(4):
        answers(state, planned(seed, 0.1, 2.5e-4))
    with pytest.raises(BudgetExceeded, match="left, 1e-06 was asked"):
        answers(state, planned(5, 0.1, 1e-6))
    answers(state, planned(5, 0.1))
    assert State(state).spent_delta(0) == 0.001


def test_a_lifetime_is_kept_by_calls_that_do_not_give_it(state: Path) -> None:
    """A file that promised enough for one of two plans pays for one, whoever asks."""
    answers(state, planned(), lifetime=3.0)
    for forgetful in (state, State(state)):
        with pytest.raises(BudgetExceeded, match="the lifetime epsilon of 3 of 3 of these people has 1"):
            encode(planned(2), ROWS[:3], USERS[:3], state=forgetful)
    answers(state, planned())  # paid for already
    assert State(state).spent(0) == 2.0


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"lifetime": 0.0}, "the lifetime is 0"),
        ({"lifetime": np.inf}, "the lifetime is inf"),
        ({"lifetime": 3.0, "lifetime_delta": 1.0}, "the lifetime's delta is 1"),
        ({"lifetime_delta": 1e-4}, "has no lifetime, so delta cannot be limited"),
        ({"lifetime": 3.0, "state": None}, "needs a state"),
    ],
)
def test_a_lifetime_that_cannot_be_is_refused(state: Path, given: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        encode(planned(), ROWS[:1], [0], **{"state": state, **given})


def test_a_lifetime_that_a_refused_call_gave_is_kept(state: Path) -> None:
    for lifetime in (1.0, None):
        with pytest.raises(BudgetExceeded, match="the lifetime epsilon of 1 of 3"):
            answers(state, planned(), lifetime=lifetime)
    assert State(state).spent(0) == 0.0


def test_a_lifetime_goes_down_and_never_up(state: Path) -> None:
    answers(state, planned(1, 0.5), lifetime=3.0, lifetime_delta=1e-4)
    for higher in ({"lifetime": 3.1}, {"lifetime_delta": 2e-4}, {"lifetime": 1.0, "lifetime_delta": 2e-4}):
        with pytest.raises(Refused, match=r"has a lifetime of epsilon = 3 and delta = 0\.0001, which cannot be raised"):
            answers(state, planned(2, 0.5), **higher)
    answers(state, planned(2, 0.5), lifetime=1.2)
    with pytest.raises(BudgetExceeded, match=r"the lifetime epsilon of 1\.2"):
        answers(state, planned(3, 0.5))
    with pytest.raises(BudgetExceeded, match=r"the lifetime delta of 1e-05"):
        answers(state, planned(4, 0.1, 5e-5), lifetime_delta=1e-5)
    with pytest.raises(Refused, match=r"a lifetime of epsilon = 1\.2 and delta = 1e-05"):
        answers(state, planned(5, 0.1), lifetime=3.0)
    assert State(state).spent(0) == 1.0


def test_a_plan_that_was_charged_and_never_answered_counts(state: Path) -> None:
    """What a process that died between the charge and the draw leaves: it may have sent its report to another disk."""
    State(state, 3.0).charge(transcript_of(planned(1)), [USERS[:3]])
    assert State(state).spent(1) == 2.0
    with pytest.raises(BudgetExceeded, match="has 1"):
        State(state, 3.0).charge(transcript_of(planned(2)), [USERS[:3]])
    assert State(state).spent(1) == 2.0


def test_nobody_reports_without_a_charge(state: Path) -> None:
    plan = planned()
    with pytest.raises(InvalidInput, match="was not charged"):
        State(state).fill(transcript_of(plan), USERS[:3], 4, lambda which: np.ones((int(which.sum()), 4), np.uint8))
    with pytest.raises(Damaged, match="are gone"):
        State(state).answers(transcript_of(plan), USERS[:3], 4)


def test_a_changed_report_in_the_file_is_noticed(state: Path) -> None:
    answers(state, planned())
    with closing(sqlite3.connect(state, isolation_level=None)) as db:
        db.execute("update reports set report = x'0000' where user = 2")
    with pytest.raises(Damaged, match="that its plan does not allow"):
        answers(state, planned())


def test_a_charge_and_a_report_are_on_the_disk_before_the_next_step(
    state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite's ``extra``: the end of a transaction outlives a loss of power, the journal's removal included."""
    levels, listed = list[int](), memory._list_users

    def spied(db: sqlite3.Connection, users: Any) -> None:
        levels.append(db.execute("pragma synchronous").fetchone()[0])
        listed(db, users)

    monkeypatch.setattr(memory, "_list_users", spied)
    answers(state, planned())
    assert levels == [3] * 2  # the charge, the reports


def test_a_draw_holds_the_write_lock(state: Path) -> None:
    """Whoever comes second waits, and finds the reports of the first."""
    encoder, kept = PlanEncoder(planned()), State(state)
    kept.charge(encoder.transcript, [USERS[:3]])

    def draw(which: Any) -> Any:
        with (
            closing(sqlite3.connect(state, timeout=0, isolation_level=None)) as db,
            pytest.raises(sqlite3.OperationalError, match="database is locked"),
        ):
            db.execute("begin immediate")
        return encoder.draw(ROWS[:3][which], USERS[:3][which])

    assert kept.fill(encoder.transcript, USERS[:3], encoder.width, draw).any()


@pytest.fixture
def careless() -> Iterator[None]:
    """Files that nobody thinks of can be read and written by everybody."""
    before = os.umask(0)
    yield
    os.umask(before)


def shown(path: Path) -> int:
    """What others than the owner may do with a file."""
    return path.stat().st_mode & 0o077


@pytest.mark.usefixtures("careless")
def test_a_state_and_its_journal_are_read_by_their_owner_alone(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Under split-and-mix they hold rows with hardly any noise. One that others could read is closed to them."""
    seen, listed = dict[str, int](), memory._list_users

    def spied(*arguments: Any) -> None:  # while a charge is being written
        for path in state.parent.iterdir():
            seen[path.name] = seen.get(path.name, 0) | shown(path)
        listed(*arguments)

    monkeypatch.setattr(memory, "_list_users", spied)
    answers(state, planned())
    assert seen == {"mine.state": 0, "mine.state-journal": 0}
    state.chmod(0o644)
    State(state).spent(0)
    assert shown(state) == 0


def _encode(folder: Path, number: int, start: Any) -> None:
    plan = read(folder / "plan")
    start.wait()
    np.save(folder / f"{number}.npy", encode(plan, ROWS * (number + 1), USERS, state=folder / "state").answers)


@pytest.mark.thorough
def test_processes_that_encode_the_same_people_send_the_same_bytes(tmp_path: Path) -> None:
    planned().write(tmp_path / "plan", "")
    context = multiprocessing.get_context("spawn")
    start = context.Barrier(3)
    workers = [context.Process(target=_encode, args=(tmp_path, number, start)) for number in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
        assert worker.exitcode == 0
    first, *others = (np.load(tmp_path / f"{number}.npy") for number in range(3))
    assert all(np.array_equal(first, other) for other in others)
    assert State(tmp_path / "state").spent(0) == 2.0
