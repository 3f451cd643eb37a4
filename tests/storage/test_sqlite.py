"""Files that processes share: what is not seen to by the tests of ledgers and of states."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import attrs
import pytest

from cloister.accounting.ledger.sqlite import Store
from cloister.core.errors import Damaged

NOTES = Store("diary", b"test", ("create table notes (text text)",), 0.2, "its last page", personal=True)
WRITE = "import sqlite3, sys; sqlite3.connect(sys.argv[1], timeout=0).execute('begin immediate')"


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


@pytest.mark.parametrize("kind", ["reading", "writing", "making"])
def test_a_file_of_a_later_version_or_of_another_kind_is_refused_and_left_alone(tmp_path: Path, kind: Any) -> None:
    path = tmp_path / "diary"
    with NOTES.transaction(path, "writing"):
        pass
    with pytest.raises(Damaged, match="is not a log file of cloister"):
        attrs.evolve(NOTES, name="log", application=b"logs").transaction(path, kind).__enter__()
    with closing(sqlite3.connect(path)) as db:
        db.execute("pragma user_version = 2")
    before = path.read_bytes()
    with pytest.raises(Damaged, match=r"by a later cloister \(.* version 2, .* up to 1\): use that one, not a backup"):
        NOTES.transaction(path, kind).__enter__()
    assert path.read_bytes() == before
