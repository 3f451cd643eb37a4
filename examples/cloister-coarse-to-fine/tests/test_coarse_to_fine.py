"""The conformance kit on the method, and a fit with it from the command line."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
from cloister_coarse_to_fine.method import CoarseToFine

from cloister.plugin import filled, make
from cloister.testing import parametrize

LOCAL = filled(
    CoarseToFine,
    counts=make("FrequencyOracle", "explicit-histogram"),
    sums=make("VectorSumOracle", "hadamard-vector"),
)


@parametrize(CoarseToFine, named={"local": LOCAL})
def test_conformance(component: Any, check: Any) -> None:
    check(component)


def test_a_fit_from_the_command_line(tmp_path: Path) -> None:
    np.save(tmp_path / "rows.npy", np.random.default_rng(0).normal([[-0.5, 0.5]] * 1000, 0.1))
    line = "fit rows.npy -k 1 --epsilon 1 --delta 1e-6 --bounds=-1:1 --rows 1000 --method coarse-to-fine --json"
    program = [sys.executable, "-m", "cloister.cli", *line.split()]
    done = subprocess.run(program, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (center,) = json.loads(done.stdout)["centers"]
    assert abs(center[0] + 0.5) < 0.1
    assert abs(center[1] - 0.5) < 0.1
