"""``cloister decode``, run as people run it: whole sessions, refusals in one line, damaged files."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from cloister.collection.client.encoder import PlanEncoder
from cloister.collection.plan.publish import publish
from cloister.run.request import Request
from cloister.run.result import Result
from tests.collection.server.collected import written
from tests.in_process import ran, refused

D, N = 5, 1000
ROWS = np.random.default_rng(0).normal(0, 0.3, (N, D))


def test_from_rows_to_centres(tmp_path: Path) -> None:
    np.save(tmp_path / "mine.npy", ROWS)
    ran(f"plan -k 3 --epsilon 2 --rows {N} --bounds ball:1 --dimension {D} --out plan", tmp_path)
    ran("encode plan mine.npy --out reports", tmp_path)
    done = ran("decode plan reports --out centers.json", tmp_path)
    assert done.stderr == ""
    assert done.stdout.startswith("1,000 reports, 100.0% of the planned users\n")
    assert "(replace one row) epsilon = 2, Local trust" in done.stdout
    assert "SIMULATED" not in done.stdout
    assert done.stdout.endswith("\nsaved to centers.json\n")
    result = Result.load(tmp_path / "centers.json")
    assert (result.centers.shape, result.privacy.simulated) == ((3, D), False)
    assert result.details["reports"]["accepted"] == N


def test_json_for_programs_and_a_line_per_refusal_for_people(tmp_path: Path) -> None:
    plan = publish(Request(k=3, method="one-round", epsilon=2.0, bounds="ball:1", rows=N, seed=1), dimension=D)
    plan.write(tmp_path / "plan", "")
    reports, sent = tmp_path / "reports", PlanEncoder(plan).encode(ROWS, np.arange(N))
    reports.mkdir()
    written(reports / "part-0.reports", sent)
    written(reports / "part-1.reports", sent, slice(0, 10))
    damaged = written(reports / "part-2.reports", sent, slice(10, 20))
    content = bytearray(damaged.read_bytes())
    content[-1] ^= 1
    damaged.write_bytes(content)
    done = ran("decode plan reports --out c.npz --json", tmp_path)
    assert done.stderr.splitlines() == [
        "refused 1 files or batches that are damaged or cut short (the first: 'reports/part-2.reports')",
        "refused 10 reports of users who have reported already (the first: 'reports/part-1.reports')",
    ]
    said = json.loads(done.stdout)
    assert said == Result.load(tmp_path / "c.npz").as_dict()
    assert said["details"]["reports"]["refused"]["duplicate"] == 10
    said = "cloister: 'reports/part-2.reports' is one of the files or batches that are damaged or cut short\n"
    assert refused("decode plan reports --out d.json --strict", tmp_path) == said
    assert not (tmp_path / "d.json").exists()


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
