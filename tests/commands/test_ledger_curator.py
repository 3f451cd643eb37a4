"""The curator's side of a ledger: owners and notes, tables for whoever audits it, and finished runs' results, which are
printed and saved again without the rows, for nothing."""

from __future__ import annotations

import csv
import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pytest

from cloister.accounting.ledger.database import RunStatus
from cloister.accounting.ledger.ledger import Ledger
from cloister.run.result import Result
from tests.in_process import ran, refused

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


def exported(folder: Path) -> list[dict[str, str]]:
    """The lines of the table of a ledger."""
    ran("ledger export budget.db --out runs.csv", folder)
    with (folder / "runs.csv").open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("note", ["=1+1", "+1", "-1", "@SUM(A1)"])
def test_no_text_of_a_table_is_worked_out_by_a_spreadsheet(folder: Path, note: str) -> None:
    ran(f"{FIT} --note '{note}'", folder)
    with closing(sqlite3.connect(folder / "budget.db")) as db, db:
        db.execute("update runs set method = ?", [f"\t{note}"])
    (line,) = exported(folder)
    assert (line["note"], line["method"]) == (f"'{note}", f"'\t{note}")
    assert not [cell for cell in line.values() if cell.startswith(("=", "+", "-", "@", "\t"))]


def the_run(folder: Path) -> Any:
    return Ledger.open(folder / "budget.db").runs()[-1]


def test_a_finished_run_is_printed_and_saved_again_without_rows_or_options(folder: Path) -> None:
    first = ran(FIT, folder)
    (folder / "rows.npy").unlink()
    before, run = (folder / "budget.db").read_bytes(), the_run(folder)
    again = ran(f"ledger result budget.db {run.id}", folder)
    assert (again.stdout, again.stderr) == (first.stdout, "")
    saved = ran(f"ledger result budget.db {run.id} --json --out again.npz", folder)
    assert json.loads(saved.stdout) == Result.load(folder / "again.npz").as_dict()
    assert (folder / "budget.db").read_bytes() == before


def test_details_that_are_no_plain_data_do_not_keep_a_paid_run_from_ending(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Result, "text", lambda result: json.dumps(object()))
    ran(FIT, folder)
    assert the_run(folder).state == "done"


def test_the_ledger_shows_what_each_run_was_and_its_note(folder: Path) -> None:
    """In words, as JSON, which it exports too, and as a table with a line per run."""
    ran(f"{FIT} --note 'a, \"b\"'", folder)
    ran(f"{FIT} -k 2..4 --method hst-means", folder)
    assert 'k = 3, columns 0, 1\n    note: a, "b"\n' in shown(folder)
    assert "hst-means, k = 2..4, columns 0, 1\n" in shown(folder)
    printed = ran("ledger show budget.db --json", folder).stdout
    first, second = json.loads(printed)[0]["runs"]
    assert (first["note"], first["k"], first["columns"]) == ('a, "b"', "3", ["0", "1"])
    assert (second["note"], second["method"], second["k"]) == ("", "hst-means", "2..4")
    ran("ledger export budget.db --out ledger.json", folder)
    assert (folder / "ledger.json").read_text() == printed
    one, other = exported(folder)
    assert tuple(one) == tuple(field.name for field in attrs.fields(RunStatus))
    assert (one["note"], other["k"], json.loads(one["columns"])) == ('a, "b"', "2..4", ["0", "1"])
    assert [float(line["epsilon"]) for line in (one, other)] == [first["epsilon"], second["epsilon"]]


@pytest.mark.parametrize("note", ["two\nlines", "x" * 201, "\x1b[2J"])
def test_a_note_is_one_short_line_of_plain_text(folder: Path, note: str) -> None:
    told = refused(f"{FIT} --note '{note}'", folder)
    assert "give one line of at most 200 printable characters" in told
    assert Ledger.open(folder / "budget.db").runs() == ()
    alone = FIT.removesuffix(" --ledger budget.db --dataset mine")
    assert "give --note with --ledger" in refused(f"{alone} --note '{note}'", folder)
