"""The curator's side of a ledger: owners and notes, tables for whoever audits it, reservations that are given back."""

from __future__ import annotations

import csv
import json
import shlex
import sqlite3
from contextlib import closing
from pathlib import Path

import attrs
import numpy as np
import pytest

from cloister.accounting.ledger.database import RunStatus
from cloister.accounting.ledger.ledger import Ledger
from tests.in_process import cloister, ran, refused
from tests.killed import killed_after

DECLARE = "ledger declare budget.db mine --epsilon 3 --delta 1e-4"
FIT = "fit rows.npy -k 3 --rows 1000 --epsilon 1 --delta 1e-6 --bounds=-1:1 --ledger budget.db --dataset mine"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    np.save(tmp_path / "rows.npy", np.random.default_rng(0).normal(0, 0.3, (1000, 2)))
    ran(f"{DECLARE} --owner 'A. Meyer, ward 3' --note 'approved in May'", tmp_path)
    return tmp_path


def shown(folder: Path) -> str:
    return str(ran("ledger show budget.db", folder).stdout)


def test_a_data_set_has_an_owner_and_a_note_that_are_declared_again_to_change_them(folder: Path) -> None:
    assert "\n  owner: A. Meyer, ward 3\n  note: approved in May\n" in shown(folder)
    ran(DECLARE, folder)
    ran(f"{DECLARE} --owner 'B. Ito'", folder)
    assert "\n  owner: B. Ito\n  note: approved in May\n" in shown(folder)
    ran(f"{DECLARE} --note ''", folder)
    (data,) = json.loads(ran("ledger show budget.db --json", folder).stdout)
    assert (data["owner"], data["note"], data["lifetime"]["epsilon"]) == ("B. Ito", "", 3)
    assert "cannot be changed" in refused(f"{DECLARE} --epsilon 4 --owner 'C. Thief'", folder)
    assert "B. Ito" in shown(folder)


def test_a_ledger_of_before_there_were_owners_is_read_and_has_one_once_it_is_said(folder: Path) -> None:
    with closing(sqlite3.connect(folder / "budget.db")) as db, db:
        db.execute("drop table owners")
    before = (folder / "budget.db").read_bytes()
    ran("ledger export budget.db --out runs.json", folder)
    assert "owner" not in shown(folder)
    assert (folder / "budget.db").read_bytes() == before
    ran(f"{DECLARE} --owner 'B. Ito'", folder)
    assert "\n  owner: B. Ito\n" in shown(folder)


def test_a_ledger_is_exported_as_json_that_show_prints_and_as_a_line_per_run(folder: Path) -> None:
    ran("ledger declare budget.db others --epsilon 1", folder)
    ran(f"{FIT} --note 'a, \"b\"'", folder)
    ran(f"{FIT} -k 2..3 --method hst-means", folder)
    ran("ledger export budget.db --out ledger.json", folder)
    assert (folder / "ledger.json").read_text() == ran("ledger show budget.db --json", folder).stdout
    ran("ledger export budget.db --out runs.csv", folder)
    with (folder / "runs.csv").open(newline="") as file:
        first, second = csv.DictReader(file)
    assert tuple(first) == tuple(field.name for field in attrs.fields(RunStatus))
    assert (first["note"], second["k"], json.loads(first["columns"])) == ('a, "b"', "2..3", ["0", "1"])
    runs = Ledger.open(folder / "budget.db").runs()
    assert [float(line["epsilon"]) for line in (first, second)] == [run.epsilon for run in runs]


@pytest.mark.parametrize("note", ["=1+1", "+1", "-1", "@SUM(A1)"])
def test_no_text_of_a_table_is_worked_out_by_a_spreadsheet(folder: Path, note: str) -> None:
    ran(f"{FIT} --note '{note}'", folder)
    with closing(sqlite3.connect(folder / "budget.db")) as db, db:
        db.execute("update runs set method = ?", [f"\t{note}"])
    ran("ledger export budget.db --out runs.csv", folder)
    with (folder / "runs.csv").open(newline="") as file:
        (line,) = csv.DictReader(file)
    assert (line["note"], line["method"]) == (f"'{note}", f"'\t{note}")
    assert not [cell for cell in line.values() if cell.startswith(("=", "+", "-", "@", "\t"))]


def test_a_run_that_was_cut_off_before_it_asked_is_given_back_and_one_that_asked_is_not(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def dies(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("cloister.accounting.ledger.run.Run.open_round", dies)
        assert cloister(*shlex.split(FIT), folder=folder).returncode == 130
    (cut,) = Ledger.open(folder / "budget.db").runs()
    assert f"resume with --resume {cut.id}, or give it back ('cloister ledger give-back')" in shown(folder)
    told = ran(f"ledger give-back budget.db {cut.id}", folder).stdout
    assert told == f"run {cut.id} asked nothing: epsilon 1, delta 1e-06 are back in 'mine'\n"
    assert "left: epsilon 3, delta 0.0001\n" in shown(folder)
    assert "is finished" in refused(f"{FIT} --resume {cut.id}", folder)
    with killed_after(1, "open_round"):
        ran(FIT, folder)
    _, asked = Ledger.open(folder / "budget.db").runs()
    assert "opened 1 rounds" in refused(f"ledger give-back budget.db {asked.id}", folder)
    assert "or give it back" not in shown(folder)
    ran(f"{FIT} --resume {asked.id}", folder)
