"""A person's state: no answer is drawn twice, no epsilon is spent twice or unnoticed, whatever dies or runs beside
it."""

from __future__ import annotations

import multiprocessing
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cloister.collection.client import state as memory
from cloister.collection.client.encoder import Encoded, PlanEncoder, State, encode, read, transcript_of
from cloister.collection.plan.plan import CollectionPlan
from cloister.collection.plan.publish import publish
from cloister.core.errors import BudgetExceeded, CloisterError, Damaged, InvalidInput, Refused
from cloister.core.randomness import NoiseRng
from cloister.run.request import Request

D, N = 5, 4000
ROWS = np.random.default_rng(0).normal(0, 0.3, (N, D))
USERS = np.arange(N, dtype=np.uint64)


@cache
def planned(seed: int = 1, epsilon: float = 2.0, delta: float = 0.0) -> CollectionPlan:
    request = Request(k=3, method="one-round", epsilon=epsilon, delta=delta, bounds="ball:1", rows=N, seed=seed)
    return publish(request, dimension=D)


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "mine.state"


def test_encoding_again_gives_the_same_bytes_whatever_the_rows_say(state: Path) -> None:
    plan = planned()
    first = encode(plan, ROWS, USERS, state=state)
    again = encode(plan, -ROWS[::-1], USERS[::-1], state=state)
    assert np.array_equal(first.answers, again.answers)
    part = encode(plan, ROWS[:7] * 0, USERS[100:107], state=State(state))
    assert np.array_equal(part.answers, first.answers[100:107])
    assert State(state).spent(3) == 2.0
    assert not np.array_equal(first.answers, encode(plan, ROWS, USERS).answers)


def test_some_users_now_and_the_others_later(state: Path) -> None:
    plan, odd = planned(), USERS % 2 == 1
    one = encode(plan, ROWS[odd], USERS[odd], state=state)
    every = encode(plan, ROWS, USERS, state=state)
    assert np.array_equal(every.answers[odd], one.answers)
    assert len(np.unique(every.answers[~odd], axis=0)) > 20


def test_what_is_remembered_is_what_was_drawn(state: Path) -> None:
    """Same words, same reports: the file changes nothing."""
    encoder = PlanEncoder(planned(), noise=NoiseRng.for_tests(4))
    expected = encoder.encode(ROWS, USERS).answers
    memory = State(state)
    memory.charge(encoder.transcript, [USERS])
    width = expected.shape[1]
    found = memory.fill(encoder.transcript, USERS, width, lambda which: encoder.draw(ROWS[which], USERS[which]))
    assert np.array_equal(found, expected)
    assert np.array_equal(memory.answers(encoder.transcript, USERS[5:50], width), expected[5:50])


def test_repeatable_noise_is_not_remembered(state: Path) -> None:
    with pytest.raises(InvalidInput, match="repeatable noise"):
        encode(planned(), ROWS, USERS, state=state, noise=NoiseRng.for_tests(1))
    assert not state.exists()


def test_every_plan_is_charged_to_its_users(state: Path) -> None:
    for seed, epsilon in ((1, 1.0), (2, 0.5), (3, 2.0)):
        encode(planned(seed, epsilon), ROWS[:10], USERS[:10], state=state)
    encode(planned(1, 1.0), ROWS[5:15], USERS[5:15], state=state)
    assert [State(state).spent(user) for user in (0, 9, 12, 20)] == [3.5, 3.5, 1.0, 0.0]


def test_a_lifetime_refuses_before_anything_is_drawn_and_nobody_is_charged(
    state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = planned(1, 2.0), planned(2, 1.5)
    encode(first, ROWS[:10], USERS[:10], state=state, lifetime=3.0)
    before = state.read_bytes()
    monkeypatch.setattr(PlanEncoder, "draw", lambda *_: pytest.fail("something was drawn"))
    with pytest.raises(BudgetExceeded) as error:
        encode(second, ROWS, USERS, state=state, lifetime=3.0)
    text = str(error.value)
    assert "10 of these people" in text
    assert "has 1 (at least) left, 1.5 was asked: nothing was read or spent" in text
    assert state.read_bytes() == before
    monkeypatch.undo()
    encode(second, ROWS[10:], USERS[10:], state=state, lifetime=3.0)
    assert [State(state).spent(user) for user in (0, 10)] == [2.0, 1.5]
    again = encode(first, ROWS[:10], USERS[:10], state=state, lifetime=0.5)  # paid already: no charge, the same bytes
    assert len(again.answers) == 10


def test_a_lifetime_is_met_exactly(state: Path) -> None:
    for seed in range(10):
        encode(planned(seed, 0.1), ROWS[:3], USERS[:3], state=state, lifetime=1.0)
    with pytest.raises(BudgetExceeded):
        encode(planned(10, 0.1), ROWS[:3], USERS[:3], state=state, lifetime=1.0)
    with pytest.raises(BudgetExceeded):
        encode(planned(11, 1.0 + 1e-6), ROWS[5:6], USERS[5:6], state=state, lifetime=1.0)


def test_a_lifetime_bounds_delta_too(state: Path) -> None:
    """A plan of a small epsilon with delta next to 1 could have her row as it is; so could many plans of a smaller one
    each."""
    with pytest.raises(
        BudgetExceeded, match=r"the lifetime delta of 0.001 of 3 of these people has 0.001 \(at least\) left, 0.9 was"
    ):
        encode(planned(1, 0.1, 0.9), ROWS[:3], USERS[:3], state=state, lifetime=3.0)
    for seed in range(4):
        encode(planned(seed, 0.1, 2.5e-4), ROWS[:3], USERS[:3], state=state, lifetime=3.0)
    with pytest.raises(BudgetExceeded, match="left, 1e-06 was asked"):
        encode(planned(5, 0.1, 1e-6), ROWS[:3], USERS[:3], state=state, lifetime=3.0)
    encode(planned(5, 0.1), ROWS[:3], USERS[:3], state=state, lifetime=3.0)
    assert State(state).spent_delta(0) == 0.001
    for delta in (-1e-9, 1.0, float("nan")):
        with pytest.raises(InvalidInput, match="the lifetime's delta is"):
            State(state, 3.0, lifetime_delta=delta)


def test_a_lifetime_is_kept_by_calls_that_do_not_give_it(state: Path) -> None:
    """Two plans of 2: a file that promised 3 pays for one, whoever asks."""
    encode(planned(1), ROWS[:3], USERS[:3], state=state, lifetime=3.0)
    for forgetful in (state, State(state)):
        with pytest.raises(BudgetExceeded, match="the lifetime epsilon of 3 of 3 of these people has 1"):
            encode(planned(2), ROWS[:3], USERS[:3], state=forgetful)
    assert len(encode(planned(1), ROWS[:3], USERS[:3], state=state).answers) == 3  # paid for already
    assert State(state).spent(0) == 2.0


def test_a_lifetimes_delta_is_kept_too(state: Path) -> None:
    encode(planned(1, 0.1, 0.01), ROWS[:3], USERS[:3], state=state, lifetime=3.0, lifetime_delta=0.015)
    with pytest.raises(BudgetExceeded, match=r"the lifetime delta of 0\.015 of 3 of these people has 0\.005"):
        encode(planned(2, 0.1, 0.01), ROWS[:3], USERS[:3], state=state)
    encode(planned(2, 0.1, 0.01), ROWS[5:6], USERS[5:6], state=state)


def test_a_lifetime_that_a_refused_call_gave_is_kept(state: Path) -> None:
    for lifetime in (1.0, None):
        with pytest.raises(BudgetExceeded, match="the lifetime epsilon of 1 of 3"):
            encode(planned(), ROWS[:3], USERS[:3], state=state, lifetime=lifetime)
    assert State(state).spent(0) == 0.0


def test_a_lifetime_goes_down_and_never_up(state: Path) -> None:
    encode(planned(1, 0.5), ROWS[:3], USERS[:3], state=state, lifetime=3.0, lifetime_delta=1e-4)
    for higher in ({"lifetime": 3.1}, {"lifetime_delta": 2e-4}, {"lifetime": 1.0, "lifetime_delta": 2e-4}):
        with pytest.raises(
            Refused, match=r"promises a lifetime of at most epsilon = 3 and delta = 0\.0001.* never raised"
        ):
            encode(planned(2, 0.5), ROWS[:3], USERS[:3], state=state, **higher)
    encode(planned(2, 0.5), ROWS[:3], USERS[:3], state=state, lifetime=1.2)
    with pytest.raises(BudgetExceeded, match=r"the lifetime epsilon of 1\.2"):
        encode(planned(3, 0.5), ROWS[:3], USERS[:3], state=state)
    with pytest.raises(BudgetExceeded, match=r"the lifetime delta of 1e-05"):
        encode(planned(4, 0.1, 5e-5), ROWS[:3], USERS[:3], state=state, lifetime_delta=1e-5)
    with pytest.raises(Refused, match=r"at most epsilon = 1\.2 and delta = 1e-05"):
        encode(planned(5, 0.1), ROWS[:3], USERS[:3], state=state, lifetime=3.0)
    assert State(state).spent(0) == 1.0


def test_a_delta_alone_is_no_lifetime(state: Path) -> None:
    with pytest.raises(InvalidInput, match="has no lifetime, so no delta can be limited"):
        encode(planned(), ROWS[:3], USERS[:3], state=state, lifetime_delta=1e-4)


def test_a_state_without_a_lifetime_goes_on_without_one(state: Path) -> None:
    """Whoever gives one later is kept to it."""
    encode(planned(1), ROWS[:3], USERS[:3], state=state)
    encode(planned(2), ROWS[:3], USERS[:3], state=state)
    with pytest.raises(BudgetExceeded, match="the lifetime epsilon of 5 of 3 of these people has 1"):
        encode(planned(3), ROWS[:3], USERS[:3], state=state, lifetime=5.0)
    with pytest.raises(BudgetExceeded):
        encode(planned(3), ROWS[:3], USERS[:3], state=state)


def test_a_plan_that_was_charged_and_never_answered_counts(state: Path) -> None:
    """What a process that died between the charge and the draw leaves: it may have sent its report to another disk."""
    first, second = planned(1), planned(2)
    State(state, 3.0).charge(transcript_of(first), [USERS[:3]])
    assert State(state).spent(1) == 2.0
    with pytest.raises(BudgetExceeded, match="has 1"):
        State(state, 3.0).charge(transcript_of(second), [USERS[:3]])
    assert State(state).spent(1) == 2.0


@pytest.mark.parametrize("lifetime", [0.0, -1.0, float("nan"), float("inf")])
def test_a_lifetime_is_a_positive_number(state: Path, lifetime: float) -> None:
    with pytest.raises(InvalidInput, match="the lifetime is"):
        State(state, lifetime)


def test_nobody_reports_without_a_charge(state: Path) -> None:
    plan = planned()
    with pytest.raises(InvalidInput, match="was not charged"):
        State(state).fill(transcript_of(plan), USERS[:3], 4, lambda which: np.ones((int(which.sum()), 4), np.uint8))
    with pytest.raises(Damaged, match="are gone"):
        State(state).answers(transcript_of(plan), USERS[:3], 4)


def test_a_failure_while_drawing_keeps_the_charge_and_draws_once(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = planned()

    def fail(*_: Any) -> Any:
        raise RuntimeError("no entropy")

    monkeypatch.setattr(PlanEncoder, "draw", fail)
    with pytest.raises(RuntimeError):
        encode(plan, ROWS, USERS, state=state)
    assert State(state).spent(0) == 2.0
    monkeypatch.undo()
    first = encode(plan, ROWS, USERS, state=state)
    assert np.array_equal(first.answers, encode(plan, ROWS, USERS, state=state).answers)
    assert State(state).spent(0) == 2.0


@pytest.mark.parametrize(
    "content",
    [b"not a database at all, but long enough to be looked at" * 9, b"SQLite format 3\0" + bytes(100), bytes(5000)],
)
def test_another_file_is_no_state(state: Path, content: bytes) -> None:
    state.write_bytes(content)
    with pytest.raises(CloisterError) as error:
        encode(planned(), ROWS[:1], USERS[:1], state=state)
    assert "\n" not in str(error.value)
    assert state.read_bytes() == content


def test_a_changed_report_in_the_file_is_noticed(state: Path) -> None:
    plan = planned()
    encode(plan, ROWS[:5], USERS[:5], state=state)
    with sqlite3.connect(state) as db:
        db.execute("update reports set report = x'0000' where user = 2")
    db.close()
    with pytest.raises(Damaged, match="no report of its plan"):
        encode(plan, ROWS[:5], USERS[:5], state=state)


def test_a_state_where_none_can_be_is_one_line(tmp_path: Path) -> None:
    for path in (tmp_path / "no" / "folder", tmp_path):
        with pytest.raises(CloisterError, match="cannot be used") as error:
            encode(planned(), ROWS[:1], USERS[:1], state=path)
        assert "\n" not in str(error.value)


@pytest.mark.parametrize(("durable", "level"), [(True, 3), (False, 0)])
def test_a_charge_and_a_report_are_on_the_disk_before_the_next_step(
    state: Path, monkeypatch: pytest.MonkeyPatch, durable: bool, level: int
) -> None:
    """SQLite's ``extra``: the end of a transaction outlives a loss of power, the journal's removal included. A scratch
    file need not."""
    levels, listed = list[int](), memory._list

    def spied(db: sqlite3.Connection, users: Any) -> None:
        levels.append(db.execute("pragma synchronous").fetchone()[0])
        listed(db, users)

    monkeypatch.setattr(memory, "_list", spied)
    PlanEncoder(planned()).encode(ROWS[:3], USERS[:3], State(state, durable=durable))
    assert levels == [level] * 2  # the charge, the reports


def test_a_draw_holds_the_write_lock(state: Path) -> None:
    """Whoever comes second waits, and finds the reports of the first."""
    encoder, refused = PlanEncoder(planned()), list[str]()
    kept = State(state)
    kept.charge(encoder.transcript, [USERS[:3]])

    def draw(which: Any) -> Any:
        with closing(sqlite3.connect(state, timeout=0, isolation_level=None)) as db:
            try:
                db.execute("begin immediate")
            except sqlite3.OperationalError as error:
                refused.append(str(error))
        return encoder.draw(ROWS[:3][which], USERS[:3][which])

    kept.fill(encoder.transcript, USERS[:3], encoder.width, draw)
    assert refused == ["database is locked"]


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
    """Under split-and-mix they hold rows with hardly any noise."""
    seen, listed = list[tuple[str, int]](), memory._list

    def spied(*arguments: Any) -> None:  # while a charge is being written
        seen.extend((path.name, shown(path)) for path in state.parent.iterdir())
        listed(*arguments)

    monkeypatch.setattr(memory, "_list", spied)
    encode(planned(), ROWS[:3], USERS[:3], state=state)
    assert {name for name, _ in seen} == {"mine.state", "mine.state-journal"}
    assert not any(others for _, others in seen)


@pytest.mark.usefixtures("careless")
def test_a_state_that_could_be_read_is_closed_when_it_is_used(state: Path) -> None:
    encode(planned(), ROWS[:3], USERS[:3], state=state)
    state.chmod(0o644)
    State(state).spent(0)
    assert shown(state) == 0
    other = state.with_name("other")
    other.write_bytes(b"this is no state, and stays as it is" * 99)
    other.chmod(0o644)
    with pytest.raises(CloisterError):
        State(other).spent(0)
    assert shown(other) == 0o044


def _encode(folder: Path, number: int, start: Any) -> None:
    plan = read(folder / "plan")
    start.wait()
    made: Encoded = encode(plan, ROWS * (number + 1), USERS, state=folder / "state")
    np.save(folder / f"{number}.npy", made.answers)


@pytest.mark.thorough
def test_processes_that_encode_the_same_people_send_the_same_bytes(tmp_path: Path) -> None:
    planned().write(tmp_path / "plan", "")
    context = multiprocessing.get_context("spawn")
    start = context.Barrier(4)
    workers = [context.Process(target=_encode, args=(tmp_path, number, start)) for number in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
        assert worker.exitcode == 0
    found = [np.load(tmp_path / f"{number}.npy") for number in range(4)]
    assert all(np.array_equal(found[0], other) for other in found[1:])
    assert State(tmp_path / "state").spent(0) == 2.0
