"""A curator, and whoever has her files or writes her plugins, can do what no promise covers: ``threat_model.md`` says
so."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import attrs
import numpy as np
import pytest

from cloister.accounting.ledger.ledger import Ledger
from cloister.core.errors import BudgetExceeded
from cloister.run.account import Account
from cloister.run.fit import fit, source
from cloister.run.result import Result
from tests.asking import asking
from tests.testing.honest import HonestSums, Plain
from tests.testing.zoo_noise import ExactUnderAPrivateName

ROWS = np.random.default_rng(0).normal(0, 0.3, (2000, 2))
REQUEST = asking(k=3, method="su-lloyd", epsilon=1.0, bounds=(-1, 1), rows=2000, options={"rounds": 2})


def run(path: Path, dataset: str = "mine") -> Result:
    return fit(REQUEST, source(ROWS), account=Account(ledger=path, dataset=dataset))


@pytest.fixture
def spent(tmp_path: Path) -> Path:
    """A ledger whose lifetime a run has used up; what its folder held before lies beside it."""
    path = tmp_path / "now" / "ledger"
    path.parent.mkdir()
    Ledger.open(path, create=True).declare("mine", 1.0, 1e-6)
    shutil.copytree(path.parent, tmp_path / "before")
    run(path)
    with pytest.raises(BudgetExceeded):
        run(path)
    return path


def test_runs_without_a_ledger_are_answered_however_many_there_are_and_no_statement_knows_of_the_others() -> None:
    results = [fit(REQUEST, source(ROWS)) for _ in range(3)]
    assert len({result.centers.tobytes() for result in results}) == 3
    assert len({result.privacy.text() for result in results}) == 1
    assert results[-1].privacy.epsilon == 1.0


def test_the_same_rows_under_another_name_have_another_lifetime(spent: Path) -> None:
    Ledger.open(spent).declare("theirs", 1.0, 1e-6)
    assert run(spent, "theirs").privacy.epsilon == 1.0


def test_a_backup_of_all_that_a_ledger_is_forgets_what_was_spent_since(spent: Path) -> None:
    shutil.rmtree(spent.parent)
    shutil.copytree(spent.parent.with_name("before"), spent.parent)
    assert run(spent).privacy.epsilon == 1.0


def test_whoever_may_write_a_ledger_and_what_lies_beside_it_takes_a_run_out_of_it(spent: Path) -> None:
    with closing(sqlite3.connect(spent)) as db, db:
        db.execute("pragma foreign_keys = off")
        db.execute("delete from runs")
    for beside in set(spent.parent.iterdir()) - {spent}:
        beside.unlink()
    assert run(spent).privacy.epsilon == 1.0


def test_a_run_believes_what_an_oracle_says_of_itself() -> None:
    """An oracle without any noise that declares some: the accountant adds up what is declared (law 3), and the kit
    alone catches it."""
    exact = Plain(counts=ExactUnderAPrivateName(), sums=HonestSums())
    result = fit(attrs.evolve(REQUEST, method=exact), source(ROWS))
    assert result.privacy.private
    assert result.privacy.epsilon == 1.0
