"""Whether a resumed run has the rows that it began with: marks of the rows in its ledger, under a secret in a file
beside it.

The ledger alone tells nothing about the rows: a run's marks are keyed by its id and ``LEDGER.key``, which its owner
alone can read and nobody needs elsewhere. A ledger that was moved without the key still counts what was spent; it can
no longer compare rows, and asks.
"""

from __future__ import annotations

import os
import secrets
import sqlite3
from collections.abc import Mapping
from pathlib import Path

from cloister.accounting.ledger.database import transaction
from cloister.core.errors import CloisterError, Refused
from cloister.core.record import OPTION, SIZE, Marking, inside

ANYWAY = "if they are the same rows, go on with --same-rows (same_rows=True); with other rows start a new run"


def marked(ledger: Path, run: str, rows: Marking | None) -> Mapping[str, bytes] | None:
    """The marks of a run's rows. May read the rows once, so call it before any transaction begins: nobody waits."""
    return None if rows is None else rows(inside(_secret(ledger), run))


def keep(db: sqlite3.Connection, run: str, marks: Mapping[str, bytes] | None) -> None:
    """Store these marks, if there are any, in place of earlier ones."""
    if marks is None:
        return
    db.execute("delete from marks where run = ?", [run])
    db.executemany("insert into marks values (?, ?, ?)", [(run, what, mark) for what, mark in marks.items()])


def compare_reading(db: sqlite3.Connection, run: str, marks: Mapping[str, bytes] | None) -> None:
    """Compare how rows are read with how they were when the run was reserved, as far as both say. Nobody can vouch for
    what is read otherwise: a file that was copied is still of one encoding.

    Raises: Refused: some option differs.
    """
    known, now = _known(db, run), marks or {}
    differ = [what for what in now if what.startswith(OPTION) and known.get(what, now[what]) != now[what]]
    if differ:
        raise Refused(
            f"run {run} read its rows otherwise: {', '.join(differ)} differ. Rows that are read otherwise would be "
            f"counted twice: repeat its options, or start a new run"
        )


def compare(db: sqlite3.Connection, run: str, marks: Mapping[str, bytes] | None) -> None:
    """Compare marks with those that the run was reserved with.

    Raises: Refused: they differ, or there is nothing to compare.
    """
    known = _known(db, run)
    if not known or not marks:
        raise Refused(f"nobody can tell whether run {run} began with these rows: {ANYWAY}")
    differ = [what for what in {**marks, **known} if known.get(what) != marks.get(what)]
    if differ:
        raise Refused(
            f"run {run} began with other rows, or they have moved: {', '.join(differ)} differ. Rows that changed "
            f"would be counted twice: {ANYWAY}"
        )


def _known(db: sqlite3.Connection, run: str) -> dict[str, bytes]:
    """The marks that the run was reserved with."""
    return {str(what): bytes(mark) for what, mark in db.execute("select what, digest from marks where run = ?", [run])}


def _secret(ledger: Path) -> bytes:
    """The ledger's secret, made when first needed. The ledger's write lock lets one process at a time make it."""
    path = ledger.with_name(f"{ledger.name}.key")
    with transaction(ledger, "writing"):
        try:
            known = path.read_bytes() if path.exists() else b""
            return known if len(known) == SIZE else _made(path)
        except OSError as error:
            raise CloisterError(f"cannot use {path}, the ledger's key: {error.strerror or error}") from error


def _made(path: Path) -> bytes:
    key = secrets.token_bytes(SIZE)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")
    with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(key)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
    return key
