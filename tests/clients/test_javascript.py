"""The JavaScript client beside Python: its own tests, the bytes of random rows, and what it really draws.

``CLOISTER_ROWS`` says how many rows each plan's comparison takes (100).
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cloister.collection.client.encoder import PlanEncoder
from cloister.collection.plan.bundle import Bundle, bundle_of
from cloister.collection.plan.plan import CollectionPlan
from cloister.core.domains import Ball
from cloister.core.randomness import NoiseRng, PublicRng
from cloister.core.types import AnyArray, Floats, Ids
from cloister.testing.checks.oracle_local import PEOPLE, PILOT, reports_hide_rows
from tests.collection.plans import local_plan

NODE = shutil.which("node")
CLIENT = Path(__file__).parents[2] / "clients" / "javascript"
ROWS = int(os.environ.get("CLOISTER_ROWS", "100"))
BLOCK = 64
"""Words that are made at once."""
SHUFFLED = {"epsilon": 1.0, "delta": 1e-6}


def of(dimension: int, counts: str = "", sums: str = "", **changes: Any) -> tuple[int, dict[str, Any]]:
    """Columns of a plan, and what it asks for: its oracles, if they are others, and all else."""
    named = {slot: name for slot, name in (("counts", counts), ("sums", sums)) if name}
    return dimension, {"components": named, **changes}


PLANS = {
    "a byte for 100 columns": of(100),
    "a grid": of(2),
    "bits": of(6, "optimised-unary"),
    "the bucket itself": of(6, "adaptive-response", epsilon=7.0),
    "64-bit transforms": of(300),
    "privunit": of(100, options={"sums.randomiser": "privunit"}),
    "duchi": of(7, options={"sums.randomiser": "duchi"}),
    "two of three columns": of(
        3, method="described", bounds="-1:1", trust="local", options={"beside": 1, "columns": "0,2"}
    ),
    "shuffled": of(10, "amplified-counts", "amplified-vectors", **SHUFFLED),
    "shares": of(4, "split-and-mix-counts", "split-and-mix", options={"tree.cells": 32}, **SHUFFLED),
    "Gaussian vectors": of(4, "optimised-local-hashing", "ldp-average", options={"tree.cells": 32}, **SHUFFLED),
}
HEAVY = ("shares", "Gaussian vectors")
"""Hundreds of numbers in a report: a tenth of the rows."""


AUDITED = {
    "a byte": (of(4), "u1"),
    "bits": (of(4, "optimised-unary", options={"tree.cells": 4}), "u1"),
    "privunit": (of(4, options={"sums.randomiser": "privunit"}), "<u2"),
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


def test_its_own_tests_pass() -> None:
    """Of what is published; that it was built of these sources is one of them."""
    assert "# fail 0" in node("--test", "--test-reporter=tap", CLIENT="dist")


def planned(dimension: int, changes: dict[str, Any]) -> CollectionPlan:
    return local_plan(dimension, **{"k": 5, "rows": 100_000, **changes})


def words(key: bytes) -> Iterator[int]:
    """The words of a key for 0, 1, 2, ..."""
    rng, start = PublicRng(key), 0
    while True:
        yield from rng.of_users(np.arange(start, start + BLOCK, dtype=np.uint64)).tolist()
        start += BLOCK


def rows_of(plan: CollectionPlan, g: np.random.Generator, number: int) -> Floats:
    """Rows (n, d), some of them at the border of the domain, beyond it, in its middle, and far away."""
    domain = plan.domain
    wide = domain.radius if isinstance(domain, Ball) else domain.half_widths
    rows: Floats = domain.middle + wide * g.normal(0, 0.3, (number, plan.dimension)) * g.choice(
        [0.3, 1, 3], (number, 1)
    )
    rows[g.random(number) < 0.02] = domain.middle
    rows[g.random(number) < 0.02] *= 1e9
    rows[g.random(number) < 0.02] = domain.middle + wide
    return rows


def written(folder: Path, plan: CollectionPlan, number: int) -> Path:
    """A folder with a bundle, rows, users, keys of their secret words, and Python's reports (``bench/compare.js``)."""
    bundle, g = bundle_of(plan), np.random.default_rng(0)
    rows = rows_of(plan, g, number)
    users: Ids = g.integers(0, plan.rows, number).astype(np.uint64)
    keys = [g.bytes(16) for _ in range(number)]
    encoder, size = PlanEncoder(plan, noise=NoiseRng.for_tests(0)), 18 + bundle.as_dict()["answer_bytes"]
    reports = b"".join(_report(encoder, *each, size) for each in zip(rows, users, keys, strict=True))
    put(folder, bundle, rows, users, {"keys.bin": b"".join(keys), "reports.bin": reports})
    return folder


def put(folder: Path, bundle: Bundle, rows: Floats, users: Ids, more: dict[str, bytes] | None = None) -> None:
    """A folder's files: a bundle, rows, users, and more."""
    folder.mkdir(parents=True, exist_ok=True)
    files = {"bundle.json": bundle.content, "bundle.bin": bundle.arrays, "rows.bin": rows.tobytes()}
    for name, content in {**files, "users.bin": users.tobytes(), **(more or {})}.items():
        (folder / name).write_bytes(content)


def _report(encoder: PlanEncoder, row: Floats, user: int, key: bytes, size: int) -> bytes:
    """A report of so many bytes; zeros of a user who is not asked."""
    encoder._noise = NoiseRng.replayed(words(key))  # a new encoder would work the whole round out again
    return encoder.encode(row[None], np.array([user])).to_bytes() or bytes(size)


@pytest.mark.parametrize("name", PLANS)
def test_random_rows_become_the_same_bytes(name: str, tmp_path: Path) -> None:
    folder = written(tmp_path, planned(*PLANS[name]), ROWS // 10 if name in HEAVY else ROWS)
    found = json.loads(node("bench/compare.js", folder))
    assert found["different"] == 0, found


@pytest.mark.parametrize("name", AUDITED)
def test_what_it_draws_itself_hides_a_row(name: str, tmp_path: Path) -> None:
    """With the system's words; what it makes of given ones is what Python does, byte by byte."""
    (dimension, changes), dtype = AUDITED[name]
    plan = planned(dimension, {**changes, "rows": 1000})
    for user in _of_each_question(plan):
        sent = _drawn(tmp_path, plan, _far_rows(dimension), user)
        numbers = [[np.frombuffer(some.tobytes(), dtype).reshape(len(some), -1)] for some in sent]
        reports_hide_rows(numbers, plan.total.epsilon, f"{name}, user {user}")


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
