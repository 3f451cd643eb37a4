"""The person's side: reports are those of the round, whatever way rows come, and light to make."""

from __future__ import annotations

import warnings
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cloister.collection.client.encoder import PlanEncoder, PrivacyWarning, encode
from cloister.collection.client.state import State
from cloister.collection.plan.plan import CollectionPlan
from cloister.core.encoding import encode_rows
from cloister.core.errors import InvalidInput
from cloister.core.randomness import NoiseRng
from tests.collection.plans import local_plan

D, N = 6, 3000
ORACLES = {
    "optimised-local-hashing": "hadamard-vector",
    "hadamard-response": "hadamard-vector",
    "optimised-unary": "hadamard-vector",
    "subset-selection": "explicit-histogram-vector",
    "explicit-histogram": "explicit-histogram-vector",
}
ROWS = np.random.default_rng(2).normal(0, 0.4, (N, D))
USERS = np.random.default_rng(3).permutation(N).astype(np.uint64)


@cache
def planned(oracle: str = "optimised-local-hashing") -> CollectionPlan:
    return local_plan(D, rows=N, components={"counts": oracle, "sums": ORACLES[oracle]})


@pytest.mark.parametrize("oracle", ORACLES)
def test_reports_are_those_of_the_round(oracle: str) -> None:
    plan = planned(oracle)
    made = encode(plan, ROWS, USERS, noise=NoiseRng.for_tests(7))
    order = np.argsort(USERS)
    expected = encode_rows(plan.round(), ROWS[order], USERS[order], NoiseRng.for_tests(7))
    assert made.plan == plan.hash
    assert np.array_equal(made.users, np.arange(N))
    columns = made.columns()
    for j, (mine, theirs) in enumerate(zip(made.reports, expected, strict=True)):
        for name, values in theirs.columns().items():
            for found in (columns[f"q{j}.{name}"], mine.columns()[name]):
                assert np.array_equal(found, values)
                assert found.dtype == values.dtype


@pytest.mark.parametrize("oracle", ORACLES)
def test_a_report_is_a_function_of_its_own_row_alone(oracle: str) -> None:
    encoder = PlanEncoder(planned(oracle), noise=NoiseRng.for_tests(7))
    whole = encoder.encode(ROWS, USERS).answers
    for some in (slice(0, 0), slice(0, 1), slice(5, 400), slice(N - 1, N)):
        part = encoder.encode(ROWS[some], USERS[some])
        assert np.array_equal(part.answers, whole[part.users.astype(int)])

    # a one-byte answer repeats itself by chance; public coins are the same


ROW = [0.0] * D
BAD: dict[str, tuple[Any, Any]] = {
    "a number beyond the plan": ([ROW] * 2, [0, N]),
    "a number beyond 64 bits": ([ROW] * 2, [2**70, 1]),
    "no number": ([ROW] * 2, [float("nan"), 1]),
    "text for numbers": ([ROW] * 2, ["0", "1"]),
    "a coordinate that is no number": ([[float("nan")] * D], [0]),
    "a narrow row": ([ROW[1:]], [0]),
    "text": ([["a"] * D], [0]),
    "no rows": (None, [0]),
}


@pytest.mark.parametrize(("rows", "users"), BAD.values(), ids=BAD)
def test_rows_and_user_numbers_that_cannot_be_are_refused(rows: Any, users: Any) -> None:
    with pytest.raises(InvalidInput) as error:
        encode(planned(), rows, users)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("users", [[3, 3, 5], [5, 3, 3], [3, 5, 3], [0, 1, 2, 2, 4]])
def test_a_number_that_stands_twice_among_others_draws_nothing_and_charges_nobody(
    users: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One number is one person: two reports of hers would cost her twice what the plan says."""
    monkeypatch.setattr(PlanEncoder, "draw", lambda *_: pytest.fail("something was drawn"))
    state = State(tmp_path / "state")
    for given in (None, state):
        with pytest.raises(InvalidInput, match="a user number stands twice: give each user one row"):
            PlanEncoder(planned()).encode(ROWS[: len(users)], users, given)
    assert not any(state.spent(user) for user in users)


def loud(epsilon: float = 30.0, delta: float = 0.0) -> CollectionPlan:
    return local_plan(D, epsilon=epsilon, delta=delta)


def test_a_loud_plan_is_warned_of_from_python_too(tmp_path: Path) -> None:
    with pytest.warns(PrivacyWarning, match=r"a report of epsilon = 30 hides little: it may be e\^30 times") as found:
        encode(loud(), ROWS[:1], [0], state=tmp_path / "state")
    assert (len(found), found[0].filename) == (1, __file__)
    with pytest.warns(PrivacyWarning, match=r"delta = 0\.25 may tell its row as it is"):
        encode(loud(1.0, 0.25), ROWS[:1], [1], state=tmp_path / "state")


def test_a_report_that_nothing_remembers_is_warned_of(tmp_path: Path) -> None:
    with pytest.warns(PrivacyWarning, match="no state: nothing remembers these reports"):
        encode(planned(), ROWS[:1], [0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        encode(planned(), ROWS[:1], [0], state=tmp_path / "state")


def test_whoever_makes_warnings_errors_answers_no_loud_plan(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", PrivacyWarning)
        with pytest.raises(PrivacyWarning, match="hides little"):
            encode(loud(), ROWS[:1], [0], state=tmp_path / "state")
    assert not (tmp_path / "state").exists()


def test_a_plan_of_several_rounds_is_refused_without_a_state_before_anything_is_warned_of() -> None:
    components = {"counts": "optimised-local-hashing", "sums": "hadamard-vector"}
    changes = {"method": "su-lloyd", "epsilon": 30.0, "bounds": "-1:1", "options": {"rounds": 2}}
    plan = local_plan(D, **changes, components=components)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(InvalidInput, match="has 2 rounds: give a state that remembers"):
            encode(plan, ROWS[:1], [0])
