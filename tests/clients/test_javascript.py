"""The JavaScript client beside Python: its own tests, which read the vectors, and the law of what it really draws."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from cloister.collection.client.encoder import PlanEncoder
from cloister.collection.plan.bundle import bundle_of
from cloister.collection.plan.plan import CollectionPlan
from cloister.collection.plan.publish import publish
from cloister.core.randomness import NoiseRng
from cloister.core.types import AnyArray, Floats
from cloister.run.request import Request
from cloister.testing.checks.oracle_local import PEOPLE, PILOT, reports_hide_rows
from cloister.testing.statistics import proportion

NODE = shutil.which("node")
CLIENT = Path(__file__).parents[2] / "clients" / "javascript"


AUDITED = {
    "a byte": (4, {}, "u1"),
    "bits": (4, {"components": {"counts": "optimised-unary"}, "options": {"tree.cells": 4}}, "u1"),
    "privunit": (4, {"options": {"sums.randomiser": "privunit"}}, "<u2"),
    "duchi": (4, {"options": {"sums.randomiser": "duchi"}}, "<u2"),
}

pytestmark = [pytest.mark.thorough, pytest.mark.skipif(NODE is None, reason="Node is not installed")]


def node(*arguments: object, **environment: str) -> str:
    done = subprocess.run(
        [str(NODE), *map(str, arguments)],
        check=False,
        cwd=CLIENT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("built", [pytest.param("src", marks=pytest.mark.long), "dist"])  # another test compares them
def test_its_own_tests_pass(built: str) -> None:
    assert "# fail 0" in node("--test", "--test-reporter=tap", CLIENT=built)


@pytest.mark.parametrize("name", AUDITED)
def test_what_it_draws_itself_hides_a_row_and_follows_pythons_law(name: str, tmp_path: Path) -> None:
    dimension, changes, dtype = AUDITED[name]
    given = {"k": 5, "method": "one-round", "epsilon": 2.0, "bounds": "ball:1", "rows": 1000, "seed": 1, **changes}
    plan, rows = publish(Request(**given), dimension=dimension), _far_rows(dimension)
    epsilon = bundle_of(plan).as_dict()["epsilon"]
    for user in _of_each_question(plan):
        theirs = _drawn(tmp_path, plan, rows, user)
        ours = [_python(plan, row, user) for row in rows]
        numbers = [[np.frombuffer(some.tobytes(), dtype).reshape(len(some), -1)] for some in theirs]
        reports_hide_rows(numbers, epsilon, f"{name}, user {user}")
        for one, other in zip(theirs, ours, strict=True):
            _same_law(one[:, 0], other[:, 0])


def _far_rows(dimension: int) -> Floats:
    """Rows at opposite ends, in the middle, and elsewhere."""
    first = np.eye(1, dimension)[0]
    return np.array([first, -first, first * 0, np.full(dimension, 0.5 / dimension)])


def _of_each_question(plan: CollectionPlan) -> list[int]:
    """A user of each question of the first round: her public number says which she is asked."""
    users = np.arange(200, dtype=np.uint64)
    shares = [part.user_share for part in plan.rounds()[0].parts]
    return [0 if share is None else int(np.flatnonzero(share.holds(users))[0]) for share in shares]


def _drawn(folder: Path, plan: CollectionPlan, rows: Floats, user: int) -> list[AnyArray]:
    """Many answers (n, A) to each row from JavaScript, with the system's words."""
    bundle, n = bundle_of(plan), PILOT + PEOPLE
    users = np.full(n * len(rows), user, np.uint64)
    for name, content in (
        ("bundle.json", bundle.content),
        ("bundle.bin", bundle.arrays),
        ("rows.bin", np.repeat(rows, n, axis=0).tobytes()),
        ("users.bin", users.tobytes()),
    ):
        (folder / name).write_bytes(content)
    node("bench/reports.js", folder)
    sent = np.fromfile(folder / "sent.bin", np.uint8).reshape(len(rows), n, -1)
    assert (sent[:, :, 0] == 0xC1).all()
    return list(sent[:, :, 18:])


def _python(plan: CollectionPlan, row: Floats, user: int) -> AnyArray:
    """As many from Python."""
    encoder, n = PlanEncoder(plan, noise=NoiseRng.secret()), PILOT + PEOPLE
    records = encoder.draw(np.repeat(row[None], n, axis=0), np.full(n, user, np.uint64))
    return encoder.encoded(np.full(n, user, np.uint64), records).answers


def _same_law(one: AnyArray, other: AnyArray) -> None:
    """Every value is as probable in either, as far as chance tells."""
    for value in range(256):
        hits, n = [int((some == value).sum()) for some in (one, other)], len(one)
        (low, high), (least, most) = (proportion(h, n, 2**12) for h in hits)
        assert low <= most, (value, hits)
        assert least <= high, (value, hits)
