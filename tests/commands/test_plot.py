"""``cloister plot``, run as a user runs it: it sees a result's file and no rows."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from tests.in_process import ran
from tests.showing.test_figures import words

FIT = "fit rows.npy -k 3 --epsilon 1 --delta 1e-6 --bounds=-1:1 --rows 1000 --seed 1"


def test_a_tree_is_drawn_with_its_cells_and_its_costs_from_its_result_alone(tmp_path: Path) -> None:
    """A result that was saved, and what fit printed as JSON."""
    np.save(tmp_path / "rows.npy", np.random.default_rng(0).normal(0, 0.3, (1000, 2)))
    printed = ran(f"{FIT} --method hst-means --out tree.json --json", tmp_path).stdout
    (tmp_path / "printed.json").write_text(printed)
    (tmp_path / "rows.npy").unlink()
    facts = json.loads(ran("plot tree.json -o map.svg --json", tmp_path).stdout)
    details = json.loads(printed)["details"]
    assert facts["cells"] == facts["cells in the result"] == len(details["cells"]) > 1
    assert (facts["picture"], facts["axes"], facts["file"]) == ("map", ["0", "1"], "map.svg")
    assert "tree cell (bluer: more rows per area)" in words(tmp_path / "map.svg")
    done = ran("plot printed.json -o curve.svg --curve --json", tmp_path)
    assert json.loads(done.stdout)["costs"] == len(details["costs"])
    assert "k = 3, as asked" in words(tmp_path / "curve.svg")
