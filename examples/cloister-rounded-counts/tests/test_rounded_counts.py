"""What a plugin author runs: the conformance kit on her own component, and one fit with it."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cloister_rounded_counts.oracle import RoundedCounts

from cloister.testing import parametrize


@parametrize(RoundedCounts(), RoundedCounts(step=1))
def test_conformance(component: Any, check: Any) -> None:
    check(component)


def command(*arguments: str) -> str:
    program = shutil.which("cloister", path=str(Path(sys.executable).parent)) or pytest.fail(
        "cloister is not installed"
    )
    return subprocess.run([program, *arguments], capture_output=True, text=True, check=True).stdout


def test_it_is_listed() -> None:
    assert "rounded-laplace" in {c["name"] for c in json.loads(command("list", "FrequencyOracle", "--json"))}


def test_fastlloyd_runs_with_it(tmp_path: Path) -> None:
    rows = np.random.default_rng(0).normal(0, 0.2, (500, 2))
    np.save(tmp_path / "rows.npy", rows)
    out = command(
        "fit", str(tmp_path / "rows.npy"), "-k", "2", "--epsilon", "5", "--delta", "1e-6", "--bounds=-1:1", "--rows", "500",
        "--with", "counts=rounded-laplace", "--set", "counts.step=10", "--json",
    )  # fmt: skip
    result = json.loads(out)
    assert result["method"]["slots"]["counts"]["options"] == {"step": 10}
    assert {s["mechanism"] for s in result["privacy"]["spends"]} == {"rounded-laplace", "discrete-gaussian"}
    assert all(weight % 10 == 0 for weight in result["weights"])
