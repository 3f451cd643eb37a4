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

from cloister.collection.plan.plan import CollectionPlan
from cloister.collection.wire.answers import layout_of
from cloister.core.encoding import encode_rows
from cloister.core.errors import InvalidInput
from cloister.core.randomness import NoiseRng
from cloister.encoder import PlanEncoder, PrivacyWarning, State, encode
from tests.collection import rounds_fakes
from tests.collection.plans import local_plan
from tests.collection.wire.test_answers import TWO_LENGTHS

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


ASKED: dict[str, dict[str, Any]] = {
    **{oracle: {"components": {"counts": oracle, "sums": sums}} for oracle, sums in ORACLES.items()},
    "bodies of two lengths": TWO_LENGTHS,
    "a tree whose levels share everyone's epsilon": {"method": "tree-means", "options": {"counts.share": "budget"}},
}


@pytest.mark.parametrize("changes", ASKED.values(), ids=ASKED)
def test_reports_are_those_of_the_round(changes: dict[str, Any]) -> None:
    """As arrays, and as the bytes that are sent."""
    plan = local_plan(D, **{"rows": N, "trust": "local", **changes})
    made = encode(plan, ROWS, USERS, noise=NoiseRng.for_tests(7))
    order = np.argsort(USERS)
    expected = encode_rows(plan.round(), ROWS[order], USERS[order], NoiseRng.for_tests(7))
    assert made.plan == plan.hash
    sent, columns = made.form.parse(made.to_bytes()), made.columns()
    assert np.array_equal(sent.users, np.arange(N))
    assert np.array_equal(sent.answers, made.answers)
    assert layout_of(plan.round()).well_padded(sent.users, sent.answers).all()
    for j, theirs in enumerate(expected):
        for name, values in theirs.columns().items():
            found = columns[f"q{j}.{name}"]
            assert np.array_equal(found, values)
            assert found.dtype == values.dtype


@pytest.mark.parametrize("oracle", ORACLES)
def test_a_report_is_a_function_of_its_own_row_alone(oracle: str) -> None:
    encoder = PlanEncoder(planned(oracle), noise=NoiseRng.for_tests(7))
    whole = encoder.encode(ROWS, USERS).answers
    for some in (slice(0, 0), slice(0, 1), slice(5, 400), slice(N - 1, N)):
        part = encoder.encode(ROWS[some], USERS[some])
        assert np.array_equal(part.answers, whole[part.users.astype(int)])


def test_users_are_whole_numbers_of_any_type() -> None:
    for users in ([3, 1, 2], np.array([3.0, 1, 2]), np.array([3, 1, 2], np.int8)):
        assert encode(planned(), ROWS[:3], users).users.tolist() == [1, 2, 3]


ROW = [0.0] * D
BAD_USERS: dict[str, list[Any]] = {
    "a negative number": [-1, 0],
    "a number beyond the plan": [0, N],
    "a number beyond 64 bits": [2**70, 1],
    "a half": [0.5, 1],
    "no number": [float("nan"), 1],
    "text": ["0", "1"],
    "nested": [[0], [1]],
    "truth": [True, False],
    "None": [None, 1],
}
BAD_ROWS: dict[str, tuple[Any, str]] = {
    "no number": ([[float("nan")] * D], "missing or infinite"),
    "an infinite one": ([[float("inf"), *ROW[1:]]], "missing or infinite"),
    "a narrow row": ([ROW[1:]], "a row of 6 columns"),
    "a line": (ROW, "a row of 6 columns"),
    "a row too many": ([ROW] * 2, "a row of 6 columns"),
    "text": ([["a"] * D], "a table of numbers"),
    "ragged rows": ([[0.0], [0.0, 1.0]], "a table of numbers"),
}


@pytest.mark.parametrize("users", BAD_USERS.values(), ids=BAD_USERS)
def test_user_numbers_that_cannot_be_are_refused(users: Any) -> None:
    with pytest.raises(InvalidInput, match="user numbers must be"):
        encode(planned(), [ROW] * 2, users)


@pytest.mark.parametrize(("rows", "said"), BAD_ROWS.values(), ids=BAD_ROWS)
def test_rows_that_cannot_be_are_refused(rows: Any, said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        encode(planned(), rows, [0])


@pytest.mark.parametrize("users", [[3, 3, 5], [5, 3, 3], [3, 5, 3], [0, 1, 2, 2, 4]])
def test_a_number_that_stands_twice_among_others_draws_nothing_and_charges_nobody(
    users: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One number is one person: two reports of hers would cost her twice what the plan says."""
    monkeypatch.setattr(PlanEncoder, "draw", lambda *_: pytest.fail("something was drawn"))
    state = State(tmp_path / "state")
    with pytest.raises(InvalidInput, match="a user number occurs twice: give each user one row"):
        encode(planned(), ROWS[: len(users)], users, state=state)
    assert not any(state.spent(user) for user in users)


LIGHT = """
import sys, importlib.abc
from pathlib import Path

class Only(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        top = name.partition(".")[0]
        if top in {"numpy", "attr", "attrs", "cloister"} | sys.stdlib_module_names or top.startswith("_"):
            return None
        raise ImportError(f"{name} is not light")

sys.meta_path.insert(0, Only())
from cloister.encoder import encode, read
for folder in Path(sys.argv[1]).iterdir():
    plan = read(folder)
    reports = encode(plan, [[0.1] * plan.dimension] * 40, list(range(40)), state=folder / "state")
    assert len(reports.answers) == 40 and reports.columns()
    assert reports.to_bytes()[0] == 0xC2
heavy = {"pluggy", "scipy", "opendp", "typer", "rich", "narwhals", "pyarrow", "sklearn", "pandas", "polars", "numba"}
assert not heavy & {m.partition(".")[0] for m in sys.modules}
"""


@pytest.mark.thorough
def test_encoding_needs_numpy_and_attrs_only(tmp_path: Path) -> None:
    for oracle in ORACLES:
        planned(oracle).write(tmp_path / oracle, "")
    done = subprocess.run([sys.executable, "-c", LIGHT, str(tmp_path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_loud_plan_is_warned_of_from_python_too(tmp_path: Path) -> None:
    """Whoever makes warnings errors answers none."""
    loud, sure = local_plan(D, epsilon=30.0), local_plan(D, epsilon=1.0, delta=0.25)
    with warnings.catch_warnings():
        warnings.simplefilter("error", PrivacyWarning)
        with pytest.raises(PrivacyWarning, match="hides little"):
            encode(loud, ROWS[:1], [0], state=tmp_path / "state")
    assert not (tmp_path / "state").exists()
    with pytest.warns(PrivacyWarning, match=r"a report of epsilon = 30 hides little: it may be e\^30 times") as found:
        encode(loud, ROWS[:1], [0], state=tmp_path / "state")
    assert (len(found), found[0].filename) == (1, __file__)
    with pytest.warns(PrivacyWarning, match=r"delta = 0\.25 may tell its row as it is"):
        encode(sure, ROWS[:1], [1], state=tmp_path / "state")


def test_a_report_that_nothing_remembers_is_warned_of(tmp_path: Path) -> None:
    with pytest.warns(PrivacyWarning, match="no state remembers these reports"):
        encode(planned(), ROWS[:1], [0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        encode(planned(), ROWS[:1], [0], state=tmp_path / "state")


def test_a_plan_of_several_rounds_is_refused_without_a_state_before_anything_is_warned_of() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(InvalidInput, match="has 3 rounds: give a state that remembers"):
            encode(rounds_fakes.planned(), rounds_fakes.ROWS[:1], [0])
