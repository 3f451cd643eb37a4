"""Tests that run on a tree of their own in a process that starts in no time.

A parent has imported what is heavy and belongs to others (``HEAVY``), and nothing of cloister; each run of pytest is a
fork of it, with the tree in front of ``sys.path``, and of ``PYTHONPATH`` for the processes that tests start.
"""

from __future__ import annotations

import gc
import importlib
import json
import multiprocessing
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import attrs
import pytest
from hypothesis import Phase, settings

ROOT = Path(__file__).parents[2]
HEAVY = (
    "pytest",
    "hypothesis.extra.numpy",
    "attrs",
    "numpy",
    "scipy.optimize",
    "scipy.sparse",
    "scipy.special",
    "scipy.stats",
    "pandas",
    "pyarrow.csv",
    "pyarrow.dataset",
    "pyarrow.feather",
    "pyarrow.parquet",
    "sklearn.cluster",
    "sklearn.datasets",
    "sklearn.ensemble",
    "sklearn.metrics",
    "sklearn.model_selection",
    "sklearn.utils.estimator_checks",
    "typer",
    "rich.console",
    "ibis",
    "duckdb",
    "cryptography.hazmat.primitives.asymmetric.ed25519",
    "cryptography.hazmat.primitives.asymmetric.x25519",
    "cryptography.hazmat.primitives.ciphers.aead",
    "cryptography.x509",
    "starlette.applications",
    "matplotlib.figure",
    "matplotlib.backends.backend_agg",
)
"""What a fork has already. What is not installed is passed over. Neither gRPC nor Polars, whose threads no fork has."""

TREE = ("src", "clients", "examples")


@attrs.frozen
class Outcome:
    """A run of pytest. Attributes: code (its exit code; None: it took longer than its limit), tests (how each test
    ended, by its node id: passed, failed or skipped), said (what it printed)."""

    code: int | None
    tests: dict[str, str]
    said: str


def run(
    tree: Path, tests: Sequence[str], limit: float, scratch: Path, *options: str, compiled: bool = False
) -> Outcome:
    """Pytest on the tests of this checkout, with the ``src`` of a tree. Args: limit (seconds, of a machine that does
    little else), scratch (an empty folder), options (of pytest), compiled (keep
    compiled what is imported, which the next runs need not do)."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(list(HEAVY))
    process = context.Process(target=_pytest, args=(str(tree), [*options, *tests], str(scratch), compiled))
    process.start()
    process.join(limit * (1 + os.getloadavg()[0] / (os.cpu_count() or 1)))  # a loaded machine takes longer
    code = process.exitcode
    process.kill()
    with suppress(ProcessLookupError):
        os.killpg(process.pid or 0, signal.SIGKILL)  # those that it started, and left
    process.join()
    said, outcomes = scratch / "said", scratch / "outcomes"
    return Outcome(
        code,
        dict(json.loads(line) for line in outcomes.read_text().splitlines()) if outcomes.exists() else {},
        said.read_text(errors="replace") if said.exists() else "",
    )


def _pytest(tree: str, arguments: list[str], scratch: str, compiled: bool) -> None:
    """The fork: its own session and folder, what it prints in a file."""
    os.setsid()
    with open(f"{scratch}/said", "wb") as said:
        os.dup2(said.fileno(), 1)
        os.dup2(said.fileno(), 2)
    assert not any(name.partition(".")[0] == "cloister" for name in sys.modules)
    os.environ["PYTHONPATH"] = source = f"{tree}/src"
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"  # or else a fault would outlive its turn
    os.environ["CLOISTER_PATIENCE"] = "30"  # a test that waits for what a fault prevents ends within its minute
    sys.dont_write_bytecode = not compiled
    sys.path.insert(0, source)
    os.chdir(ROOT)
    importlib.invalidate_caches()
    gc.freeze()
    fixed = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-m", "thorough or not thorough"]
    fixed += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]  # plugins of pytest are among what is imported
    code = pytest.main(
        [*fixed, f"--basetemp={scratch}/temporary", *arguments], plugins=[_Outcomes(f"{scratch}/outcomes")]
    )
    sys.stdout.flush()
    os._exit(int(code))


class _Outcomes:
    """A plugin of pytest that writes down how each test ends, and shrinks no example: that a test fails is enough."""

    def __init__(self, path: str) -> None:
        self.path = path

    @pytest.hookimpl(trylast=True)
    def pytest_configure(self) -> None:
        settings.register_profile("unshrunk", settings.default, phases=(Phase.explicit, Phase.reuse, Phase.generate))
        settings.load_profile("unshrunk")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" or not report.passed:
            with open(self.path, "a") as file:
                file.write(json.dumps([report.nodeid, report.outcome]) + "\n")
