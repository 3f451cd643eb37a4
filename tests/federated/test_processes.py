"""Separate processes over mutual TLS on loopback: the whole thing, killed and restarted, and with certificates that do
not fit."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("grpc")

from cloister.core.randomness import NoiseRng
from cloister.core.registry.registry import registry
from cloister.core.types import Floats
from cloister.run.fit import fit
from cloister.run.request import Request
from cloister.run.result import Result
from tests.in_process import PROGRAM, cloister
from tests.waiting import PATIENCE, until

NAMES = ("north", "south", "west")
SEED = 11
pytestmark = pytest.mark.thorough


class Site:
    """A folder with a plan, certificates and three parties' rows, and the processes that use them."""

    def __init__(self, folder: Path, rows: Floats, rounds: int, extra: str = "", zoom: str | float = "off") -> None:
        self.folder, self.rows, self.rounds, self.zoom = folder, rows, rounds, zoom
        self.running = list[subprocess.Popen[str]]()
        made = cloister("test-certificates", folder / "certs", *(x for n in NAMES for x in ("--party", n)))
        d = rows.shape[1]
        facts = (
            f"k = 3\nepsilon = 1.0\ndelta = 1e-6\nrows = {len(rows)}\nseed = 5\ntest_noise_seed = {SEED}\n"
            f'method = "fastlloyd"\noracle = "masked-gaussian"\nzoom = {json.dumps(zoom)}\n{extra}'
            f"columns = {json.dumps([str(i) for i in range(d)])}\nbounds = {[[-1, 1]] * d}\nset = {{ rounds = "
            f"{rounds} }}\n\n"
        )
        self.plan = folder / "plan.toml"
        self.plan.write_text(facts + made.stdout)
        for name, part in zip(NAMES, np.split(rows, [len(rows) // 2, 2 * len(rows) // 3]), strict=True):
            np.save(folder / f"{name}.npy", part)
            self.sign(name)

    def sign(self, name: str, plan: str = "plan.toml") -> None:
        done = cloister(
            "sign", plan, "--party", name, "--cert", f"certs/{name}.pem", "--not-private", folder=self.folder
        )
        assert done.returncode == 0, done.stderr

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [PROGRAM, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=self.folder
        )
        self.running.append(process)
        return process

    def coordinate(self, port: int = 0, **options: str) -> tuple[subprocess.Popen[str], int]:
        """A coordinator and its port."""
        flags = {"journal": "coordinator.journal", "log": "log.jsonl", "timeout": "30", "patience": "60", **options}
        command = f"coordinate plan.toml --listen 127.0.0.1:{port} --cert certs/coordinator.pem --not-private"
        process = self.start(*command.split(), *(x for name, value in flags.items() for x in (f"--{name}", value)))
        assert process.stderr is not None
        words = process.stderr.readline()
        assert words.startswith("listening on port"), words
        return process, int(words.split()[3])

    def join(
        self, name: str, port: int, *more: str, plan: str = "plan.toml", rows: bool = True
    ) -> subprocess.Popen[str]:
        """A party. Args: rows (whether they are those in its file)."""
        data = f"--data {name}.npy " if rows else ""
        command = (
            f"join {plan} --party {name} {data}--cert certs/{name}.pem --connect 127.0.0.1:{port} "
            f"--journal {name}.journal --log {name}.jsonl --out {name}.json --patience 60 --not-private"
        )
        return self.start(*command.split(), *more)

    def guard_south(self) -> tuple[Callable[..., Any], tuple[str, ...]]:
        """South's ledger, and the flags that use it: it takes no repeatable noise, so that the plan has none from here
        on."""

        def ledger(*arguments: str) -> Any:
            out = cloister("ledger", *arguments, folder=self.folder).stdout
            return json.loads(out) if "--json" in arguments else out

        self.plan.write_text(self.plan.read_text().replace(f"test_noise_seed = {SEED}\n", ""))
        for name in NAMES:
            self.sign(name)
        ledger("declare", "south.ledger", "patients", "--epsilon", "5", "--delta", "1e-5")
        return ledger, ("--ledger", "south.ledger", "--dataset", "patients")

    def interrupt(self, process: subprocess.Popen[str]) -> str:
        """Ctrl-C: the line that the program ends with."""
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=PATIENCE)
        assert process.returncode == 130, err
        assert "Traceback" not in err
        last = err.splitlines()[-1]
        assert last.startswith("cloister: interrupted; "), err
        return last

    def wait_for(self, event: str, party: str) -> None:
        """Until the coordinator's log says so."""
        until(lambda: any(e["event"] == event and e.get("party") == party for e in self.log()))

    def wait_for_round(self, number: int) -> None:
        """Until the coordinator's log says that this round was answered."""
        until(lambda: any(e["event"] == "answered" and e["round"] >= number for e in self.log()))

    def log(self) -> list[dict[str, Any]]:
        path = self.folder / "log.jsonl"
        lines = path.read_text().splitlines() if path.exists() else []
        return [json.loads(line) for line in lines if line.endswith("}")]

    def centers(self, name: str) -> Any:
        return json.loads((self.folder / f"{name}.json").read_text())["result"]["centers"]

    def check(self, *processes: subprocess.Popen[str]) -> None:
        """All ended well, with the curator's centres."""
        for process in processes:
            out, err = process.communicate(timeout=120)
            assert process.returncode == 0, err + out
        request = Request(
            k=3,
            method="fastlloyd",
            epsilon=1.0,
            delta=1e-6,
            bounds="-1:1",
            rows=len(self.rows),
            seed=5,
            options={"rounds": self.rounds},
            zoom=self.zoom,
        )
        rows = registry().load(registry().spec("Population", "arrays"))(self.rows)
        central = fit(request, rows, noise=NoiseRng.for_tests(SEED)).centers
        for name in NAMES:
            assert np.array_equal(np.array(self.centers(name)), central)

    def end(self) -> None:
        for process in self.running:
            if process.poll() is None:
                process.kill()
            process.communicate()


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    """Enough rounds that a process can be killed in the middle of them."""
    made = Site(tmp_path, np.random.default_rng(1).normal(0, 0.4, (30_000, 4)), 60)
    yield made
    made.end()


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


def test_a_killed_party_with_a_ledger_resumes_its_run_and_pays_once(site: Site) -> None:
    """Started again with the same words: its journal names the run."""
    ledger, guarded = site.guard_south()
    coordinator, port = site.coordinate()
    parties = [site.join(name, port, *(guarded if name == "south" else ())) for name in NAMES]
    site.wait_for_round(3)
    parties[1].send_signal(signal.SIGKILL)
    parties[1].wait()
    (cut,) = [run for run in ledger("show", "south.ledger", "--json")[0]["runs"] if run["state"] == "open"]
    parties[1] = site.join("south", port, *guarded)
    for process in (*parties, coordinator):
        out, err = process.communicate(timeout=120)
        assert process.returncode == 0, err + out
    assert site.centers("north") == site.centers("south") == site.centers("west")
    (kept,) = ledger("show", "south.ledger", "--json")
    assert [(run["id"], run["state"]) for run in kept["runs"]] == [(cut["id"], "done")]
    assert kept["spent"]["epsilon"] == pytest.approx(1.0, rel=1e-3)


def test_ctrl_c_says_what_is_open_and_how_to_go_on_and_going_on_so_ends_well(site: Site) -> None:
    """A party that waits for others gets its budget back; the coordinator, and a party in the middle, come back as they
    were told."""
    ledger, guarded = site.guard_south()
    coordinator, port = site.coordinate()
    south = site.join("south", port, *guarded)
    site.wait_for("hello", "south")
    (held,) = ledger("show", "south.ledger", "--json")[0]["runs"]
    assert held["state"] == "open"
    assert "with --journal south.journal" in site.interrupt(south)
    assert ledger("show", "south.ledger", "--json")[0]["spent"]["epsilon"] == 0
    assert "nothing was sent" in site.interrupt(coordinator)
    coordinator, _ = site.coordinate(port)
    parties = {name: site.join(name, port, *(guarded if name == "south" else ())) for name in NAMES}
    site.wait_for_round(3)
    told = site.interrupt(parties["south"])
    again = told.split("--journal south.journal ")[1].split()
    assert again[0] == "--resume"
    assert "--journal coordinator.journal" in site.interrupt(coordinator)
    coordinator, _ = site.coordinate(port)
    parties["south"] = site.join("south", port, *guarded, *again)
    for process in (*parties.values(), coordinator):
        out, err = process.communicate(timeout=120)
        assert process.returncode == 0, err + out
    assert site.centers("north") == site.centers("south") == site.centers("west")
    assert "all rounds are answered" in err
    (kept,) = ledger("show", "south.ledger", "--json")
    assert kept["spent"]["epsilon"] == pytest.approx(1.0, rel=1e-3)


def test_nobody_joins_or_coordinates_a_plan_that_not_all_have_signed(site: Site) -> None:
    (site.folder / "plan.signatures" / "party-2.sig").unlink()
    coordinate = "coordinate plan.toml --listen 127.0.0.1:0 --cert certs/coordinator.pem --not-private"
    for process in (site.join("north", 1), site.start(*coordinate.split())):
        _, words = process.communicate(timeout=PATIENCE)
        assert process.returncode == 2
        assert "south has not signed this plan" in words
    assert not (site.folder / "north.journal").exists()
