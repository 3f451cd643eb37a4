"""A finished run's result is in the ledger: it is printed and saved again without the rows, for nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cloister.accounting.ledger.ledger import Ledger
from cloister.run.result import Result
from tests.in_process import cloister

FIT = ("fit", "rows.npy", "-k", "3", "--epsilon", "1", "--delta", "1e-6", "--bounds=-1:1", "--rows", "1000")
PAID = ("--ledger", "budget.db", "--dataset", "mine")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    np.save(tmp_path / "rows.npy", np.random.default_rng(0).normal(0, 0.3, (1000, 2)))
    Ledger.open(tmp_path / "budget.db", create=True).declare("mine", 3.0, 1e-4)
    return tmp_path


def the_run(folder: Path) -> Any:
    return Ledger.open(folder / "budget.db").runs()[-1]


def test_a_finished_run_is_printed_and_saved_again_without_rows_or_options(folder: Path) -> None:
    first = cloister(*FIT, *PAID, folder=folder)
    (folder / "rows.npy").unlink()
    before, run = (folder / "budget.db").read_bytes(), the_run(folder)
    again = cloister("ledger", "result", "budget.db", run.id, folder=folder)
    assert (again.returncode, again.stdout, again.stderr) == (0, first.stdout, "")
    saved = cloister("ledger", "result", "budget.db", run.id, "--json", "--out", "again.npz", folder=folder)
    assert json.loads(saved.stdout) == Result.load(folder / "again.npz").as_dict()
    assert (folder / "budget.db").read_bytes() == before


def test_a_counted_run_and_one_without_weights_are_kept_too(folder: Path) -> None:
    first = cloister(*FIT[:-2], *PAID, "--method", "hst-means", "--json", folder=folder)
    assert first.returncode == 0, first.stderr
    again = cloister("ledger", "result", "budget.db", the_run(folder).id, "--json", folder=folder)
    assert json.loads(again.stdout) == json.loads(first.stdout)


def test_details_that_are_no_plain_data_do_not_keep_a_paid_run_from_ending(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Result, "text", lambda result: json.dumps(object()))
    assert cloister(*FIT, *PAID, folder=folder).returncode == 0
    assert the_run(folder).state == "done"


def test_the_ledger_shows_what_each_run_was_and_its_note(tmp_path: Path) -> None:
    np.save(tmp_path / "rows.npy", np.random.default_rng(0).uniform(-1, 1, (3000, 2)))
    assert cloister("ledger", "declare", "l", "a", "--epsilon", "9", "--delta", "1e-5", folder=tmp_path).returncode == 0
    fit = "fit", "rows.npy", "--epsilon", "1", "--delta", "1e-6", "--bounds", "-1:1", "--rows", "3000"
    account = "--ledger", "l", "--dataset", "a"
    assert cloister(*fit, "-k", "3", *account, "--note", "for the board", folder=tmp_path).returncode == 0
    assert cloister(*fit, "-k", "2..4", *account, "--method", "hst-means", folder=tmp_path).returncode == 0
    shown = cloister("ledger", "show", "l", folder=tmp_path).stdout
    assert "k = 3, columns 0, 1\n    note: for the board\n" in shown
    assert "hst-means, k = 2..4, columns 0, 1\n" in shown
    first, second = json.loads(cloister("ledger", "show", "l", "--json", folder=tmp_path).stdout)[0]["runs"]
    assert (first["note"], first["k"], first["columns"]) == ("for the board", "3", ["0", "1"])
    assert (second["note"], second["method"], second["k"]) == ("", "hst-means", "2..4")


@pytest.mark.parametrize("note", ["two\nlines", "x" * 201, "\x1b[2J"])
def test_a_note_is_one_short_line_of_plain_text(tmp_path: Path, note: str) -> None:
    np.save(tmp_path / "rows.npy", np.zeros((9, 2)))
    cloister("ledger", "declare", "l", "a", "--epsilon", "9", folder=tmp_path)
    fit = "fit", "rows.npy", "-k", "2", "--epsilon", "1", "--bounds", "-1:1", "--rows", "9", "--note", note
    refused = cloister(*fit, "--ledger", "l", "--dataset", "a", folder=tmp_path)
    assert refused.returncode == 2
    assert "give one line of at most 200 printable characters" in refused.stderr
    assert json.loads(cloister("ledger", "show", "l", "--json", folder=tmp_path).stdout)[0]["runs"] == []
    assert "give --note with --ledger" in cloister(*fit, folder=tmp_path).stderr
