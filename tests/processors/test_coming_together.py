"""Two makes of processors in one run, each command in a process of its own: a pool, phones and their server, a resumed
run."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from cloister.accounting.ledger.ledger import Ledger
from cloister.run.result import Result
from tests.in_process import cloister
from tests.processors import kernels
from tests.processors.choices import rows_of
from tests.waiting import PATIENCE

pytestmark = [
    pytest.mark.thorough,
    pytest.mark.skipif(not kernels.runnable("SkylakeX"), reason="this processor has no AVX-512: nothing would differ"),
]

NAMES = ("north", "south", "west")
ON = dict(zip(NAMES, ("SkylakeX", "plain", "Haswell"), strict=True))

PARTS_AT = 3
"""Seed of noise with which k-medians on released points comes to other centres under these kernels."""

POOL = (
    f'k = 12\nepsilon = 2.0\ndelta = 1e-6\nrows = 20000\nmethod = "grid-median"\nseed = 5\nbounds = "ball:1"\n'
    f'columns = ["0", "1"]\ntest_noise_seed = {PARTS_AT}\n\n'
)


def started(kernel: str, command: str, folder: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "cloister", *command.split()],
        env=kernels.environment(kernel),
        cwd=folder,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def test_parties_on_three_makes_of_processors_pool(tmp_path: Path) -> None:
    """Without the rounds that settle what they found, the second round of questions comes out differently."""
    pytest.importorskip("grpc")
    made = cloister("test-certificates", "certs", *(x for n in NAMES for x in ("--party", n)), folder=tmp_path)
    (tmp_path / "plan.toml").write_text(POOL + made.stdout)
    for i, name in enumerate(NAMES):
        np.save(tmp_path / f"{name}.npy", rows_of(2)[i::3])
    common = "plan.toml --unsigned --not-private"
    listen = "--listen 127.0.0.1:0 --cert certs/coordinator.pem"
    coordinator = started("Prescott", f"coordinate {common} {listen}", folder=tmp_path)
    processes = [coordinator]
    try:
        assert coordinator.stderr is not None
        words = coordinator.stderr.readline()
        assert words.startswith("listening on port"), words
        assert words.endswith("; 7 rounds\n"), words
        joining = f"join {common} --connect 127.0.0.1:{words.split()[3]}"
        for name in NAMES:
            own = f"--party {name} --data {name}.npy --cert certs/{name}.pem --out {name}.json"
            processes.append(started(ON[name], f"{joining} {own}", folder=tmp_path))
        for process in reversed(processes):
            _, err = process.communicate(timeout=PATIENCE)
            assert process.returncode == 0, err
    finally:
        for process in processes:
            process.kill()
            process.wait()
    results = [Result.load(tmp_path / f"{name}.json") for name in NAMES]
    assert all(np.allclose(result.centers, results[0].centers, rtol=0, atol=1e-9) for result in results)
    assert all(np.array_equal(result.weights, results[0].weights) for result in results)


@pytest.mark.long
def test_devices_and_servers_of_two_makes_take_turns_in_a_collection(tmp_path: Path) -> None:
    np.save(tmp_path / "rows.npy", rows_of(2, rows=600))

    def on(kernel: str, command: str) -> str:
        return kernels.run(kernel, "-m", "cloister", *command.split(), folder=tmp_path)

    given = "-k 3 --epsilon 8 --rows 600 --bounds ball:1 --dimension 2 --method grid-means --trust local --seed 5"
    on("SkylakeX", f"plan {given} --out plan")
    shown = json.loads(cloister("rounds", "plan", "--json", folder=tmp_path).stdout)
    number = len(shown["rounds"])
    assert number > 1
    for i in range(number):
        encoder, server = ("plain", "SkylakeX") if i % 2 else ("SkylakeX", "plain")
        on(encoder, f"encode plan rows.npy --out reports{i} --state client.state")
        on(server, f"advance plan --reports reports{i} --strict --out result.json")
    assert Result.load(tmp_path / "result.json").centers.shape == (3, 2)
    assert on("SkylakeX", "rounds plan --json") == on("plain", "rounds plan --json")


KILLED = """
import sys
from tests.in_process import cloister
from tests.killed import killed_after

with killed_after(int(sys.argv[1])):
    cloister(*sys.argv[2:])
"""


@pytest.mark.parametrize("looks", [2, pytest.param(6, marks=pytest.mark.long)])
def test_a_run_that_was_killed_on_one_goes_on_upon_the_other(looks: int, tmp_path: Path) -> None:
    """The answers and what was settled on stand in the ledger; the other one opens the same rounds after them."""
    np.save(tmp_path / "rows.npy", rows_of(5))
    book = Ledger.open(tmp_path / "budget.db", create=True)
    book.declare("mine", 10.0, 1e-5)
    given = "-k 3 --epsilon 2 --delta 1e-6 --bounds ball:1 --rows 600 --method radius-means"
    fit = f"fit rows.npy {given} --ledger budget.db --dataset mine".split()
    kernels.run("SkylakeX", "-c", KILLED, str(looks), *fit, folder=tmp_path)
    (run,) = book.runs()
    assert run.state == "open"
    kernels.run("plain", "-m", "cloister", *fit, "--resume", run.id, "--out", "result.json", folder=tmp_path)
    (run,) = book.runs()
    assert run.state == "done"
    assert 1.9 < run.epsilon <= 2.0
    kernels.run("Prescott", "-m", "cloister", *fit, "--resume", run.id, "--out", "again.json", folder=tmp_path)
    first, again = (Result.load(tmp_path / name) for name in ("result.json", "again.json"))
    assert np.allclose(first.centers, again.centers, rtol=0, atol=1e-9)
