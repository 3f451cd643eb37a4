"""Papers' protocols in a tiny form: a figure of each table and line, one run each."""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pytest

from cloister.lab.papers import papers, reproduction, runs
from cloister.lab.papers.cells import PaperCell
from cloister.lab.papers.paper import Paper
from cloister.lab.papers.papers import NAMES, paper_of
from cloister.lab.papers.published import published
from cloister.lab.papers.reproduction import reproduce
from tests.in_process import ran, refused

SLOW = {"google", "dpm", "stemmer", "pe-means"}
"""Papers whose smallest set takes seconds."""

PARAMETERS = [pytest.param(name, marks=[pytest.mark.long] if name in SLOW else []) for name in NAMES]


def of_each_line(paper: Paper) -> list[PaperCell]:
    """The first figure of each line of each table whose rows are here, of one run, and one of each missing set."""
    chosen = dict[Any, PaperCell]()
    for cell in paper.cells(True):
        if cell.data.startswith("mixture 1000000"):
            continue
        why = paper.missing(cell)
        key = cell.data if why else (cell.table, cell.series)
        chosen.setdefault(key, attrs.evolve(cell, runs=1))
    return list(chosen.values())


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """All papers in a tiny form, with a folder of one small stored set."""
    folder = tmp_path / "sets"
    folder.mkdir()
    np.savez(folder / "higgs_10k.npz", X=np.random.default_rng(1).normal(0, 1, (300, 5)))
    monkeypatch.setenv("CLOISTER_DATA", str(folder))

    def small(name: str) -> Paper:
        paper = paper_of(name)
        chosen = of_each_line(paper)
        return attrs.evolve(paper, cells=lambda quick: chosen)

    for module in (reproduction, runs):
        monkeypatch.setattr(module, "paper_of", small)


@pytest.mark.parametrize("name", PARAMETERS)
@pytest.mark.usefixtures("tiny")
def test_a_paper_is_measured_beside_its_published_figures_and_missing_sets_are_named(name: str, tmp_path: Path) -> None:
    made = reproduce(name, quick=True)
    records = made.records()
    assert made.refused == {}
    measured = [record for record in records if record["ours"] is not None]
    assert {record["table"] for record in measured} <= {table.name for table in made.paper.tables}
    signed = ("table 2, silhouette", "table 2, distance")  # may be 0, or less
    assert all(record["ours"] > 0 or record["table"] in signed for record in measured)
    assert all(record["runs"] == 1 for record in measured)
    panels = {(record["table"], record["panel"]) for record in measured}
    for place, stated in published(name).items():
        if place[:2] in panels:
            beside = next(r for r in records if (r["table"], r["panel"], r["series"], r["x"]) == place)
            assert (beside["published"], beside["source"]) == (stated.value, stated.source)
    for cell in paper_of(name).cells(True):
        why = paper_of(name).missing(cell)
        assert (made.skipped.get(cell.data) == why) if why else (cell.data not in made.skipped)
    headlines = made.headlines
    assert headlines
    assert {one.verdict for one in headlines} <= {"beaten", "met", "missed", "not measured"}
    assert json.loads(json.dumps(made.as_dict()))["paper"] == name


@pytest.mark.usefixtures("tiny")
def test_a_command_writes_page_plots_and_figures_and_makes_no_run_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("matplotlib")
    line = "reproduce hst --quick --workers 1 --out new/folder"
    first = ran(line, tmp_path)
    assert "NOT private" in first.stdout
    assert "skipped s1: CLOISTER_DATA is" in first.stderr
    assert "cloister data get s1" in first.stderr
    folder = tmp_path / "new" / "folder"
    names = {path.name for path in folder.iterdir()}
    assert names == {"hst.md", "hst.csv", "hst-figure-3.svg", "hst-quick.jsonl"}
    page = (folder / "hst.md").read_text()
    assert "hst-figure-3.svg" in page
    assert "* s1: CLOISTER_DATA is" in page
    with (folder / "hst.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["series"] for row in rows} >= {"hst-median", "tree-alone-median"}
    figures, kept = (folder / "hst.csv").read_bytes(), folder / "hst-quick.jsonl"
    with kept.open("ab") as file:
        file.write(b'{"run": "half a li')  # what a killed run leaves
    monkeypatch.setattr(runs, "measured", None)  # so that a run would fail
    again = ran(line, tmp_path)
    assert again.stdout == first.stdout
    assert (folder / "hst.csv").read_bytes() == figures
    assert b"half a li" not in kept.read_bytes()
    whole = kept.read_bytes()
    kept.write_bytes(whole + b'{"run": 1}\n')
    assert "hst-quick.jsonl is not intact" in refused(line, tmp_path)
    kept.write_text("notes\n")
    assert "hst-quick.jsonl is not a file of a paper's runs" in refused(line, tmp_path)


@pytest.mark.usefixtures("tiny")
def test_json_holds_every_figure(tmp_path: Path) -> None:
    (made,) = json.loads(ran("reproduce hst --quick --workers 1 --json", tmp_path).stdout)
    assert (made["paper"], made["quick"]) == ("hst", True)
    assert made["skipped"]
    assert all(figure["ours"] > 0 for figure in made["figures"])


def test_a_folder_of_plots_needs_matplotlib_before_any_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert "matplotlib" in refused("reproduce hst --quick --out new", tmp_path)
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("name", NAMES)
def test_a_papers_cells_are_in_its_tables_and_places_are_those_of_published_figures(name: str) -> None:
    """A misspelt line would stand alone. The long form has all that the quick one has, with as many runs or more."""
    paper = paper_of(name)
    tables = {table.name for table in paper.tables}
    quick, long = (list(paper.cells(form)) for form in (True, False))
    assert {cell.table for cell in (*quick, *long)} == tables
    panels = {(cell.table, cell.panel) for cell in long}
    known = [place for place in published(name) if place[:2] in panels]
    assert known or not published(name)
    assert len({cell.place for cell in quick}) == len(quick)
    assert sum(cell.runs for cell in quick) < sum(cell.runs for cell in long)


def test_every_paper_has_a_module_and_every_published_file_a_paper() -> None:
    assert {path.stem for path in Path(papers.__file__).with_name("published").glob("*.csv")} <= set(NAMES)
    assert {paper_of(name).name for name in NAMES} == set(NAMES)
