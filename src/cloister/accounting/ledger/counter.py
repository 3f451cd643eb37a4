"""The counter beside a ledger, ``LEDGER.count``: numbers of rounds and answers that the ledger has held of each run.

A ledger alone cannot show that nothing is missing from it: an older copy is a sound ledger too, in which what was
released since was never paid for. The counter, a second file, tells them apart.

**The order.** Everything happens under the ledger's write lock, in one process at a time.

1. *Announce.* A transaction that reserves a run writes its id into the counter (with -1 rounds), before it commits.
2. *Commit* the transaction.
3. *Count.* Take the lock again, and copy the ledger's numbers of rounds and answers into the counter.
4. *Return.* Only now does anybody learn of the transaction: only now is a row read for a round, or a value released.
   (Whoever takes a run over writes, and so counts, before its record is in hand; a finished run was counted
   completely.)

**Killed in between.** Before 2, the counter knows of a run that may not exist: -1 rounds are fewer than none, and
nothing is missing. Between 2 and 3 the ledger holds more than was counted; whoever writes next counts it before
returning. So the counter is never ahead of its ledger, and at any time covers everything that anybody has learned; a
power cut changes nothing, since 1, 2 and 3 each end on the disk.

**What follows.** Rounds and answers are never deleted. So a ledger that holds less than was counted is an older copy,
or one from which entries were removed. A run that was announced is *complete*: everything that it learned was counted.
If a complete run has no round, in the ledger and in the counter, no call of ``open_round`` for it has ever returned,
and no question was answered (law 2); once it is done, under the same lock, none ever will be. So its reservation can be
given back.

**What does not follow.** The two files are equals: both restored together, or the counter removed and the ledger
restored, look as they did on that day. Hence backups hold the ledger and its key, and not the counter. Whoever may
write the files can write anything: the figures of a run, and a lifetime, are guarded by permissions alone.

A ledger without a counter (copied alone, or older than counters) works, and gets one when a run is reserved or resumed;
its earlier runs are not complete, since nobody can tell what they asked. A counter belongs to the one ledger whose name
it has; through a link, it is beside the file that the link leads to.
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
class RunCount:
    """Count of a run's rounds and answers.

    Attributes:
        rounds: rounds opened; -1: the run was announced, and perhaps never reserved.
        lookups: answers released.
        complete: whether the counter saw the run's reservation, and so everything since.
    """

    rounds: int
    lookups: int
    complete: bool


Counts = Mapping[str, RunCount]
"""Counts by the run's id."""


def counter_of(ledger: Path) -> Path:
    """Return the path of the counter: beside the ledger, after following links."""
    real = ledger.resolve()
    return real.with_name(f"{real.name}.count")


def read(path: Path) -> dict[str, RunCount]:
    """Return the counts in a counter's file; none if there is no such file.

    Raises:
        Damaged: it is no counter.
        CloisterError: it cannot be read.
    """
    try:
        document = parsed(path.read_bytes())
        if document["format"] != FORMAT:
            raise ValueError
        runs = dict(document["runs"])
        return {
            run: RunCount(int(rounds), int(lookups), complete is True)
            for run, (rounds, lookups, complete) in runs.items()
        }
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise CloisterError(f"cannot use {path}, the ledger's counter: {cause(error)}") from error
    except (ValueError, TypeError, KeyError, AttributeError):
        raise Damaged(
            f"{path} is not a ledger's counter, or it is damaged: make sure that the ledger is not older than its last "
            f"run, then remove the counter; nothing that was reserved before can be given back"
        ) from None


def counts_in(db: sqlite3.Connection, counted: Counts) -> dict[str, RunCount]:
    """Return the counts of the runs in the ledger, complete where that was known."""
    rows = db.execute(
        "select id, (select count(*) from rounds where run = id), (select count(*) from looks where run = id) from runs"
    )
    return {
        str(run): RunCount(rounds, lookups, run in counted and counted[run].complete) for run, rounds, lookups in rows
    }


def runs_lacking_entries(stored: Counts, counted: Counts) -> list[str]:
    """Return the ids of runs of which the ledger holds fewer rounds or answers than the counter."""
    none = RunCount(-1, 0, False)
    pairs = ((run, was, stored.get(run, none)) for run, was in counted.items())
    return [run for run, was, now in pairs if now.rounds < was.rounds or now.lookups < was.lookups]


def with_announced(earlier: Counts, stored: Counts) -> dict[str, RunCount]:
    """Return the counts when a transaction began, with the runs that it reserved."""
    return {**{run: RunCount(-1, 0, True) for run in stored if run not in earlier}, **earlier}


def write(path: Path, counts: Counts, ledger: Path) -> None:
    """Replace the counter's file; whoever may read the ledger may read it.

    Raises:
        CloisterError: it cannot be written.
    """
    runs = {run: attrs.astuple(count) for run, count in counts.items()}
    try:
        replace(path, json.dumps({"format": FORMAT, "runs": runs}).encode(), ledger.stat().st_mode & 0o666)
    except OSError as error:
        raise CloisterError(f"cannot use {path}, the ledger's counter: {cause(error)}") from error


def replace(path: Path, content: bytes, mode: int) -> None:
    """Replace a file durably: a crash leaves the old one or the new one.

    The caller holds the ledger's lock, so that nobody else writes the temporary file.

    Raises:
        OSError: it cannot be written.
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


def never_asked(path: Path, run: str) -> bool:
    """Return True if the count of a run is complete and it opened no round."""
    count = read(path).get(run)
    return count is not None and count.complete and count.rounds <= 0
