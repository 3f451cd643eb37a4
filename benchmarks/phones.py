"""A fleet of devices, from a published plan to centres: how far off they are, beside what the plan forecast.

    python benchmarks/phones.py --devices 200000 --javascript 1000

Real programs: ``cloister plan``, ``cloister serve`` in a process of its own, the JavaScript client in Node, where every
device is a client and sends one report by itself, the Python client for the others, in batches, as gateways send them,
then ``cloister decode``. User numbers are dealt out blindly. The rows are what a plan's forecast is about: k tight
clusters of one size. Beside the fleet's result stand those of the same plan and people without any wire, encoded anew
in this process.
"""

from __future__ import annotations

import argparse
import json
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.request import Request, urlopen

import attrs
import numpy as np

from cloister.collection.plan.plan import CollectionPlan
from cloister.collection.server.aggregator import decode
from cloister.core.types import Floats, Ints
from cloister.encoder import PlanEncoder, read
from cloister.metrics import nicv
from cloister.run.result import Result

AGAIN = 10
"""Runs without the wire."""

CLUSTER = 0.05
"""Standard deviation of a cluster over all columns, in radii of the domain."""


@attrs.frozen
class Fleet:
    """Who takes part. Args: numbers (n,), rows (n, d), centers (k, d) of the clusters, javascript (how many of them,
    the first ones, are JavaScript clients), batch (reports that a Python gateway sends at once)."""

    numbers: Ints
    rows: Floats
    centers: Floats
    javascript: int
    batch: int

    @classmethod
    def of(cls, devices: int, k: int, dimension: int, javascript: int, batch: int, seed: int) -> Fleet:
        """Made-up devices, with numbers that no row has to do with."""
        g = np.random.default_rng(seed)
        centers = g.normal(size=(k, dimension))
        centers *= 0.7 / np.linalg.norm(centers, axis=1, keepdims=True)
        rows = centers[g.integers(0, k, devices)] + g.normal(0, CLUSTER / np.sqrt(dimension), (devices, dimension))
        return cls(np.random.default_rng().permutation(devices), rows, centers, javascript, batch)

    def excess(self, centers: Floats) -> float:
        """What these centres cost more than the clusters' own, over the squared radius, which is 1."""
        return nicv(self.rows, centers) - nicv(self.rows, self.centers)


def again(fleet: Fleet, plan: CollectionPlan, folder: Path) -> Iterator[float]:
    """Yield the excess of the same people under the same plan, encoded and decoded in this process."""
    encoder, file = PlanEncoder(plan), folder / "again.reports"
    for _ in range(AGAIN):
        file.write_bytes(encoder.encode(fleet.rows, fleet.numbers).to_bytes())
        yield fleet.excess(decode(plan, file).result.centers)


def program(*arguments: object) -> subprocess.CompletedProcess[str]:
    """``cloister`` in a process of its own."""
    command = [sys.executable, "-m", "cloister", *map(str, arguments)]
    return subprocess.run(command, check=True, capture_output=True, text=True)


@contextmanager
def collector(plan: Path, reports: Path) -> Iterator[str]:
    """The address of a running ``cloister serve``."""
    command = [sys.executable, "-um", "cloister", "serve", str(plan), "--out", str(reports), "--port", "0", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as serving:
        try:
            assert serving.stdout is not None
            yield f"{json.loads(serving.stdout.readline())['address']}/"
        finally:
            serving.send_signal(signal.SIGINT)


def from_python(fleet: Fleet, plan: Path, address: str) -> float:
    """All Python devices report, in batches. Returns the seconds that it took."""
    encoder, start = PlanEncoder(read(plan)), time.perf_counter()
    for at in range(fleet.javascript, len(fleet.rows), fleet.batch):
        some = slice(at, at + fleet.batch)
        body = encoder.encode(fleet.rows[some], fleet.numbers[some]).to_bytes()
        request = Request(f"{address}reports", body, {"Content-Type": "application/octet-stream"}, method="POST")
        with urlopen(request) as answer:
            said = json.load(answer)
        assert not said["refused"], said
    return time.perf_counter() - start


@contextmanager
def from_node(fleet: Fleet, folder: Path, address: str) -> Iterator[subprocess.Popen[str] | None]:
    """All JavaScript devices report, meanwhile."""
    if not fleet.javascript:
        yield None
        return
    people = {"numbers": fleet.numbers[: fleet.javascript].tolist(), "rows": fleet.rows[: fleet.javascript].tolist()}
    (folder / "people.json").write_text(json.dumps(people))
    command = [str(shutil.which("node")), str(Path(__file__).with_suffix(".mjs")), address, str(folder / "people.json")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as node:
        yield node


def run(fleet: Fleet, folder: Path, k: int, epsilon: float) -> dict[str, float]:
    """From the plan to the centres; the figures by name."""
    plan, reports, out = folder / "plan", folder / "reports", folder / "centers.json"
    devices, dimension = fleet.rows.shape
    program(
        "plan",
        "-k",
        k,
        "--epsilon",
        epsilon,
        "--rows",
        devices,
        "--bounds",
        "ball:1",
        "--dimension",
        dimension,
        "--out",
        plan,
    )
    with collector(plan, reports) as address:
        with from_node(fleet, folder, address) as node:
            python = from_python(fleet, plan, address)
            javascript = json.loads(node.communicate()[0]) if node is not None else {}
        with urlopen(f"{address}round") as answer:
            counted = json.load(answer)["reports"]
    assert counted == devices, f"{counted} of {devices} reports are there"
    start = time.perf_counter()
    program("decode", plan, reports, "--out", out)
    seconds, centers, published = time.perf_counter() - start, Result.load(out).centers, read(plan)
    assert published.outlook is not None
    excess, others = fleet.excess(centers), sorted(again(fleet, published, folder))
    size = sum(file.stat().st_size for file in reports.rglob("*.reports"))
    return {
        "forecast": published.outlook.excess,
        "measured": excess,
        "ratio": excess / published.outlook.excess,
        "without the wire: median": others[len(others) // 2],
        "least": others[0],
        "most": others[-1],
        "bytes per report on disk": size / devices,
        "Python: seconds": python,
        "decode: seconds": seconds,
        **{f"JavaScript: {name}": value for name, value in javascript.items()},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--devices", type=int, default=200_000)
    parser.add_argument("--javascript", type=int, default=1_000)
    parser.add_argument("--batch", type=int, default=1_000)
    parser.add_argument("--k", type=int, default=4)
    parser.add_argument("--dimension", type=int, default=10)
    parser.add_argument("--epsilon", type=float, default=2.0)
    parser.add_argument("--runs", type=int, default=1)
    given = parser.parse_args()
    for seed in range(given.runs):
        fleet = Fleet.of(given.devices, given.k, given.dimension, given.javascript, given.batch, seed)
        with tempfile.TemporaryDirectory() as folder:
            for name, value in run(fleet, Path(folder), given.k, given.epsilon).items():
                print(f"{name:28} {value:.6g}")


if __name__ == "__main__":
    main()
