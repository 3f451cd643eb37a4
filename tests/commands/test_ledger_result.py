"""A finished run's result is in the ledger: it is printed and saved again without the rows, for nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cloister.accounting.ledger.ledger import Ledger
from cloister.run.result import Result
from tests.in_process import ran, refused

FIT = "fit rows.npy -k 3 --epsilon 1 --delta 1e-6 --bounds=-1:1 --ledger budget.db --dataset mine"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    np.save(tmp_path / "rows.npy", np.random.default_rng(0).normal(0, 0.3, (1000, 2)))
    Ledger.open(tmp_path / "budget.db", create=True).declare("mine", 3.0, 1e-4)
    return tmp_path


def the_run(folder: Path) -> Any:
    return Ledger.open(folder / "budget.db").runs()[-1]


def test_a_finished_run_is_printed_and_saved_again_without_rows_or_options(folder: Path) -> None:
    first = ran(f"{FIT} --rows 1000", folder)
    (folder / "rows.npy").unlink()
    before, run = (folder / "budget.db").read_bytes(), the_run(folder)
    again = ran(f"ledger result budget.db {run.id}", folder)
    assert (again.stdout, again.stderr) == (first.stdout, "")
    saved = ran(f"ledger result budget.db {run.id} --json --out again.npz", folder)
    assert json.loads(saved.stdout) == Result.load(folder / "again.npz").as_dict()
    assert (folder / "budget.db").read_bytes() == before


def test_a_counted_run_and_one_without_weights_are_kept_too(folder: Path) -> None:
    first = ran(f"{FIT} --method hst-means --json", folder)
    again = ran(f"ledger result budget.db {the_run(folder).id} --json", folder)
    assert json.loads(again.stdout) == json.loads(first.stdout)


def test_details_that_are_no_plain_data_do_not_keep_a_paid_run_from_ending(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Result, "text", lambda result: json.dumps(object()))
    ran(f"{FIT} --rows 1000", folder)
    assert the_run(folder).state == "done"


def test_the_ledger_shows_what_each_run_was_and_its_note(folder: Path) -> None:
    ran(f"{FIT} --rows 1000 --note 'for the board'", folder)
    ran(f"{FIT} --rows 1000 -k 2..4 --method hst-means", folder)
    shown = ran("ledger show budget.db", folder).stdout
    assert "k = 3, columns 0, 1\n    note: for the board\n" in shown
    assert "hst-means, k = 2..4, columns 0, 1\n" in shown
    first, second = json.loads(ran("ledger show budget.db --json", folder).stdout)[0]["runs"]
    assert (first["note"], first["k"], first["columns"]) == ("for the board", "3", ["0", "1"])
    assert (second["note"], second["method"], second["k"]) == ("", "hst-means", "2..4")


@pytest.mark.parametrize("note", ["two\nlines", "x" * 201, "\x1b[2J"])
def test_a_note_is_one_short_line_of_plain_text(folder: Path, note: str) -> None:
    told = refused(f"{FIT} --rows 1000 --note '{note}'", folder)
    assert "give one line of at most 200 printable characters" in told
    assert Ledger.open(folder / "budget.db").runs() == ()
    alone = FIT.removesuffix(" --ledger budget.db --dataset mine")
    assert "give --note with --ledger" in refused(f"{alone} --note '{note}'", folder)
