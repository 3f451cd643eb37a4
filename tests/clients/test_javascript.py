"""The JavaScript client beside Python: its own tests, the bytes of random rows, and the law of what it really draws.

``CLOISTER_ROWS`` says how many rows each plan's comparison takes (100).
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cloister.collection.client.encoder import PlanEncoder
from cloister.collection.plan.bundle import bundle_of
from cloister.collection.plan.plan import CollectionPlan
from cloister.collection.plan.publish import publish
from cloister.collection.plan.transcript import Transcript
from cloister.core.randomness import NoiseRng
from cloister.core.types import AnyArray, Floats
from cloister.run.request import Request
from cloister.testing.checks.oracle_local import PEOPLE, PILOT, reports_hide_rows
from cloister.testing.statistics import proportion
from tests.clients.compared import put, rounds_of, written

NODE = shutil.which("node")
CLIENT = Path(__file__).parents[2] / "clients" / "javascript"
ROWS = int(os.environ.get("CLOISTER_ROWS", "100"))
SHUFFLED = {"epsilon": 1.0, "delta": 1e-6}


def of(dimension: int, counts: str = "", sums: str = "", **changes: Any) -> tuple[int, dict[str, Any]]:
    """Columns of a plan, and what it asks for: its oracles, if they are others, and all else."""
    named = {slot: name for slot, name in (("counts", counts), ("sums", sums)) if name}
    return dimension, {"components": named, **changes}


PLANS = {
    "a byte for 100 columns": of(100),
    "a grid": of(2),
    "a box": of(10, bounds="-1:1"),
    "a sign": of(6, "hadamard-response"),
    "bits": of(6, "optimised-unary"),
    "a set": of(6, "subset-selection"),
    "any bucket": of(6, "explicit-histogram"),
    "the bucket itself": of(6, "adaptive-response", epsilon=7.0),
    "64-bit transforms": of(300),
    "privunit": of(100, options={"sums.randomiser": "privunit"}),
    "duchi": of(7, options={"sums.randomiser": "duchi"}),
    "a tree of signs": of(10, method="one-round-lsh"),
    "a net tree": of(10, method="one-round-net-tree"),
    "two of three columns": of(
        3, method="described", bounds="-1:1", trust="local", options={"beside": 1, "columns": "0,2"}
    ),
    "shuffled": of(10, "amplified-counts", "amplified-vectors", **SHUFFLED),
    "blankets": of(4, "blanket-histogram", "amplified-vectors", **SHUFFLED),
    "shares": of(4, "split-and-mix-counts", "split-and-mix", options={"tree.cells": 32}, **SHUFFLED),
    "Gaussian vectors": of(4, "optimised-local-hashing", "ldp-average", options={"tree.cells": 32}, **SHUFFLED),
}
HEAVY = ("shares", "Gaussian vectors")
"""Hundreds of numbers in a report: a tenth of the rows."""

METHODS = (
    "fastlloyd",
    "hst-median",
    "radius-means",
    "weighted-centers",
    "zoom",
    "k-variates",
    "naive-noise",
    "described",
)
SOME = ("fastlloyd", "zoom", "k-variates", "naive-noise")
"""Of the others it reads every round in its own tests, where they are vectors."""

AUDITED = {
    "a byte": (of(4), "u1"),
    "a grid": (of(2), "u1"),
    "bits": (of(4, "optimised-unary", options={"tree.cells": 4}), "u1"),
    "privunit": (of(4, options={"sums.randomiser": "privunit"}), "<u2"),
    "duchi": (of(4, options={"sums.randomiser": "duchi"}), "<u2"),
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


def planned(dimension: int, changes: dict[str, Any]) -> CollectionPlan:
    given = {"k": 5, "method": "one-round", "epsilon": 2.0, "bounds": "ball:1", "rows": 100_000, "seed": 1}
    return publish(Request(**{**given, **changes}), dimension=dimension)


@pytest.mark.parametrize("built", [pytest.param("src", marks=pytest.mark.long), "dist"])  # another test compares them
def test_its_own_tests_pass(built: str) -> None:
    assert "# fail 0" in node("--test", "--test-reporter=tap", CLIENT=built)


def compared(folder: Path, asking: CollectionPlan | Transcript, rows: int) -> None:
    """Python's reports and JavaScript's are the same bytes."""
    found = json.loads(node("bench/compare.js", written(folder, asking, rows)))
    assert found["different"] == 0, found


@pytest.mark.parametrize("name", PLANS)
def test_random_rows_become_the_same_bytes(name: str, tmp_path: Path) -> None:
    compared(tmp_path, planned(*PLANS[name]), ROWS // 10 if name in HEAVY else ROWS)


@pytest.mark.parametrize("method", [m if m in SOME else pytest.param(m, marks=pytest.mark.long) for m in METHODS])
def test_random_rows_become_the_same_bytes_in_every_round(method: str, tmp_path: Path) -> None:
    plan = planned(3, {"method": method, "k": 3, "epsilon": 20.0, "delta": 1e-6, "rows": 2000, "trust": "local"})
    for number, transcript in enumerate(rounds_of(tmp_path, plan)):
        compared(tmp_path / str(number), transcript, max(10, ROWS // 10))


@pytest.mark.parametrize("name", AUDITED)
def test_what_it_draws_itself_hides_a_row_and_follows_pythons_law(name: str, tmp_path: Path) -> None:
    (dimension, changes), dtype = AUDITED[name]
    plan, rows = planned(dimension, {**changes, "rows": 1000}), _far_rows(dimension)
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
    put(folder, bundle, np.repeat(rows, n, axis=0), np.full(n * len(rows), user, np.uint64))
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
