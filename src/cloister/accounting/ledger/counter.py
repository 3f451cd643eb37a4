"""The counter beside a ledger, ``LEDGER.count``: how many rounds and answers of each run the ledger has held.

A ledger alone cannot show that nothing is missing from it: an older copy is a sound ledger too, in which what was
released since was never paid for. The counter, a second file, tells them apart.

**The order.** All is done under the ledger's write lock, by one process at a time.

1. *Announce.* A transaction that reserves a run writes its id into the counter (with -1 rounds), before it commits.
2. *Commit* the transaction.
3. *Count.* Take the lock again, and copy the ledger's numbers of rounds and answers into the counter.
4. *Return.* Only now does anybody learn of the transaction: only now is a row read for a round, or a value released.
   (Whoever takes a run over writes, and so counts, before its record is in hand; a finished run was counted whole.)

**Killed in between.** Before 2, the counter knows of a run that may not exist: -1 rounds are fewer than none, and
nothing is missing. Between 2 and 3 the ledger holds more than was counted; whoever writes next counts it before
returning. So the counter is never ahead of its ledger, and is at least whatever anybody was told, at any time; a power
cut changes nothing, since 1, 2 and 3 each end on the disk.

**What follows.** Rounds and answers are never deleted. So a ledger that holds less than was counted is an older copy,
or one from which entries were removed. A run that was announced is *whole*: all that it was told was counted. If a
whole run has no round, in the ledger and in the counter, no call of ``open_round`` for it has ever returned, and no
question was answered (law 2); once it is done, under the same lock, none ever will be. That proves what is given back.

**What does not follow.** The two files are equals: both restored together, or the counter removed and the ledger
restored, look as they did on that day. Hence backups hold the ledger and its key, and not the counter. Whoever may
write the files can write anything: the figures of a run, and a lifetime, are guarded by permissions alone.

A ledger without a counter (moved alone, or of before there were any) works as it did, and gets one when a run is
reserved or goes on; its earlier runs are not whole, since nobody can tell what they asked. A counter is of the one
ledger whose name it has; through a link, beside the file that the link leads to.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Mapping
from pathlib import Path
from typing import final

import attrs

from cloister.core.errors import CloisterError, Damaged, cause
from cloister.core.plain_data import parsed

FORMAT = "cloister-counter-1"


@final
@attrs.frozen
class Counted:
    """What was counted of a run. Args: rounds (-1: it was announced, and perhaps never reserved), looks, whole."""

    rounds: int
    looks: int
    whole: bool


Counts = Mapping[str, Counted]
"""By the run's id."""


def counter_of(ledger: Path) -> Path:
    """The counter's file: beside the ledger, whatever links lead there."""
    real = ledger.resolve()
    return real.with_name(f"{real.name}.count")


def read(path: Path) -> dict[str, Counted]:
    """What was counted; nothing if there is no such file.

    Raises: Damaged: it is no counter. CloisterError: it cannot be read.
    """
    try:
        kept = parsed(path.read_bytes())
        if kept["format"] != FORMAT:
            raise ValueError
        runs = dict(kept["runs"])
        return {run: Counted(int(rounds), int(looks), whole is True) for run, (rounds, looks, whole) in runs.items()}
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise CloisterError(f"cannot use {path}, the ledger's counter: {cause(error)}") from error
    except (ValueError, TypeError, KeyError, AttributeError):
        raise Damaged(
            f"{path} is not a ledger's counter, or it is damaged: make sure that the ledger is not older than its last "
            f"run, then remove the counter; nothing that was reserved before can be given back"
        ) from None


def held(db: sqlite3.Connection, known: Counts) -> dict[str, Counted]:
    """What the ledger holds of each run, whole where that was known."""
    rows = db.execute(
        "select id, (select count(*) from rounds where run = id), (select count(*) from looks where run = id) from runs"
    )
    return {str(run): Counted(rounds, looks, run in known and known[run].whole) for run, rounds, looks in rows}


def lacking(holds: Counts, known: Counts) -> list[str]:
    """Ids of runs of which a ledger holds fewer rounds or answers than were counted."""
    none = Counted(-1, 0, False)
    found = ((run, was, holds.get(run, none)) for run, was in known.items())
    return [run for run, was, now in found if now.rounds < was.rounds or now.looks < was.looks]


def announced(before: Counts, holds: Counts) -> dict[str, Counted]:
    """What a ledger held when a transaction began, and the runs that it reserved."""
    return {**{run: Counted(-1, 0, True) for run in holds if run not in before}, **before}


def write(path: Path, counts: Counts, ledger: Path) -> None:
    """Replace the counter's file, for whoever may read the ledger. Raises: CloisterError: it cannot be written."""
    runs = {run: attrs.astuple(found) for run, found in counts.items()}
    try:
        replace(path, json.dumps({"format": FORMAT, "runs": runs}).encode(), ledger.stat().st_mode & 0o666)
    except OSError as error:
        raise CloisterError(f"cannot use {path}, the ledger's counter: {cause(error)}") from error


def replace(path: Path, content: bytes, mode: int) -> None:
    """Write a file in place of another one, durably: a crash leaves the old one or the new one. The caller holds the
    ledger's lock, so that nobody else writes the temporary file.

    Raises: OSError.
    """
    temporary = path.with_name(f".{path.name}.tmp")
    temporary.unlink(missing_ok=True)  # of a process that was killed
    try:
        with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            os.chmod(temporary, mode)
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    if os.name == "posix":
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def unused(path: Path, run: str) -> bool:
    """Whether all that a run was told was counted, and no round of it."""
    found = read(path).get(run)
    return found is not None and found.whole and found.rounds <= 0
