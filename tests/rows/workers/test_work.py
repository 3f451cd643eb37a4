"""What is sent to workers, and what they answer if they cannot take it."""

from __future__ import annotations

import pickle

from cloister.rows.workers import work
from cloister.rows.workers.work import Failure, attempt, packed


def test_a_worker_of_another_version_refuses() -> None:
    for other in ("0.0.1", "999.0.0"):
        assert attempt(pickle.dumps((other, len)), []) == Failure(
            f"a worker runs cloister {work.own_version()}, this process {other}: install the same version there"
        )
    assert attempt(packed(len), [1, 2]) == 2
    lacking = packed(len).replace(b"builtins", b"nowhere_")
    assert attempt(lacking, []).text.startswith("a worker lacks what this run needs (No module named 'nowhere_')")
