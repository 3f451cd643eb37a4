"""Runs in the ledger of ``conftest``."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing

import numpy as np

from cloister.accounting import Ledger, PrivacyTarget, Run
from cloister.core.budget import Measure
from cloister.core.fingerprints import Fingerprinter
from cloister.core.record import Lookup

PURE = PrivacyTarget(0.25)


def reserve(
    book: Ledger,
    total: PrivacyTarget = PURE,
    measures: Sequence[Measure] = (),
    marks: Fingerprinter | None = None,
    uses_delta: bool = False,
) -> Run:
    found: Sequence[Measure] = measures or ("gaussian" if total.delta else "pure",)
    return book.reserve("people", total, total.measured(found, uses_delta), "plan", b"public seed", marks)


def resumed(book: Ledger, run: Run) -> Run:
    """By whoever says that the rows are the same."""
    return book.resume(run.id, "people", "plan", same_rows=True)


def look(round: int = 0) -> Lookup:
    return Lookup(round, 0, 0, False, np.arange(2), np.ones(2))


def edit(book: Ledger, statement: str) -> None:
    with closing(sqlite3.connect(book.path)) as db, db:
        db.execute(statement)
