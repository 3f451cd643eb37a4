"""The person's side: reports are those of the round, whatever way rows come, and light to make."""

from __future__ import annotations

import subprocess
import sys
import warnings
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cloister.collection.client.encoder import PlanEncoder, PrivacyWarning, encode, read
from cloister.collection.client.state import State
from cloister.collection.plan.plan import CollectionPlan
from cloister.collection.plan.publish import publish
from cloister.core.encoding import encode_rows
from cloister.core.errors import InvalidInput, Refused
from cloister.core.randomness import NoiseRng
from cloister.run.request import Request

D, N = 6, 3000
ORACLES = {
    "optimised-local-hashing": "hadamard-vector",
    "hadamard-response": "hadamard-vector",
    "optimised-unary": "hadamard-vector",
    "subset-selection": "explicit-histogram-vector",
    "explicit-histogram": "explicit-histogram-vector",
}


@cache
def planned(
    frequencies: str = "optimised-local-hashing", vectors: str = "hadamard-vector", **options: Any
) -> CollectionPlan:
    components = {"counts": frequencies, "sums": vectors}
    return publish(
        Request(
            k=3,
            method="one-round",
            epsilon=2.0,
            bounds="ball:1",
            rows=N,
            seed=1,
            components=components,
            options=options,
        ),
        dimension=D,
    )


@pytest.fixture(scope="module", params=ORACLES)
def plan(request: pytest.FixtureRequest) -> CollectionPlan:
    return planned(request.param, ORACLES[request.param])


ROWS = np.random.default_rng(2).normal(0, 0.4, (N, D))
USERS = np.random.default_rng(3).permutation(N).astype(np.uint64)


def same(one: tuple[Any, ...], other: tuple[Any, ...]) -> bool:
    pairs = [(a.columns(), b.columns()) for a, b in zip(one, other, strict=True)]
    return all(
        list(a) == list(b) and all(np.array_equal(a[name], b[name]) and a[name].dtype == b[name].dtype for name in a)
        for a, b in pairs
    )


def test_reports_are_those_of_the_round(plan: CollectionPlan) -> None:
    made = encode(plan, ROWS, USERS, noise=NoiseRng.for_tests(7))
    order = np.argsort(USERS)
    expected = encode_rows(plan.round(), ROWS[order], USERS[order], NoiseRng.for_tests(7))
    assert same(made.reports, expected)
    assert made.plan == plan.hash
    assert np.array_equal(made.users, np.arange(N))
    columns = made.columns()
    for j, report in enumerate(expected):
        for name, values in report.columns().items():
            assert np.array_equal(columns[f"q{j}.{name}"], values)


def test_a_report_is_a_function_of_its_own_row_alone(plan: CollectionPlan) -> None:
    encoder = PlanEncoder(plan, noise=NoiseRng.for_tests(7))
    whole = encoder.encode(ROWS, USERS).answers
    for some in (slice(0, 1), slice(17, 18), slice(5, 400), slice(N - 1, N)):
        part = encoder.encode(ROWS[some], USERS[some])
        assert np.array_equal(part.answers, whole[part.users.astype(int)])


def test_answers_are_secret_and_drawn_anew() -> None:
    encoder = PlanEncoder(planned())
    one, other = (encoder.encode(ROWS, USERS).answers for _ in range(2))
    assert (one != other).any(axis=1).mean() > 0.5
    # a one-byte answer repeats itself by chance; public coins are the same


def test_one_person_needs_no_array() -> None:
    plan = planned()
    made = encode(plan, [[0.1] * D], [17])
    assert made.users.tolist() == [17]
    assert sum(len(report.users) for report in made.reports) == 1


@pytest.mark.parametrize(
    "users",
    [[3, 1, 2], (3, 1, 2), np.array([3.0, 1.0, 2.0]), np.array([3, 1, 2], np.int8), np.array([3, 1, 2], np.uint64)],
)
def test_users_are_whole_numbers_of_any_type(users: Any) -> None:
    assert encode(planned(), ROWS[:3], users).users.tolist() == [1, 2, 3]


BAD_USERS = {
    "negative": [-1, 0],
    "beyond": [0, N],
    "far": [0, 2**63],
    "twice": [5, 5],
    "half": [0.5, 1],
    "nan": [float("nan"), 1],
    "infinite": [float("inf"), 1],
    "text": ["0", "1"],
    "too few": [1],
    "nested": [[0], [1]],
    "truth": [True, False],
    "none": [None, 1],
    "beyond 64 bits": [2**70, 1],
    "complex": [1j, 2],
}


@pytest.mark.parametrize("users", BAD_USERS.values(), ids=BAD_USERS)
def test_user_numbers_that_cannot_be_are_refused(users: Any) -> None:
    with pytest.raises(InvalidInput) as error:
        encode(planned(), ROWS[:2], users)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("users", [[3, 3, 5], [5, 3, 3], [3, 5, 3], [0, 1, 2, 2, 4]])
def test_a_number_that_stands_twice_among_others_draws_nothing_and_charges_nobody(
    users: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One number is one person: two reports of hers would cost her twice what the plan says."""
    plan, drawn = planned(), list[int]()
    monkeypatch.setattr(PlanEncoder, "draw", lambda *given: drawn.append(1))
    state = State(tmp_path / "state")
    for given in (None, state):
        with pytest.raises(InvalidInput, match="a user number stands twice: give each user one row"):
            PlanEncoder(plan).encode(ROWS[: len(users)], users, given)
    assert not drawn
    assert [state.spent(user) for user in users] == [0] * len(users)


BAD_ROWS = {
    "nan": [[float("nan")] * D],
    "infinite": [[float("inf")] + [0.0] * (D - 1)],
    "narrow": [[0.0] * (D - 1)],
    "wide": [[0.0] * (D + 1)],
    "line": [0.0] * D,
    "two": [[0.0] * D] * 2,
    "text": [["a"] * D],
    "ragged": [[0.0], [0.0, 1.0]],
    "none": None,
    "object": [[{}] * D],
}


@pytest.mark.parametrize("rows", BAD_ROWS.values(), ids=BAD_ROWS)
def test_rows_that_cannot_be_are_refused(rows: Any) -> None:
    with pytest.raises(InvalidInput) as error:
        encode(planned(), rows, [0])
    assert "\n" not in str(error.value)


def test_no_rows_are_no_reports() -> None:
    made = encode(planned(), np.empty((0, D)), np.empty(0, np.uint64))
    assert len(made.users) == len(made.answers) == 0


def test_rows_far_outside_the_bounds_are_clipped() -> None:
    encoder = PlanEncoder(planned(), noise=NoiseRng.for_tests(1))
    users = np.arange(50)
    near, far = (encoder.encode(np.outer(np.ones(50), np.eye(D)[0] * size), users).answers for size in (1.0, 1e300))
    assert np.array_equal(near, far)


def test_another_round_than_the_planned_one_gets_no_report(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = planned()
    monkeypatch.setattr("cloister.core.questions.Round.digest", lambda round: "00" * 32)
    with pytest.raises(Refused, match="another version"):
        PlanEncoder(plan)


LIGHT = """
import sys, importlib.abc
allowed = {"numpy", "attr", "attrs", "cloister"} | set(sys.argv[3:])

class Only(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        top = name.partition(".")[0]
        if top in allowed or top in sys.stdlib_module_names or top.startswith("_"):
            return None
        raise ImportError(f"{name} is not light")

sys.meta_path.insert(0, Only())
from cloister.encoder import encode, read
plan = read(sys.argv[1])
d = plan.dimension
reports = encode(plan, [[0.1] * d] * 40, list(range(40)), state=sys.argv[2])
assert len(reports.answers) == 40 and reports.columns()
assert reports.to_bytes()[0] == 0xC2
heavy = {"pluggy", "scipy", "opendp", "typer", "rich", "narwhals", "pyarrow", "sklearn", "pandas", "polars", "numba",
    "click"}
print(sorted(heavy & {m.partition(".")[0] for m in sys.modules}))
"""


@pytest.mark.thorough
@pytest.mark.parametrize("frequencies", ORACLES)
def test_encoding_needs_numpy_and_attrs_only(tmp_path: Path, frequencies: str) -> None:
    planned(frequencies, ORACLES[frequencies]).write(tmp_path / "plan", "")
    command = [sys.executable, "-c", LIGHT, str(tmp_path / "plan"), str(tmp_path / "state")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert eval(done.stdout) == []
    assert len(encode(read(tmp_path / "plan"), [[0.1] * D] * 40, range(40), state=tmp_path / "state").answers) == 40


def test_a_lifetime_without_a_state_is_refused() -> None:
    for given in ({"lifetime": 3.0}, {"lifetime_delta": 1e-6}):
        with pytest.raises(InvalidInput, match="needs a state"):
            encode(planned(), ROWS[:1], [0], **given)


def loud(epsilon: float = 30.0, delta: float = 0.0) -> CollectionPlan:
    request = Request(k=3, method="one-round", epsilon=epsilon, delta=delta, bounds="ball:1", rows=N, seed=1)
    return publish(request, dimension=D)


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
    request = Request(
        k=3,
        method="su-lloyd",
        epsilon=30.0,
        bounds="-1:1",
        rows=N,
        seed=1,
        options={"rounds": 2},
        components={"counts": "optimised-local-hashing", "sums": "hadamard-vector"},
    )
    plan = publish(request, dimension=D)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(InvalidInput, match="has 2 rounds: give a state that remembers"):
            encode(plan, ROWS[:1], [0])
