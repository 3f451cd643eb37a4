"""Rivals of a study, which are entrants: what they get, and that they count as not private."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from cloister.metrics import nicv
from tests.lab.comparing.studies import ROWS, study

ENTRY = """name = "echo"
title = "tells what it was given"
paper = "none: a test"
guarantee = "pure"
trust = "central"
relation = "add-or-remove"
note = "It repeats its bounds."
"""

ECHO = """#!/bin/sh
echo "$BENCH_EPSILON $BENCH_DELTA" >> '{log}'
cat "$BENCH_BOUNDS" >> '{log}'
head -n 3 "$BENCH_ROWS" > "$BENCH_OUT"
"""


def entrant(folder: Path, program: str = ECHO) -> str:
    """A folder of an entrant that writes down what it is given, and answers the first three rows."""
    place = folder / "echo"
    place.mkdir()
    (place / "entry.toml").write_text(ENTRY)
    (place / "run").write_text(program.replace("{log}", str(folder / "log")))
    (place / "run").chmod(0o755)
    return str(place)


def test_scikit_learn_joins_as_not_private() -> None:
    found = study(rivals=["sklearn"], runs=1)
    cell = found.cells[-1]
    assert (cell.label, cell.private, len(cell.nicv)) == ("sklearn", False, 1)
    assert cell.guarantee == "NOT private"


def test_a_rival_gets_the_same_budget_and_bounds_in_the_studys_units(tmp_path: Path) -> None:
    wide = ROWS * [1, 1, 1000]
    rival = entrant(tmp_path)
    found = study(rows=wide, bounds=[(-1, 1), (-1, 1), (-2000, 1000)], rivals=[rival], epsilons=[0.3], runs=1)
    said = (tmp_path / "log").read_text().split("\n")
    assert said[0] == "0.3 0.0"  # a pure guarantee has no use for a delta
    given = [[float(x) for x in line.split(",")] for line in said[1:4]]
    np.testing.assert_allclose(given, [[-1, 1], [-1, 1], [-2000 / 1500, 1000 / 1500]])
    units = found.conditions.units
    assert found.cells[-1].nicv[0] == pytest.approx(nicv(wide / units, wide[:3] / units))
    assert (found.cells[-1].private, found.cells[-1].guarantee) == (False, "states pure")
    assert f"echo states pure differential privacy, which 'cloister bench audit {rival}' tests" in found.table()
    assert "It repeats its bounds." in found.table()


@pytest.mark.parametrize(
    ("program", "bounds", "said"),
    [
        ("#!/bin/sh\nexit 7\n", (-1, 1), "exit code 7"),
        ("#!/bin/sh\nprintf 'nan,0,0\\n0,0,0\\n1,1,1\\n' > $BENCH_OUT\n", (-1, 1), "not finite"),
        ("#!/bin/sh\nprintf '1e300,0,0\\n0,0,0\\n1,1,1\\n' > $BENCH_OUT\n", (-1, 1), "too large"),
        (ECHO, "ball:2", "bounds per column, not a ball"),
    ],
)
def test_a_rival_that_fails_is_a_cell_that_says_so(tmp_path: Path, program: str, bounds: object, said: str) -> None:
    assert said in str(study(rivals=[entrant(tmp_path, program)], bounds=bounds, runs=1).cells[-1].refused)
