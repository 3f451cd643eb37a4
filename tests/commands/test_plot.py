"""``cloister plot``, run as a user runs it: it sees a result's file and no rows."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.in_process import cloister, program, ran
from tests.showing.test_figures import words

FIT = "fit rows.npy -k 3 --epsilon 1 --delta 1e-6 --bounds=-1:1 --rows 1000 --seed 1"


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with results by Lloyd rounds and by a tree; the rows are gone."""
    folder = tmp_path_factory.mktemp("fitted")
    np.save(folder / "rows.npy", np.random.default_rng(0).normal(0, 0.3, (1000, 2)))
    for method in ("fastlloyd", "hst-means"):
        done = ran(f"{FIT} --method {method} --out {method}.json --json", folder)
        (folder / f"{method}.printed.json").write_text(done.stdout)
    (folder / "rows.npy").unlink()
    return folder


@pytest.mark.thorough
@pytest.mark.parametrize("ending", ["svg", "png"])
def test_a_fit_is_drawn_from_its_result_alone_and_always_alike(fitted: Path, ending: str, tmp_path: Path) -> None:
    drawn = []
    for name, run in (("a", cloister), ("b", program)):
        target = tmp_path / f"{name}.{ending}"
        done = run("plot", "fastlloyd.json", "-o", str(target), folder=fitted)
        assert (done.returncode, done.stderr) == (0, "")
        assert "map of 3 centres on 0 and 1: no tree cells in this result, paths over" in done.stdout
        drawn.append(target.read_bytes())
    assert drawn[0] == drawn[1]
    assert drawn[0].startswith(b"\x89PNG" if ending == "png" else b"<?xml")
    assert sorted(p.name for p in tmp_path.iterdir()) == [f"a.{ending}", f"b.{ending}"]


def test_the_words_of_a_picture_are_text_and_say_what_was_promised(fitted: Path, tmp_path: Path) -> None:
    target = tmp_path / "map.svg"
    target.write_text("old, which is replaced")
    ran(f"plot fastlloyd.json -o {target}", fitted)
    text = words(tmp_path / "map.svg")
    for part in (
        "Released centres: k = 3, fastlloyd",
        "ε = 1, δ = 1e-06, Central trust",
        "column 0",
        "column 1",
        "no tree cells in this result",
        "border of the domain",
        "path over the rounds",
        "released rows",
    ):
        assert part in text
    assert "<dc:date>" not in (tmp_path / "map.svg").read_text()


def test_a_tree_is_drawn_with_its_cells_and_its_costs(fitted: Path, tmp_path: Path) -> None:
    """From a result that was saved, and from what fit printed as JSON."""
    done = ran(f"plot hst-means.json -o {tmp_path}/map.svg --json", fitted)
    facts = json.loads(done.stdout)
    details = json.loads((fitted / "hst-means.json").read_text())["result"]["details"]
    assert facts["cells"] == facts["cells in the result"] == len(details["cells"]) > 1
    assert (facts["picture"], facts["axes"], facts["file"]) == ("map", ["0", "1"], str(tmp_path / "map.svg"))
    assert "tree cell (bluer: more rows per area)" in words(tmp_path / "map.svg")
    done = ran(f"plot hst-means.printed.json -o {tmp_path}/curve.svg --curve --json", fitted)
    assert json.loads(done.stdout)["costs"] == len(details["costs"])
    assert "k = 3, as asked" in words(tmp_path / "curve.svg")


@pytest.mark.thorough
def test_the_command_line_starts_without_matplotlib_and_draws_without_pyplot(fitted: Path, tmp_path: Path) -> None:
    code = (
        "import sys\nimport cloister.cli, cloister.showing.plots, cloister.showing.plot_data\nassert 'matplotlib' not "
        f"in sys.modules\nsys.argv = ['cloister', 'plot', 'hst-means.json', '-o', {str(tmp_path / 'a.png')!r}]\n"
        "try: cloister.cli.main()\nexcept SystemExit: pass\n"
        "assert 'matplotlib' in sys.modules and 'matplotlib.pyplot' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=fitted, capture_output=True)
    assert (tmp_path / "a.png").exists()
