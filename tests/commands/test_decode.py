"""``cloister decode``, run as people run it: refusals in one line, damaged files, too few reports."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from cloister.collection.client.encoder import Encoded, PlanEncoder
from cloister.collection.plan.plan import CollectionPlan
from cloister.collection.plan.publish import publish
from cloister.run.request import Request
from cloister.run.result import Result
from tests.collection.server.collected import written
from tests.in_process import ran, refused

D, N = 5, 1000
ROWS = np.random.default_rng(0).normal(0, 0.3, (N, D))


@pytest.fixture(scope="module")
def plan() -> CollectionPlan:
    return publish(Request(k=3, method="one-round", epsilon=2.0, bounds="ball:1", rows=N, seed=1), dimension=D)


@pytest.fixture(scope="module")
def sent(plan: CollectionPlan) -> Encoded:
    return PlanEncoder(plan).encode(ROWS, np.arange(N))


@pytest.fixture
def folder(tmp_path: Path, plan: CollectionPlan, sent: Encoded) -> Path:
    plan.write(tmp_path / "plan", "")
    (tmp_path / "reports").mkdir()
    written(tmp_path / "reports" / "part-0.reports", sent)
    return tmp_path


def test_json_for_programs_and_a_line_per_refusal_for_people(folder: Path, sent: Encoded) -> None:
    written(folder / "reports" / "part-1.reports", sent, slice(0, 10))
    bad = bytearray(written(folder / "reports" / "part-2.reports", sent, slice(10, 20)).read_bytes())
    bad[-1] ^= 1
    (folder / "reports" / "part-2.reports").write_bytes(bad)
    done = ran("decode plan reports --out c.npz --json", folder)
    assert done.stderr.splitlines() == [
        "refused 1 files or batches that are damaged or cut short (the first: 'reports/part-2.reports')",
        "refused 10 reports of users who have reported already (the first: 'reports/part-1.reports')",
    ]
    said = json.loads(done.stdout)
    assert said == Result.load(folder / "c.npz").as_dict()
    assert said["details"]["reports"]["refused"]["duplicate"] == 10
    said = "cloister: 'reports/part-2.reports' is one of the files or batches that are damaged or cut short\n"
    assert refused("decode plan reports --out d.json --strict", folder) == said
    assert not (folder / "d.json").exists()


def test_too_few_reports_to_learn_anything_are_warned_of(tmp_path: Path) -> None:
    """As the plan's own warning: v falls as one over the number of reports.."""
    wanted = publish(Request(k=3, method="one-round", epsilon=2.0, bounds="ball:1", rows=20_000, seed=0), dimension=D)
    assert wanted.outlook is not None
    enough = int(wanted.outlook.error * wanted.rows)
    assert 20 < enough < N
    wanted.write(tmp_path / "plan", "")
    np.save(tmp_path / "few.npy", ROWS[: enough // 2])
    np.save(tmp_path / "more.npy", ROWS[: enough + 1])
    for name, told in (("few", True), ("more", False)):
        ran(f"encode plan {name}.npy --out {name}", tmp_path)
        assert ("expect no better than one centre" in ran(f"decode plan {name}", tmp_path).stderr) == told
