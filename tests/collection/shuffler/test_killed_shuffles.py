"""Shuffles that are killed, by processes that kill themselves at a point, and are run again; and their workers."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from cloister.collection.client.encoder import Encoded
from cloister.collection.intake import parts
from cloister.collection.plan.plan import CollectionPlan
from cloister.collection.shuffler.shuffler import _work_folder, shuffle
from cloister.core.errors import InvalidInput
from cloister.rows.workers.engine import Processes
from tests.collection.server.collected import written
from tests.collection.shuffled_plans import FEW, multiset, released, sent

POINTS = {
    "while messages are scattered": ("Scattered.add", 3),
    "before messages are put in order": ("Scattered.shuffled", 1),
    "while files are written": ("release.flush", 1),
    "between two files": ("release.flush", 2),
    "before scattered messages are removed": ("shutil.rmtree", 1),
    "before the folder appears": ("_publish", 1),
    "after the folder has appeared": ("sync", 2),
}
"""Before which call of what a run is killed."""

SCRIPT = """
import os, signal, sys
import cloister.collection.shuffler.shuffler as module
from cloister.collection.shuffler import release
module.release = release
name, left = sys.argv[4], int(sys.argv[5])
*path, last = name.split(".")
at = module
for step in path:
    at = getattr(at, step)
real = getattr(at, last)
def killing(*given, **more):
    global left
    left -= 1
    if not left:
        os.kill(os.getpid(), signal.SIGKILL)
    return real(*given, **more)
setattr(at, last, killing)
release.FILE, release.GROUP = 64, 32
module.shuffle(*sys.argv[1:4])
"""


@pytest.mark.thorough
@pytest.mark.parametrize("point", POINTS)
def test_killed_and_run_again_nothing_is_lost_or_doubled(
    plan: CollectionPlan, theirs: Encoded, reports: Path, tmp_path: Path, point: str
) -> None:
    plan.write(tmp_path / "plan", "")
    out = tmp_path / "shuffled"
    name, call = POINTS[point]
    command = [sys.executable, "-c", SCRIPT, str(tmp_path / "plan"), str(reports), str(out), name, str(call)]
    done = subprocess.run(command, capture_output=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr.decode()
    if point == "after the folder has appeared":
        with pytest.raises(InvalidInput, match="the release is complete"):
            shuffle(plan, reports, out)
    else:
        assert not out.exists()
        assert any(path.name.startswith(".shuffled.") for path in tmp_path.iterdir())
        assert shuffle(plan, reports, out).people == FEW
    left = [path for path in tmp_path.iterdir() if path.name.startswith(".")]
    assert len(left) == (point == "after the folder has appeared")  # a run into this folder would clear it away
    assert multiset(released(out, plan)) == multiset(theirs.messages)


@pytest.mark.parametrize("name", ["out", "out[1]", "*", "?ut"])
def test_what_another_run_left_is_not_touched_whatever_folders_are_called(tmp_path: Path, name: str) -> None:
    """Neither that of a folder whose name begins alike, nor what a name means as a pattern."""
    mine = tmp_path / f".{name}.0123456789abcdef.tmp"
    others = [tmp_path / f".{other}.0123456789abcdef.tmp" for other in ("out.v2", "out1", "but", "x")]
    for folder in (mine, *others):
        folder.mkdir()
    with _work_folder(tmp_path / name):
        assert not mine.exists()
    assert all(folder.exists() for folder in others)


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore::cloister.core.errors.WorkerWarning")
def test_a_worker_killed_changes_nothing(plan: CollectionPlan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor does it that files are read in parts: senders stand in several files, twice in one, and in a row."""
    monkeypatch.setattr(parts, "PART", 2000)
    rng, everybody, folder = np.random.default_rng(1), sent(plan, 9), tmp_path / "reports"
    written(folder / "0.reports", everybody, slice(0, 180))
    for i in range(1, 4):
        some = sent(plan, i, users=rng.choice(FEW, int(rng.integers(20, FEW)), replace=False))
        users, answers = some.users.copy(), some.answers.copy()
        users[::40] = FEW + 1
        answers[::7, 0] = 77  # no such question
        twice = np.sort(rng.integers(0, len(users), len(users)))
        data = [some.form.batch(users[s], answers[s]) for s in np.array_split(twice, 9)]
        (folder / f"{i}.reports").write_bytes(b"".join(data) + data[0][:5])
    expected, killed = shuffle(plan, folder, tmp_path / "one"), list[int]()

    def kill(_: int) -> None:
        if not killed:
            killed.extend(engine.pids)
            os.kill(killed[0], signal.SIGKILL)

    with closing(Processes(2)) as engine:
        done = shuffle(plan, folder, tmp_path / "two", engine=engine, progress=kill)
    assert killed
    assert (done.people, done.messages) == (expected.people, expected.messages)
    assert done.intake.refused == expected.intake.refused
    assert expected.intake.refused["duplicate"] > 0
    assert done.intake.unfinished == expected.intake.unfinished > 0
    assert multiset(released(tmp_path / "two", plan)) == multiset(released(tmp_path / "one", plan))
