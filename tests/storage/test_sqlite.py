"""Files that processes share: what is not seen to by the tests of ledgers and of states."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path

import attrs
import pytest

from cloister.core.errors import Damaged
from cloister.storage.sqlite import Store

NOTES = Store("diary", b"test", ("create table notes (text text)",), (), 0.2, "its last page", personal=True)
LATER = attrs.evolve(
    NOTES,
    tables=("create table notes (text text, day integer)",),
    updates=(("alter table notes add column day integer",),),
)
WRITE = "import sqlite3, sys; sqlite3.connect(sys.argv[1], timeout=0).execute('begin immediate')"


def columns(path: Path) -> list[str]:
    with closing(sqlite3.connect(path)) as db:
        return [name for _, name, *_ in db.execute("pragma table_info(notes)")]


def test_a_thread_that_comes_later_does_not_drop_the_lock_of_another_one(tmp_path: Path) -> None:
    """On POSIX any closed descriptor of a file drops the process's locks on it: another one could write."""

    def late() -> None:
        with pytest.raises(Exception, match="other processes held it"), NOTES.transaction(path, "writing"):
            pass

    path = tmp_path / "diary"
    with NOTES.transaction(path, "writing"):
        thread = threading.Thread(target=late)
        thread.start()
        thread.join()
        done = subprocess.run([sys.executable, "-c", WRITE, str(path)], capture_output=True, text=True, check=False)
    assert "database is locked" in done.stderr


def test_an_older_file_is_updated_when_it_is_written_to_and_refused_by_those_who_cannot_read_it(tmp_path: Path) -> None:
    path = tmp_path / "diary"
    with NOTES.transaction(path, "writing") as db:
        db.execute("insert into notes values ('spring')")
    with LATER.transaction(path, "reading") as db:
        assert db.execute("select * from notes").fetchall() == [("spring",)]
    assert columns(path) == ["text"]
    with LATER.transaction(path, "writing"):
        pass
    assert columns(path) == ["text", "day"]
    with pytest.raises(Damaged, match=r"by a later cloister \(.* version 2, .* up to 1\): use that one, not a backup"):
        NOTES.transaction(path, "reading").__enter__()
    with pytest.raises(Damaged, match="is not a log file of cloister"):
        attrs.evolve(NOTES, name="log", application=b"logs").transaction(path, "reading").__enter__()
