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
from tests.in_process import PROGRAM, ran
from tests.run.test_resuming import journalled

ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1"}
FIT = (
    "fit rows.npy -k 3 --epsilon 0.125 --bounds=-1:1 --rows 2000 --method su-lloyd --ledger budget.db --dataset mine "
    "--json"
)


def start(folder: Path, *more: str) -> subprocess.Popen[str]:
    command, pipe = [PROGRAM, *FIT.split(), *more], subprocess.PIPE
    return subprocess.Popen(command, cwd=folder, env=ENVIRONMENT, stdout=pipe, stderr=pipe, text=True)


def show(folder: Path) -> Any:
    return json.loads(ran("ledger show budget.db --json", folder).stdout)[0]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    np.save(tmp_path / "rows.npy", np.random.default_rng(0).normal(0, 0.3, (2000, 2)))
    ran("ledger declare budget.db mine --epsilon 1", tmp_path)
    return tmp_path


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
        released = journalled(ledger.path, run.id)
        done = start(folder, "--set", "rounds=80", "--resume", run.id)
        out, err = done.communicate(timeout=60)
        assert done.returncode == 0, err
        assert journalled(ledger.path, run.id)[: len(released)] == released
        assert len(json.loads(out)["privacy"]["spends"]) == 160
        after = ledger.status()[0]
        assert before.spent.epsilon - 1e-9 <= after.spent.epsilon <= before.spent.epsilon  # what is left comes back
        assert after.runs[-1].state == "done"
    assert cut_off >= kills // 2, "too few kills fell between reservation and end"
