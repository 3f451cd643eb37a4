"""What the demonstration's server reads in reports."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from cloister.collection.client.encoder import PlanEncoder
from cloister.core.errors import CloisterError
from cloister.lab.phones.app import Reader
from cloister.lab.phones.crowd import GROUPS, plan_of, rows
from tests.alarms import Alarm

pytestmark = pytest.mark.thorough

PLAN = plan_of(20_000, 2.0)


@pytest.mark.alarm(1e-7)
def test_a_report_comes_from_lit_cells_so_many_times_as_often_as_from_others(tmp_path: Path, alarm: Alarm) -> None:
    """The share of people whose own cell is lit is e^eps p / (e^eps p + 1 - p), p the share of lit cells. 1,000 people,
    and a tolerance for p, which differs by person."""
    reader, n = Reader(PLAN, tmp_path), 1000
    encoder, row = PlanEncoder(PLAN), [7.1, 3.3]
    own, lit = 0, list[float]()
    for user in range(n):
        found = reader.likely(encoder.encode([row], [user]).to_bytes())
        side = found["side"]
        own += [int(row[0] / 12 * side), int(row[1] / 12 * side)] in found["cells"]
        lit.append(len(found["cells"]) / side**2)
        assert found["times"] == math.exp(2.0)
    p = float(np.mean(lit))
    expected = math.exp(2.0) * p / (math.exp(2.0) * p + 1 - p)
    assert own / n == pytest.approx(expected, abs=alarm.errors() * math.sqrt(0.25 / n) + 0.01)
    assert p == pytest.approx(1 / 8, abs=0.02)


def test_bytes_that_no_phone_sends_are_refused(tmp_path: Path) -> None:
    report = PlanEncoder(PLAN).encode([[7.0, 3.0]], [4711]).to_bytes()
    for wrong in (b"", report[:-1], report * 2, report[:1] + bytes(8) + report[9:], report[:-1] + b"\xff"):
        with pytest.raises(CloisterError):
            Reader(PLAN, tmp_path).likely(wrong)


def test_centres_are_found_anew_when_reports_have_come_and_only_then(tmp_path: Path) -> None:
    reader = Reader(PLAN, tmp_path)
    assert PLAN.outlook is not None
    for few in (0, 1, int(PLAN.outlook.error * PLAN.rows)):
        assert reader.found(few) == {"reports": few, "centers": []}  # nothing is read
    encoded = PlanEncoder(PLAN).encode(rows(20_000, np.random.default_rng(1)), np.arange(20_000))
    (tmp_path / "round-001-000001.reports").write_bytes(encoded.to_bytes())
    found = reader.found(20_000)
    assert found["reports"] == 20_000
    far = np.linalg.norm(np.asarray(found["centers"])[:, None] - np.asarray(GROUPS), axis=2)
    assert far.min(axis=0).max() < 1.5
    (tmp_path / "round-001-000001.reports").unlink()
    assert reader.found(20_000) == found
