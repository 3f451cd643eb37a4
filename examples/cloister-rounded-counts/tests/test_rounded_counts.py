"""The conformance kit on the oracle, and a fit with it from the command line."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
from cloister_rounded_counts.oracle import RoundedCounts

from cloister.testing import parametrize


@parametrize(RoundedCounts(), RoundedCounts(step=1))
def test_conformance(component: Any, check: Any) -> None:
    check(component)


def test_a_fit_from_the_command_line(tmp_path: Path) -> None:
    np.save(tmp_path / "rows.npy", np.random.default_rng(0).normal([[-0.5, 0.5]] * 1000, 0.1))
    line = "fit rows.npy --method fastlloyd -k 1 --epsilon 5 --delta 1e-6 --bounds=-1:1 --rows 1000 --json"
    swapped = ["--with", "counts=rounded-counts", "--set", "counts.step=10"]
    program = [sys.executable, "-m", "cloister.cli", *line.split(), *swapped]
    done = subprocess.run(program, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert {spent["mechanism"] for spent in result["privacy"]["spends"]} == {"rounded-counts", "discrete-gaussian"}
    assert all(weight % 10 == 0 for weight in result["weights"])
