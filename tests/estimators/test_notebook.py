"""From nothing to a report in a notebook: a real kernel runs it, and what it shows is looked at."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from cloister.lab.made import hospital
from tests.showing.report.pages import Page

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")

CELLS = (
    "import pandas as pd\nimport cloister\nfrom cloister.lab.made import BOUNDS, WARDS",
    "patients = pd.read_csv('patients.csv')",
    "model = cloister.KMeans(7, epsilon=1, delta=1e-7, bounds=BOUNDS, categories={'ward': list(WARDS)})\n"
    "model.fit(patients)",
    "model.result_",
    "model.privacy_",
    "model.result_.profile()",
    "model.plot()",
    "model.result_.plot(project=True)",
    "model.result_.report('groups.html')",
)
FIT = 2

ROWS = 20_000
CLIPPED = "were clipped"
"""In every warning of columns that zoom cut: which ones, and whether a centre is near an end, the noise decides."""


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Any]]:
    """The notebook's folder, and its cells with what they have shown."""
    folder = tmp_path_factory.mktemp("notebook")
    pd.DataFrame(hospital(ROWS, seed=1).columns).to_csv(folder / "patients.csv", index=False)
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in CELLS])
    nbclient.NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(folder)}}).execute()
    return folder, notebook.cells


@pytest.mark.thorough
def test_no_cell_fails_or_warns_but_of_columns_whose_bounds_are_far_too_wide(
    ran: tuple[Path, list[Any]],
) -> None:
    outputs = [output for cell in ran[1] for output in cell.outputs]
    warned = [output for output in outputs if output.output_type == "stream"]
    assert {output.output_type for output in outputs} - {"stream"} <= {"execute_result", "display_data"}, outputs
    assert warned == [output for output in ran[1][FIT].outputs if output.output_type == "stream"]
    assert all(CLIPPED in output["text"] for output in warned)


@pytest.mark.thorough
def test_nothing_shown_or_written_is_of_a_row(ran: tuple[Path, list[Any]]) -> None:
    folder, cells = ran
    page = (folder / "groups.html").read_text("utf-8")
    assert Page(page).cards() == 7
    text = page + "".join(str(output.get("data", {})) for cell in cells for output in cell.outputs)
    rows = pd.read_csv(folder / "patients.csv")
    assert not set(rows["mrn"]) & set(re.findall(r"P\d{7}", text))
    assert not set(rows["visit"]) & set(re.findall(r"\d{4}-\d\d-\d\d", text))
