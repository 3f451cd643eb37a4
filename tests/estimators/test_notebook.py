"""From nothing to a report in a notebook: a real kernel runs it, and what it shows is looked at."""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd
import pytest

from cloister.lab.hospital import hospital
from tests.showing.report.pages import Page

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")

CELLS = (
    "import pandas as pd\nimport cloister\nfrom cloister.lab.hospital import BOUNDS, WARDS",
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

CLIPPED = "were clipped"
"""In every warning of columns that zoom cut: which ones, and whether a centre is near an end, the noise decides."""


@pytest.mark.thorough
def test_no_cell_fails_or_warns_but_of_wide_bounds_and_nothing_shown_or_written_is_of_a_row(tmp_path: Path) -> None:
    rows = pd.DataFrame(hospital(20_000, seed=1).columns)
    rows.to_csv(tmp_path / "patients.csv", index=False)
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in CELLS])
    nbclient.NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(tmp_path)}}).execute()
    outputs = [output for cell in notebook.cells for output in cell.outputs]
    warned = [output for output in outputs if output.output_type == "stream"]
    assert {output.output_type for output in outputs} - {"stream"} <= {"execute_result", "display_data"}, outputs
    assert warned == [output for output in notebook.cells[FIT].outputs if output.output_type == "stream"]
    assert all(CLIPPED in output["text"] for output in warned)
    page = (tmp_path / "groups.html").read_text("utf-8")
    assert Page(page).cards() == 7
    text = page + "".join(str(output.get("data", {})) for output in outputs)
    assert not set(rows["mrn"]) & set(re.findall(r"P\d{7}", text))
    assert not set(rows["visit"]) & set(re.findall(r"\d{4}-\d\d-\d\d", text))
