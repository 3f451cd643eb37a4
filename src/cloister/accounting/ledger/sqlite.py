"""SQLite files: opening, creating and refusing a kind of file, and translating SQLite's errors.

One connection per transaction, so that threads and forks share nothing. The rollback journal, not WAL: a file at rest
is one file that can be copied and backed up, and it works where WAL's shared memory does not (network mounts).

An existing file is opened by SQLite alone: closing any other descriptor of it would drop this process's locks.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Literal, final

import attrs

from cloister.core.errors import CloisterError, Damaged

VERSION = 1
"""Version of the tables of every kind of file; none has had another."""

OWNER = 0o600
"""Permissions of a personal file: only its owner can read it."""


@final
@attrs.frozen
class Store:
    """Kind of file.

    Args:
        name: the kind, for error texts.
        application: four letters that identify its files (SQLite's ``application_id``).
        tables: statements that make the tables of an empty file.
        patience: seconds to wait for other processes.
        backup: the event that a backup must not be older than, for error texts.
        pragmas: settings of every connection.
        personal: make the file on first use, and keep it readable by its owner alone. Others are made so, and stay as
            they are: people who share a ledger may open it to their group.
        undone: suffix of error texts, naming the step that has not happened (". No report was written").
    """

    name: str
    application: bytes
    tables: tuple[str, ...]
    patience: float
    backup: str
    pragmas: tuple[str, ...] = ()
    personal: bool = False
    undone: str = ""

    @contextmanager
    def transaction(
        self, path: Path, kind: Literal["reading", "writing", "making"], durable: bool = True
    ) -> Iterator[sqlite3.Connection]:
        """Open a transaction: committed and durable when the block ends, undone when it raises.

        "writing" takes the write lock at once (begin immediate), so that what it reads cannot change before it writes.
        "making" creates a file without entries if there is none; concurrent processes agree.

        Args:
            path: the file.
            kind: as above.
            durable: False for a scratch file that nothing depends on.

        Raises:
            Damaged: it is not a file of this kind and version.
            CloisterError: it cannot be used now, with the reason.
        """
        make = self.personal or kind == "making"
        if make:
            _create_private(path)
        self._check_names(path)
        name = f"{path.absolute().as_uri()}?mode={'rwc' if make else 'rw'}"
        try:
            with closing(sqlite3.connect(name, uri=True, timeout=self.patience, isolation_level=None)) as db:
                # extra: full, and a sync of the folder after the journal is removed. Without it, in this journal mode,
                # a power cut right after a commit could undo the commit.
                _execute(db, f"pragma synchronous = {'extra' if durable else 'off'}", *self.pragmas)
                db.execute("begin" if kind == "reading" else "begin immediate")
                self._ready(db, path, make)
                if self.personal:
                    _restrict(path)
                yield db
                db.execute("commit")
        except sqlite3.Error as error:
            raise self._translated(error, path) from error

    def _check_names(self, path: Path) -> None:
        """Check that a file has one name (symbolic links are followed).

        SQLite finds the journal that undoes a transaction by the name, and cloister the counter that detects an older
        copy.

        Raises:
            CloisterError: it has hard links.
        """
        with suppress(OSError):  # which SQLite reports
            if (names := path.stat().st_nlink) > 1:
                raise CloisterError(
                    f"the {self.name} {path} has {names} names (hard links), and what guards it goes by its name: copy "
                    f"it where a copy is meant, and remove the links{self.undone}"
                )

    def _ready(self, db: sqlite3.Connection, path: Path, make: bool) -> None:
        """Make the tables of an empty file; refuse one of another kind or of a later version."""
        kind = int.from_bytes(self.application, "big")
        if make and db.execute("select count(*) from sqlite_schema").fetchone() == (0,):
            _execute(db, *self.tables, f"pragma application_id = {kind}", f"pragma user_version = {VERSION}")
        if db.execute("pragma application_id").fetchone() != (kind,):
            raise self.damaged(path, f"it is not a {self.name} file of cloister")
        (version,) = db.execute("pragma user_version").fetchone()
        if version > VERSION:
            raise Damaged(
                f"the {self.name} {path} was written by a later cloister (its format is version {version}, this one "
                f"reads versions up to {VERSION}): use that one, not a backup, which lacks what was done since"
            )
        if version < VERSION:
            raise self.damaged(path, f"its format is version {version}, this cloister reads versions up to {VERSION}")

    def damaged(self, path: Path, reason: str) -> Damaged:
        """Return the error for a file that cannot be trusted."""
        advice = f"restore a backup that is not older than {self.backup}"
        return Damaged(f"the {self.name} {path} cannot be trusted ({reason}): {advice}")

    def _translated(self, error: sqlite3.Error, path: Path) -> CloisterError:
        name = getattr(error, "sqlite_errorname", "") or ""
        if name.startswith(("SQLITE_NOTADB", "SQLITE_CORRUPT")):
            return self.damaged(path, str(error))
        reasons = {
            ("BUSY", "LOCKED"): f"other processes held it for more than {self.patience:g} s: try again",
            ("FULL",): "the disk is full: make room, then go on",
            ("READONLY",): "it is read-only: make the file and its folder writable",
            ("PERM",): "access was denied: make the file and its folder writable",
            ("CANTOPEN",): "it or its folder cannot be opened: check that the folder exists and both are writable",
        }
        matches = [text for codes, text in reasons.items() if name.removeprefix("SQLITE_").startswith(codes)]
        reason = matches[0] if matches else f"{error} ({name or 'SQLite'})"
        return CloisterError(f"the {self.name} {path} cannot be used: {reason}{self.undone}")


def _create_private(path: Path) -> None:
    """Create the file private and empty, before SQLite makes it readable by all; its journals inherit the permissions.

    Errors are ignored: SQLite reports what it cannot open.
    """
    with suppress(OSError):
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, OWNER))


def _restrict(path: Path) -> None:
    """Restrict the file to its owner, even if it was made or copied with other permissions."""
    with suppress(OSError):  # another owner's file that this process may write
        if os.stat(path).st_mode & 0o077:
            os.chmod(path, OWNER)


def _execute(db: sqlite3.Connection, *statements: str) -> None:
    for statement in statements:
        db.execute(statement)
