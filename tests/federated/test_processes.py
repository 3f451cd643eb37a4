"""Separate processes over mutual TLS on loopback: the whole thing, killed and restarted, and with certificates that do
not fit."""

from __future__ import annotations

import json
import re
import shutil
import signal
import socket
import subprocess
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("grpc")

from cloister.core.randomness import NoiseRng
from cloister.core.types import Floats
from cloister.run.fit import fit, source
from cloister.run.result import Result
from tests.asking import asking
from tests.federated.federated_session import NAMES
from tests.federated.pooling import FACTS, Programs, ended, lay_out, ledger
from tests.in_process import PROGRAM, ran
from tests.waiting import until

SEED = 11
pytestmark = pytest.mark.thorough


def lasting_port() -> int:
    """A free port, below those that the system gives to connections (from 32768 on): a party's could take one of these
    while it looks for a coordinator that is away."""
    for port in np.random.default_rng().integers(20_000, 32_000, 100).tolist():
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return int(port)
    raise AssertionError("no port is free")


class Site(Programs):
    """A folder with a plan, certificates and three parties' rows, and the processes that use them."""

    def __init__(self, folder: Path, rows: Floats, rounds: int, **more: Any) -> None:
        self.folder, self.rounds = folder, rounds
        super().__init__()
        self.under = list[str]()
        columns = [str(i) for i in range(rows.shape[1])]
        self.facts = {**FACTS, "zoom": "off", "describe": [], "rows": len(rows), "columns": columns, **more}
        noise = {"test_noise_seed": SEED, "oracle": "masked-gaussian"}
        lines = (f"{name} = {json.dumps(value)}\n" for name, value in (noise | self.facts).items() if value is not None)
        lay_out(folder, f"{''.join(lines)}set = {{ rounds = {rounds} }}\n\n")
        for name, part in zip(NAMES, np.split(rows, [len(rows) // 2, 2 * len(rows) // 3]), strict=True):
            np.save(folder / f"{name}.npy", part)
            ran(f"sign plan.toml --party {name} --cert certs/{name}.pem --not-private", folder)

    def start(self, command: str, *more: str) -> subprocess.Popen[str]:
        return self.run([*self.under, PROGRAM, *command.split(), *more], self.folder)

    def coordinate(self, port: int = 0) -> tuple[subprocess.Popen[str], int]:
        """A coordinator and its port."""
        command = (
            f"coordinate plan.toml --listen 127.0.0.1:{port} --cert certs/coordinator.pem --not-private "
            "--journal coordinator.journal --log log.jsonl --timeout 30 --patience 60"
        )
        process = self.start(command)
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
        return self.start(command, *more)

    def interrupt(self, process: subprocess.Popen[str]) -> str:
        """Ctrl-C: the line that the program ends with."""
        process.send_signal(signal.SIGINT)
        words = ended(process, 130)
        assert "Traceback" not in words
        last = words.splitlines()[-1]
        assert last.startswith("cloister: interrupted; "), words
        return last

    def wait_for(self, event: str, **facts: Any) -> None:
        """Until the coordinator's log says so."""
        until(lambda: any({"event": event, **facts}.items() <= entry.items() for entry in self.log()))

    def log(self, name: str = "log") -> list[dict[str, Any]]:
        lines = (self.folder / f"{name}.jsonl").read_text().splitlines()
        return [json.loads(line) for line in lines if line.endswith("}")]

    def ended(self, *processes: subprocess.Popen[str]) -> list[Result]:
        """All ended well, with the same centres. Returns: their results."""
        for process in processes:
            ended(process)
        results = [Result.load(self.folder / f"{name}.json") for name in NAMES]
        assert all(np.array_equal(results[0].centers, result.centers) for result in results)
        return results

    def check(self, *processes: subprocess.Popen[str]) -> Result:
        """All ended well, with what a curator would release."""
        first, *_ = self.ended(*processes)
        asked = {name: value for name, value in self.facts.items() if name != "columns"}
        files = [str(self.folder / f"{name}.npy") for name in NAMES]
        whole = source(files, columns=self.facts["columns"], described=self.facts["describe"])
        central = fit(asking(**asked, options={"rounds": self.rounds}), whole, noise=NoiseRng.for_tests(SEED))
        assert np.array_equal(first.centers, central.centers)
        assert first.details.get("described") == central.details.get("described")
        return first


def test_three_processes_pool_adult_as_a_curator_would(tmp_path: Path, data: Path) -> None:
    """They find the same frame too, from the sums that they unmask, and count what groups hold in a column that they do
    not cluster by: rounds more than the method's own."""
    with np.load(data / "adult.npz") as arrays:
        x = arrays["X"].astype(float)
    rows = 2 * (x - x.min(axis=0)) / (x.max(axis=0) - x.min(axis=0)) - 1  # a benchmark's scaling, not a private run's
    *columns, described = map(str, range(rows.shape[1]))
    site = Site(tmp_path, rows, 7, zoom=0.05, columns=columns, describe=[described])
    try:
        coordinator, port = site.coordinate()
        parties = [site.join(name, port) for name in NAMES]
        saved = site.check(*parties, coordinator)
        assert saved.details["described"]
        assert [e["event"] for e in site.log()].count("answered") == 10
        told = site.log("north")
        assert told[-1]["event"] == "finished"
        assert saved.privacy.headline.startswith("not private: seeded")
        assert saved.details["trust"][0].startswith("not private: seeded")
        assert {key for e in told for key in e} == {"time", "event", "party", "what"}
    finally:
        site.end()


def test_processes_that_are_interrupted_or_killed_go_on_as_they_were_told_and_pay_once(tmp_path: Path) -> None:
    """The coordinator, and a party in the middle, come back as Ctrl-C told them; a party that is killed comes back by
    its journal."""
    rows = np.random.default_rng(1).normal(0, 0.4, (9_000, 4))
    site = Site(tmp_path, rows, 60, test_noise_seed=None)  # a ledger takes no repeatable noise
    try:
        (kept, _), (killed, _) = (ledger(tmp_path / f"{name}.ledger", 5.0) for name in ("south", "north"))
        guarded = {name: ("--ledger", f"{name}.ledger", "--dataset", "rows") for name in ("south", "north")}
        coordinator, port = site.coordinate(lasting_port())
        parties = {name: site.join(name, port, *guarded.get(name, ())) for name in NAMES}
        site.wait_for("answered", round=3)
        again = site.interrupt(parties["south"]).split("--journal south.journal ")[1].split()
        assert again[0] == "--resume"
        parties["north"].kill()
        parties["north"].wait()
        (cut,) = killed.runs()
        assert cut.state == "open"
        assert "--journal coordinator.journal" in site.interrupt(coordinator)

        coordinator, _ = site.coordinate(port)
        parties["south"] = site.join("south", port, *guarded["south"], *again)
        parties["north"] = site.join("north", port, *guarded["north"])  # the same words: its journal names the run
        site.ended(*parties.values(), coordinator)
        for (paid,), run in ((kept.runs(), again[1]), (killed.runs(), cut.id)):
            assert (paid.id, paid.state) == (run, "done")
            assert paid.epsilon == pytest.approx(1.0, rel=1e-3)
    finally:
        site.end()


@pytest.mark.skipif(shutil.which("faketime") is None, reason="faketime is not installed")
@pytest.mark.skipif(
    version("grpcio").startswith(("1.60.", "1.61.")), reason="this gRPC's server never starts under faketime"
)
def test_processes_whose_clocks_differ_are_warned_and_pool_all_the_same_until_a_certificate_is_over(
    tmp_path: Path,
) -> None:
    """Real ones: an hour apart they warn; by a month certificates are over, and each end says whose clock says so."""
    site = Site(tmp_path, np.random.default_rng(1).normal(0, 0.4, (900, 2)), 3)

    def ahead(hours: int) -> None:
        """Programs that are started from now on have this clock."""
        site.under = ["faketime", "-f", f"{hours:+d}h"]

    try:
        ahead(29 * 24)
        coordinator, port = site.coordinate()
        ahead(31 * 24)
        assert "clock, which says" in ended(site.join("south", port, "--check"), 2)
        parties = []
        for apart, name in enumerate(NAMES, -1):
            ahead(29 * 24 + apart)
            parties.append(site.join(name, port))
        told = [ended(process) for process in parties]
        said = [re.findall(r"this machine's clock is [\d,.]+ seconds (.*) the coordinator's", words) for words in told]
        assert said == [["behind"], [], ["ahead of"]]
        assert "the certificate of north ends on" in told[0]
        site.ended(coordinator)
        soon = [entry["party"] for entry in site.log() if entry["event"] == "ends soon"]
        assert soon == ["the authority", "coordinator", *NAMES]
    finally:
        site.end()
