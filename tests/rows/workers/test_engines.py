"""Engines: the same answer wherever parts are worked on, or one line that says why there is none."""

from __future__ import annotations

import os
import socketserver
import subprocess
import sys
import textwrap
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cloister.core.errors import InvalidInput, MissingExtra
from cloister.core.registry.registry import registry
from cloister.federated.transport.certificates import make_test_certificates
from cloister.plugins.populations.files import Files
from cloister.rows.files import sources
from cloister.rows.options import Reading
from cloister.rows.workers.dask_cluster import Dask
from cloister.rows.workers.engine import Engine, Processes, engine_of
from cloister.run.fit import source
from tests.in_process import program
from tests.rows.workers.engine_rows import NAMES, Halves, NotForTravel, answers, some_rows, write

pytestmark = pytest.mark.thorough


class Pages(socketserver.BaseRequestHandler):
    """What a web server says to those who do not speak its language."""

    def handle(self) -> None:
        self.request.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n" + b" " * 64)
        self.request.recv(1)


@pytest.mark.parametrize("name", NAMES)
def test_every_engine_gives_the_answers_of_one_process(
    name: str, shared: dict[str, Engine], paths: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "STRETCH", 250)  # three parts of the first file
    expected = answers(Files(paths, Reading(columns="*", missing="drop")))
    population = Files(paths, Reading(columns="*", missing="drop"), engine=shared[name])
    assert answers(population) == expected, "before a check: files that do not say how many rows they have are counted"
    population.check()
    assert answers(population) == answers(population) == expected
    people = population.people
    assert (
        people
        == Files(paths, Reading(columns="*", missing="drop"), engine=shared[name]).people
        == len(population.table())
        == 1078
    )


@pytest.mark.parametrize("oracle", ["optimised-unary", "hadamard-response"])
def test_a_simulated_user_reports_the_same_wherever_her_row_is_read(
    oracle: str, shared: dict[str, Engine], paths: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Users are numbered by position, over all files, also by those of unknown length."""
    monkeypatch.setattr(sources, "STRETCH", 250)
    counts = registry().load(registry().spec("FrequencyOracle", oracle))()
    found = [
        answers(Files(paths, Reading(columns="*"), engine=shared[name]), Halves(1), counts)
        for name in ("serial", *NAMES)
    ]
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("name", NAMES)
def test_progress_is_told_about_every_row_as_parts_finish_and_no_rows_are_an_answer_but_no_run(
    name: str, shared: dict[str, Engine], many: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A large file is several parts."""
    monkeypatch.setattr(sources, "STRETCH", 250)
    told: list[int] = []
    paths = [*many, write(tmp_path / "large.parquet", some_rows(730))]
    population = Files(paths, Reading(columns="*", progress=told.append), engine=shared[name])
    population.check()
    assert not told
    answers(population)
    assert sorted(told) == [130] + [300] * 14
    empty = [write(tmp_path / name, some_rows(0)) for name in ("a.parquet", "b.csv", "c.feather")]
    population = Files(empty, Reading(columns="*"), engine=shared[name])
    assert not any(map(any, answers(population)))
    with pytest.raises(InvalidInput, match="there are no rows to use"):
        population.check()


# Engines by name.


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("proceses",), "no engine 'proceses': did you mean processes"),
        (("spark",), "no engine 'spark': choose from: dask, processes, serial"),
        (("serial", 2), "engine 'serial' has no workers"),
        (("processes", 0), "workers is 0: it must be between 1 and 1024"),
        (("processes", 2000), "workers is 2000"),
        (("processes", None, "tcp://1:2"), "a scheduler goes with engine 'dask', not 'processes'"),
        (("dask", 2, "tcp://1:2"), "give workers or scheduler, not both"),
    ],
)
def test_engines_that_make_no_sense_are_refused(arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        engine_of(*arguments)


def test_rows_in_memory_need_no_engine_and_workers_no_threads(many: list[Path]) -> None:
    for options in ({"engine": "dask"}, {"engine": "processes", "workers": 2}, {"scheduler": "tcp://1:2"}):
        with pytest.raises(InvalidInput, match=r"these rows are in memory: leave out (engine|scheduler)"):
            source(some_rows(5), **options)
    with pytest.raises(InvalidInput, match="threads go with engine 'serial'"):
        source(str(many[0]), columns="*", engine="processes", threads=2)


def test_dask_that_is_not_installed_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "cloister.rows.workers.dask_cluster")
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(MissingExtra, match=r"engine 'dask' needs distributed: pip install '.*\[dask\]'"):
        engine_of("dask")


def _threads(part: int) -> str | None:
    return os.environ.get("OPENBLAS_NUM_THREADS")


def test_workers_do_linear_algebra_on_one_core_each(monkeypatch: pytest.MonkeyPatch) -> None:
    for own, seen in ((None, "1"), ("3", "3")):
        if own is None:
            monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
        else:
            monkeypatch.setenv("OPENBLAS_NUM_THREADS", own)
        engine = engine_of("processes", 1)
        assert list(engine.run(_threads, [0])) == [seen]
        engine.close()
        assert os.environ.get("OPENBLAS_NUM_THREADS") == own


def test_no_worker_outlives_its_engine() -> None:
    engine = Processes(3)
    assert sorted(engine.run(abs, range(-9, 0))) == list(range(1, 10))
    pids = engine.pids
    assert 1 <= len(pids) <= 3
    engine.close()
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_a_component_that_does_not_pickle_is_refused_in_one_line(shared: dict[str, Engine], many: list[Path]) -> None:
    for name in NAMES:
        with pytest.raises(InvalidInput, match=r"cannot be sent to workers: cannot pickle this. Use engine 'serial'"):
            answers(Files(many, Reading(columns="*"), engine=shared[name]), NotForTravel())
    assert answers(Files(many, Reading(columns="*")), NotForTravel())


@pytest.fixture
def cluster(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    """A scheduler with a worker. Args: its protocol, in clear or with keys that Dask is told of."""
    import dask.config
    import distributed

    make_test_certificates(tmp_path / "keys", ("north",))
    tls = {
        "distributed.comm.tls.ca-file": str(tmp_path / "keys" / "ca.pem"),
        "distributed.comm.require-encryption": request.param == "tls",
    }
    for who in ("scheduler", "worker", "client"):
        tls[f"distributed.comm.tls.{who}.cert"] = str(tmp_path / "keys" / "north.pem")
        tls[f"distributed.comm.tls.{who}.key"] = str(tmp_path / "keys" / "north.key")
    own = {"n_workers": 1, "threads_per_worker": 1, "processes": False, "dashboard_address": "127.0.0.1:0"}
    with dask.config.set(tls), distributed.LocalCluster(protocol=f"{request.param}://", **own) as started:
        yield started


@pytest.mark.parametrize("cluster", ["tcp", "tls"], indirect=True)
def test_a_running_scheduler_is_used_and_left_running(
    many: list[Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, cluster: Any
) -> None:
    expected, address = answers(Files(many, Reading(columns="*"))), cluster.scheduler_address
    monkeypatch.chdir(tmp_path)
    for _ in range(2):
        with Files("part-*.parquet", Reading(columns="*", engine="dask", scheduler=address)) as population:
            assert answers(population) == expected
    cluster.scale(0)
    monkeypatch.setattr("cloister.rows.workers.dask_cluster.PATIENCE", 1)
    with pytest.raises(InvalidInput, match=f"the Dask scheduler at '{address}' has no workers"):
        answers(Files(many, Reading(columns="*", engine="dask", scheduler=address)))


@pytest.mark.parametrize(
    ("address", "clear"),
    [
        ("tcp://10.0.0.5:8786", True),
        ("scheduler.example:8786", True),
        ("tcp://[2001:db8::1]:8786", True),
        ("tls://10.0.0.5:8786", False),
        ("tcp://127.0.0.1:8786", False),
        ("tcp://[::1]:8786", False),
        ("localhost:8786", False),
    ],
)
def test_a_scheduler_on_another_machine_without_tls_is_warned_of(
    address: str, clear: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Dask, "_connected", lambda engine, address: address)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        assert Dask(0, address).client() == address
    words = [str(warning.message) for warning in told]
    assert len(words) == clear
    assert all(f"the Dask cluster at '{address}'" in text and "tls://" in text for text in words)


def test_a_scheduler_that_does_not_answer_or_is_another_service_is_named(
    many: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cloister.rows.workers.dask_cluster.GREETING", 2)
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Pages) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        web = f"tcp://127.0.0.1:{server.server_address[1]}"
        for address in (web, "tcp://127.0.0.1:9", "nonsense://x", "127.0.0.1:notaport"):
            with pytest.raises(InvalidInput, match=f"no Dask scheduler answers at '{address}'"):
                answers(Files(many, Reading(columns="*", engine="dask", scheduler=address)))
        server.shutdown()


# engines as a user names them


OPTIONS = (
    "-k 2 --epsilon 1 --bounds=-1:1 --rows 4000 --seed 1 --columns x,y --method lloyd --not-private --json --zoom off"
)


def test_the_command_line_runs_every_engine(many: list[Path], tmp_path: Path) -> None:
    found = [
        program("fit", "part-*.parquet", *OPTIONS.split(), *given, folder=tmp_path)
        for given in ((), *(("--engine", name, "--workers", "2") for name in NAMES))
    ]
    said = [(done.returncode, done.stderr.splitlines()[-1]) for done in found]  # a slow one says before that it reads
    assert said == [(0, "columns used: x, y")] * 3
    assert found[0].stdout == found[1].stdout == found[2].stdout


def test_a_script_without_a_guard_is_told_so(many: list[Path], tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        textwrap.dedent(
            """
            from cloister.core.errors import InvalidInput
            from cloister.plugins.populations.files import Files
            from cloister.rows.options import Reading
            try:
                Files("part-*.parquet", Reading(columns="*", engine="processes", workers=1)).check()
            except InvalidInput as error:
                print(error)
            """
        )
    )
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, cwd=tmp_path, check=False, timeout=60
    )
    told = "no worker could be started: a script that starts workers does so under if __name__ == '__main__'\n"
    assert (done.returncode, done.stdout, done.stderr) == (0, told, "")
