"""Runs under a ledger: many at once, killed at any point, and gone on with. Everything goes through the command
line."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cloister.accounting.ledger.ledger import Ledger
from tests.in_process import PROGRAM, cloister

ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1"}
FIT = (
    "fit",
    "rows.npy",
    "-k",
    "3",
    "--epsilon",
    "0.125",
    "--bounds=-1:1",
    "--rows",
    "2000",
    "--method",
    "su-lloyd",
    "--ledger",
    "budget.db",
    "--dataset",
    "mine",
    "--json",
)


def start(folder: Path, *more: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [PROGRAM, *FIT, *more], cwd=folder, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def show(folder: Path) -> Any:
    return json.loads(cloister("ledger", "show", "budget.db", "--json", folder=folder).stdout)[0]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    np.save(tmp_path / "rows.npy", np.random.default_rng(0).normal(0, 0.3, (2000, 2)))
    cloister("ledger", "declare", "budget.db", "mine", "--epsilon", "1", folder=tmp_path)
    return tmp_path


@pytest.mark.thorough
@pytest.mark.parametrize("fits", [12, pytest.param(40, marks=pytest.mark.long)])
def test_many_processes_never_overspend_and_lose_no_row(fits: int, folder: Path) -> None:
    """Lifetime 1, a dozen fits of 1/8: exactly eight are admitted, and each of them is in the ledger with its own
    result. (Fifty at once reserve in ``accounting/test_ledger_processes``.)"""
    running = []
    ends = []
    for _ in range(fits):
        running.append(start(folder))
        if len(running) == 10:  # more interpreters at once would only measure this machine's memory
            ends += [(p.communicate(timeout=120), p.returncode) for p in running]
            running = []
    ends += [(p.communicate(timeout=120), p.returncode) for p in running]
    good = [json.loads(out) for (out, _), code in ends if code == 0]
    assert [code for _, code in ends].count(2) == fits - 8
    assert all("was asked: nothing was read or spent" in err for (_, err), code in ends if code == 2)
    data = show(folder)
    assert len(good) == len(data["runs"]) == 8
    assert all(run["state"] == "done" for run in data["runs"])
    assert data["spent"]["epsilon"] == pytest.approx(1.0, abs=1e-9)


@pytest.mark.thorough
@pytest.mark.parametrize("kills", [2, pytest.param(7, marks=pytest.mark.long)])
def test_a_killed_fit_is_recorded_in_full_and_goes_on_with_the_same_values(kills: int, folder: Path) -> None:
    """kill -9 at random moments after the reservation: whatever was released is in the ledger, the run stays reserved,
    and the resumed run releases those very values and ends with nothing more spent."""
    ledger, moments, cut_off = Ledger.open(folder / "budget.db"), random.Random(1), 0
    for count in range(1, kills + 1):
        process = start(folder, "--set", "rounds=80")
        while len(ledger.runs("mine")) < count and process.poll() is None:
            time.sleep(0.002)
        time.sleep(moments.uniform(0.0, 0.4))
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=60)
        before = ledger.status()[0]
        assert before.spent.epsilon == pytest.approx(0.125 * count)
        run = before.runs[-1]
        if run.state == "done":
            continue
        cut_off += 1
        released = journalled_at(ledger.path, run.id)
        done = start(folder, "--set", "rounds=80", "--resume", run.id)
        out, err = done.communicate(timeout=60)
        assert done.returncode == 0, err
        assert journalled_at(ledger.path, run.id)[: len(released)] == released
        assert len(json.loads(out)["privacy"]["spends"]) == 160
        after = ledger.status()[0]
        assert before.spent.epsilon - 1e-9 <= after.spent.epsilon <= before.spent.epsilon  # what is left comes back
        assert after.runs[-1].state == "done"
    assert cut_off >= kills // 2, "too few kills fell between reservation and end"


def test_a_run_cut_off_at_every_look_releases_the_same_values_when_resumed(folder: Path) -> None:
    """Cut off (by an exception where kill -9 would fall) after each journal entry in turn, through the Python
    interface."""
    from cloister.accounting.ledger.run import Run
    from cloister.run.account import Account
    from cloister.run.fit import fit, source
    from cloister.run.request import Request

    rows = np.load(folder / "rows.npy")
    ledger = Ledger.open(folder / "long.db", create=True)
    ledger.declare("mine", 100.0)
    request = Request(k=3, method="su-lloyd", epsilon=1.0, bounds=(-1, 1), rows=2000, options={"rounds": 2})

    class Killed(BaseException):
        pass

    for entries in range(1, 12):
        count = 0
        original = Run.write

        def write(self: Run, look: Any, limit: int = entries, original: Any = original) -> None:
            nonlocal count
            original(self, look)
            count += 1
            if count == limit:
                raise Killed

        try:
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(Run, "write", write)
                fit(request, source(rows, None, "refuse"), account=Account(ledger=ledger.path, dataset="mine"))
        except Killed:
            (run,) = [r for r in ledger.runs("mine") if r.state == "open"]
            released = journalled_at(ledger.path, run.id)
            assert len(released) == entries
            spent = ledger.status()[0].spent
            fit(
                request,
                source(rows, None, "refuse"),
                account=Account(ledger=ledger.path, dataset="mine", resume=run.id),
            )
            assert journalled_at(ledger.path, run.id)[:entries] == released
            assert spent.epsilon - 1e-9 <= ledger.status()[0].spent.epsilon <= spent.epsilon  # what is left comes back
        else:
            assert entries > 8  # two rounds, four looks each
            break


def journalled_at(path: Path, run: str) -> list[bytes]:
    """The values of every look that a ledger holds of a run, in order, as stored."""
    from cloister.accounting.ledger.database import transaction
    from cloister.accounting.ledger.run import recorded

    with transaction(path, "reading") as db:
        return [look.values.tobytes() for look in recorded(db, run).lookups]


def test_another_plan_cannot_resume_a_run(folder: Path) -> None:
    process = start(folder)
    process.communicate(timeout=60)
    (run,) = show(folder)["runs"]
    done = start(folder, "--resume", run["id"], "-k", "4")
    _, err = done.communicate(timeout=60)
    assert done.returncode == 2
    assert "give it the same options" in err
