"""Separate processes over mutual TLS on loopback: the whole thing, killed and restarted, and with certificates that do
not fit."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("grpc")

from cloister.core.randomness import NoiseRng
from cloister.core.types import Floats
from cloister.run.descriptions import descriptions_of
from cloister.run.fit import fit
from cloister.run.request import Request
from cloister.run.result import Result
from tests.alarms import Alarm
from tests.federated.federated_session import NAMES
from tests.federated.pooling import FACTS, arrays, lay_out, ledger
from tests.in_process import PROGRAM, cloister
from tests.waiting import PATIENCE, until

SEED = 11
UNSIGNED = "coordinate plan.toml --listen 127.0.0.1:0 --cert certs/coordinator.pem --not-private"
pytestmark = pytest.mark.thorough


def lasting_port() -> int:
    """A free port, below those that the system gives to connections (from 32768 on): a party's could take one of these
    while it looks for a coordinator that is away."""
    for port in np.random.default_rng().integers(20_000, 32_000, 100).tolist():
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return int(port)
    raise AssertionError("no port is free")


class Site:
    """A folder with a plan, certificates and three parties' rows, and the processes that use them."""

    def __init__(self, folder: Path, rows: Floats, rounds: int, zoom: str | float = "off", **more: Any) -> None:
        self.folder, self.rows, self.rounds, self.zoom = folder, rows, rounds, zoom
        self.running = list[subprocess.Popen[str]]()
        facts = {
            "k": 3,
            "epsilon": 1.0,
            "delta": 1e-6,
            "rows": len(rows),
            "seed": 5,
            "test_noise_seed": SEED,
            "method": "fastlloyd",
            "oracle": "masked-gaussian",
            "zoom": zoom,
            "columns": [str(i) for i in range(rows.shape[1])],
            "bounds": [[-1, 1]] * rows.shape[1],
            **more,
        }
        lines = (f"{name} = {json.dumps(value)}\n" for name, value in facts.items())
        lay_out(folder, f"{''.join(lines)}set = {{ rounds = {rounds} }}\n\n")
        self.plan = folder / "plan.toml"
        for name, part in zip(NAMES, np.split(rows, [len(rows) // 2, 2 * len(rows) // 3]), strict=True):
            np.save(folder / f"{name}.npy", part)
        self.sign()

    def sign(self) -> None:
        for name in NAMES:
            command = f"sign plan.toml --party {name} --cert certs/{name}.pem --not-private"
            done = cloister(*command.split(), folder=self.folder)
            assert done.returncode == 0, done.stderr

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [PROGRAM, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=self.folder
        )
        self.running.append(process)
        return process

    def coordinate(self, port: int = 0) -> tuple[subprocess.Popen[str], int]:
        """A coordinator and its port."""
        command = (
            f"coordinate plan.toml --listen 127.0.0.1:{port} --cert certs/coordinator.pem --not-private "
            "--journal coordinator.journal --log log.jsonl --timeout 30 --patience 60"
        )
        process = self.start(*command.split())
        assert process.stderr is not None
        words = process.stderr.readline()
        assert words.startswith("listening on port"), words
        return process, int(words.split()[3])

    def join(self, name: str, port: int, *more: str, rows: bool = True) -> subprocess.Popen[str]:
        """A party. Args: rows (whether they are those in its file)."""
        data = f"--data {name}.npy " if rows else ""
        command = (
            f"join plan.toml --party {name} {data}--cert certs/{name}.pem --connect 127.0.0.1:{port} "
            f"--journal {name}.journal --log {name}.jsonl --out {name}.json --patience 60 --not-private"
        )
        return self.start(*command.split(), *more)

    def interrupt(self, process: subprocess.Popen[str]) -> str:
        """Ctrl-C: the line that the program ends with."""
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=PATIENCE)
        assert process.returncode == 130, err
        assert "Traceback" not in err
        last = err.splitlines()[-1]
        assert last.startswith("cloister: interrupted; "), err
        return last

    def wait_for(self, event: str, **facts: Any) -> None:
        """Until the coordinator's log says so."""
        until(lambda: any({"event": event, **facts}.items() <= entry.items() for entry in self.log()))

    def log(self) -> list[dict[str, Any]]:
        path = self.folder / "log.jsonl"
        lines = path.read_text().splitlines() if path.exists() else []
        return [json.loads(line) for line in lines if line.endswith("}")]

    def centers(self, name: str) -> Any:
        return json.loads((self.folder / f"{name}.json").read_text())["result"]["centers"]

    def ended(self, *processes: subprocess.Popen[str]) -> str:
        """All ended well, with the same centres. Returns: what the last one said."""
        for process in processes:
            out, err = process.communicate(timeout=120)
            assert process.returncode == 0, err + out
        assert self.centers("north") == self.centers("south") == self.centers("west")
        return err

    def check(self, *processes: subprocess.Popen[str]) -> None:
        """All ended well, with the curator's centres."""
        self.ended(*processes)
        request = Request(
            **{**FACTS, "rows": len(self.rows), "seed": 5}, options={"rounds": self.rounds}, zoom=self.zoom
        )
        central = fit(request, arrays(self.rows), noise=NoiseRng.for_tests(SEED)).centers
        assert np.array_equal(np.array(self.centers("north")), central)

    def end(self) -> None:
        for process in self.running:
            if process.poll() is None:
                process.kill()
            process.communicate()


def test_three_processes_pool_adult_as_a_curator_would(tmp_path: Path, data: Path) -> None:
    """They find the same frame too, from the sums that they unmask: a round more than the method's own."""
    with np.load(data / "adult.npz") as arrays:
        x = arrays["X"].astype(float)
    rows = 2 * (x - x.min(axis=0)) / (x.max(axis=0) - x.min(axis=0)) - 1  # a benchmark's scaling, not a private run's
    site = Site(tmp_path, rows, 7, zoom=0.05)
    try:
        coordinator, port = site.coordinate()
        parties = [site.join(name, port) for name in NAMES]
        site.check(*parties, coordinator)
        assert [e["event"] for e in site.log()].count("answered") == 8
        told = [json.loads(line) for line in (tmp_path / f"{NAMES[0]}.jsonl").read_text().splitlines()]
        assert [e["what"] for e in told if "round" in e.get("what", "")] == [f"round {i}" for i in range(1, 9)]
        assert told[-1]["event"] == "finished"
        saved = Result.load(tmp_path / f"{NAMES[0]}.json")
        assert saved.privacy.headline.startswith("not private: seeded")
        assert saved.details["trust"][0].startswith("not private: seeded")
        assert {key for e in told for key in e} == {"time", "event", "party", "what"}
    finally:
        site.end()


@pytest.mark.alarm(1e-9)
def test_three_processes_describe_groups_by_a_column_that_they_do_not_cluster_by(tmp_path: Path, alarm: Alarm) -> None:
    """All three find the same counts of the pooled rows, within the errors that they state."""
    g = np.random.default_rng(3)
    groups = g.integers(0, 3, 6000)
    middles = np.array([[-0.6, -0.6], [0.6, -0.6], [0.0, 0.6]])[groups]
    rows = np.column_stack([middles + g.normal(size=(6000, 2)) * 0.05, g.normal(0.4 * groups - 0.4, 0.1)]).clip(-1, 1)
    site = Site(tmp_path, rows, 3, columns=["0", "1"], describe=["2", "0"])
    try:
        coordinator, port = site.coordinate()
        site.ended(*[site.join(name, port) for name in NAMES], coordinator)
        results = [Result.load(tmp_path / f"{name}.json") for name in NAMES]
    finally:
        site.end()
    assert len({json.dumps(result.details["described"]) for result in results}) == 1
    found = descriptions_of(results[0])
    assert found is not None
    near = ((rows[:, None, :2] - results[0].centers) ** 2).sum(axis=2).argmin(axis=1)
    for column in found.columns:
        codes = np.minimum(((rows[:, int(column.name)] + 1) * 8).astype(int), 15)
        exact = np.bincount(16 * near + codes, minlength=48).reshape(3, 16)
        alarm.near(column.shares, exact / exact.sum(axis=1)[:, None], column.errors, of=2)


def test_processes_that_are_interrupted_or_killed_go_on_as_they_were_told_and_pay_once(tmp_path: Path) -> None:
    """A party that waits for others gets its budget back; the coordinator, and a party in the middle, come back as
    Ctrl-C told them; a party that is killed comes back by its journal. But nobody comes to a plan that not all have
    signed."""
    site = Site(tmp_path, np.random.default_rng(1).normal(0, 0.4, (9_000, 4)), 60)
    try:
        # south's ledger takes no repeatable noise: the plan has none from here on, and needs new signatures
        site.plan.write_text(site.plan.read_text().replace(f"test_noise_seed = {SEED}\n", ""))
        (kept, _), (killed, _) = (ledger(tmp_path / f"{name}.ledger", 5.0) for name in ("south", "north"))
        guarded = {name: ("--ledger", f"{name}.ledger", "--dataset", "rows") for name in ("south", "north")}
        for process in (site.join("north", 1), site.start(*UNSIGNED.split())):
            _, words = process.communicate(timeout=PATIENCE)
            assert process.returncode == 2
            assert "has signed another plan" in words
        assert not (tmp_path / "north.journal").exists()
        site.sign()

        coordinator, port = site.coordinate(lasting_port())
        south = site.join("south", port, *guarded["south"])
        site.wait_for("hello", party="south")
        assert [run.state for run in kept.runs()] == ["open"]
        assert "with --journal south.journal" in site.interrupt(south)
        assert [(run.state, run.epsilon) for run in kept.runs()] == [("done", 0)]
        assert "nothing was sent" in site.interrupt(coordinator)

        coordinator, _ = site.coordinate(port)
        parties = {name: site.join(name, port, *guarded.get(name, ())) for name in NAMES}
        site.wait_for("answered", round=3)
        again = site.interrupt(parties["south"]).split("--journal south.journal ")[1].split()
        assert again[0] == "--resume"
        parties["north"].send_signal(signal.SIGKILL)
        parties["north"].wait()
        (cut,) = killed.runs()
        assert cut.state == "open"
        assert "--journal coordinator.journal" in site.interrupt(coordinator)

        coordinator, _ = site.coordinate(port)
        parties["south"] = site.join("south", port, *guarded["south"], *again)
        parties["north"] = site.join("north", port, *guarded["north"])  # the same words: its journal names the run
        assert "all rounds are answered" in site.ended(*parties.values(), coordinator)
        for (*_, paid), run in ((kept.runs(), again[1]), (killed.runs(), cut.id)):
            assert (paid.id, paid.state) == (run, "done")
            assert paid.epsilon == pytest.approx(1.0, rel=1e-3)
        assert (len(kept.runs()), len(killed.runs())) == (2, 1)
    finally:
        site.end()
