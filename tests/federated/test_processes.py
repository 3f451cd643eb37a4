"""Separate processes over mutual TLS on loopback: the whole thing, killed and restarted, and with certificates that do
not fit."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pytest

pytest.importorskip("grpc")

from tests.federated.federated_session import NAMES
from tests.federated.pooling import TOML, lay_out, ledger
from tests.in_process import PROGRAM, cloister
from tests.waiting import PATIENCE, until

UNSIGNED = "coordinate plan.toml --listen 127.0.0.1:0 --cert certs/coordinator.pem"
pytestmark = pytest.mark.thorough

Process: TypeAlias = subprocess.Popen[str]


def lasting_port() -> int:
    """A free port, below those that the system gives to connections (from 32768 on): a party's could take one of these
    while it looks for a coordinator that is away."""
    for port in np.random.default_rng().integers(20_000, 32_000, 100).tolist():
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return int(port)
    raise AssertionError("no port is free")


class Site:
    """A folder with a signed plan, certificates and three parties' rows, and the processes that use them."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.running = lay_out(folder, TOML.replace("rounds = 3", "rounds = 60")), list[Process]()
        self.plan = folder / "plan.toml"
        self.sign()

    def sign(self) -> None:
        for name in NAMES:
            command = f"sign plan.toml --party {name} --cert certs/{name}.pem"
            done = cloister(*command.split(), folder=self.folder)
            assert done.returncode == 0, done.stderr

    def start(self, *arguments: str) -> Process:
        process = subprocess.Popen(
            [PROGRAM, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=self.folder
        )
        self.running.append(process)
        return process

    def coordinate(self, port: int = 0) -> tuple[Process, int]:
        """A coordinator and its port."""
        command = (
            f"coordinate plan.toml --listen 127.0.0.1:{port} --cert certs/coordinator.pem "
            "--journal coordinator.journal --log log.jsonl --timeout 30 --patience 60"
        )
        process = self.start(*command.split())
        assert process.stderr is not None
        words = process.stderr.readline()
        assert words.startswith("listening on port"), words
        return process, int(words.split()[3])

    def join(self, name: str, port: int, *more: str) -> Process:
        """A party."""
        command = (
            f"join plan.toml --party {name} --data {name}.csv --cert certs/{name}.pem --connect 127.0.0.1:{port} "
            f"--journal {name}.journal --log {name}.jsonl --out {name}.json --patience 60"
        )
        return self.start(*command.split(), *more)

    def interrupt(self, process: Process) -> str:
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

    def ended(self, *processes: Process) -> str:
        """All ended well, with the same centres. Returns: what the last one said."""
        for process in processes:
            out, err = process.communicate(timeout=120)
            assert process.returncode == 0, err + out
        assert self.centers("north") == self.centers("south") == self.centers("west")
        return err

    def end(self) -> None:
        for process in self.running:
            if process.poll() is None:
                process.kill()
            process.communicate()


def test_processes_that_are_interrupted_or_killed_go_on_as_they_were_told_and_pay_once(tmp_path: Path) -> None:
    """A party that waits for others gets its budget back; the coordinator, and a party in the middle, come back as
    Ctrl-C told them; a party that is killed comes back by its journal. But nobody comes to a plan that not all have
    signed."""
    site = Site(tmp_path)
    try:
        site.plan.write_text(site.plan.read_text().replace("seed = 1", "seed = 2"))
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
