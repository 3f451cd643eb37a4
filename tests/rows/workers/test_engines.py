"""Engines: the same answer wherever parts are worked on, or one line that says why there is none."""

from __future__ import annotations

import itertools
import os
import pickle
import socketserver
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from cloister.core.errors import InvalidInput, MissingExtra
from cloister.core.registry.registry import registry
from cloister.plugins.populations.files import Files
from cloister.rows.files import sources
from cloister.rows.workers import machine
from cloister.rows.workers.engine import Engine, Processes, engine_of
from cloister.rows.workers.machine import Failure, attempt, packed, settled
from cloister.run.fit import source
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
    expected = answers(Files(paths, "*", missing="drop"))
    population = Files(paths, "*", missing="drop", engine=shared[name])
    assert answers(population) == expected, "before a check: files that do not say how many rows they have are counted"
    population.check()
    assert answers(population) == answers(population) == expected
    assert population.people == Files(paths, "*", missing="drop", engine=shared[name]).people == 1078


@pytest.mark.parametrize("oracle", ["optimised-unary", "hadamard-response"])
def test_a_simulated_user_reports_the_same_wherever_her_row_is_read(
    oracle: str, shared: dict[str, Engine], paths: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Users are numbered by position, over all files, also by those of unknown length."""
    monkeypatch.setattr(sources, "STRETCH", 250)
    counts = registry().load(registry().spec("FrequencyOracle", oracle))()
    expected = answers(Files(paths, "*"), Halves(1), counts)
    for name in NAMES:
        assert answers(Files(paths, "*", engine=shared[name]), Halves(1), counts) == expected, name


class Disorderly:
    """An engine that takes parts in any order, and puts them through what travel does to them."""

    apart, elsewhere = True, False

    def __init__(self, seed: int) -> None:
        self._order = np.random.default_rng(seed)

    def run(self, fn: Any, parts: Any) -> Iterator[Any]:
        held = list(parts)
        for i in self._order.permutation(len(held)):
            yield pickle.loads(pickle.dumps(settled(attempt(packed(fn), pickle.loads(pickle.dumps(held[i]))))))

    def close(self) -> None:
        pass


@settings(max_examples=25, deadline=None)
@given(
    cuts=st.lists(st.integers(0, 300), max_size=6),
    group=st.integers(1, 80),
    stretch=st.integers(1, 200),
    seed=st.integers(0, 9),
)
def test_any_division_into_parts_in_any_order_gives_the_same_answer(
    cuts: list[int], group: int, stretch: int, seed: int
) -> None:
    rows, bounds = some_rows(300), [0, *sorted(cuts), 300]
    with tempfile.TemporaryDirectory() as folder, patch.object(sources, "STRETCH", stretch):
        whole = Files(write(Path(folder) / "whole.parquet", rows), "*")
        paths = [
            write(Path(folder) / f"{i}.parquet", rows[low:high], group)
            for i, (low, high) in enumerate(itertools.pairwise(bounds))
        ]
        assert answers(Files(paths, "*", engine=Disorderly(seed))) == answers(whole)


@pytest.mark.parametrize("name", NAMES)
def test_progress_is_told_about_every_row_as_parts_finish_and_no_rows_are_an_answer_but_no_run(
    name: str, shared: dict[str, Engine], many: list[Path], tmp_path: Path
) -> None:
    told: list[int] = []
    population = Files(many, "*", engine=shared[name], progress=told.append)
    population.check()
    assert not told
    answers(population)
    assert told == [300] * 12
    empty = [write(tmp_path / name, some_rows(0)) for name in ("a.parquet", "b.csv", "c.feather")]
    population = Files(empty, "*", engine=shared[name])
    assert not any(map(any, answers(population)))
    with pytest.raises(InvalidInput, match="there are no rows to use"):
        population.check()


# Engines by name.


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("spark",), "no engine 'spark': choose from: dask, processes, serial"),
        (("processes", 2000), "workers is 2000: it must be between 1 and 1024"),
        (("processes", None, "tcp://1:2"), "a scheduler goes with engine 'dask', not 'processes'"),
        (("dask", 2, "tcp://1:2"), "give workers or scheduler, not both"),
    ],
)
def test_engines_that_make_no_sense_are_refused(arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        engine_of(*arguments)


def test_rows_in_memory_need_no_engine() -> None:
    with pytest.raises(InvalidInput, match="engine, workers and scheduler apply to files only"):
        source(some_rows(5), None, "refuse", engine="processes", workers=2)


def test_dask_that_is_not_installed_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "cloister.rows.workers.dask_cluster")
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(MissingExtra, match=r"engine 'dask' needs distributed: pip install '.*\[dask\]'"):
        engine_of("dask")


def test_no_worker_outlives_its_engine() -> None:
    engine = Processes(3)
    assert sorted(engine.run(abs, range(-9, 0))) == list(range(1, 10))
    pids = engine.pids
    assert 1 <= len(pids) <= 3
    engine.close()
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_a_script_without_a_guard_is_told_so(many: list[Path], tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "from cloister.core.errors import InvalidInput\n"
        "from cloister.plugins.populations.files import Files\n"
        "try:\n    Files('part-*.parquet', '*', engine='processes', workers=1).check()\n"
        "except InvalidInput as error:\n    print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, cwd=tmp_path, check=True, timeout=60
    )
    assert "a script that starts workers does so under if __name__ == '__main__'" in done.stdout


def test_a_component_that_does_not_pickle_is_refused_in_one_line(shared: dict[str, Engine], many: list[Path]) -> None:
    for name in NAMES:
        with pytest.raises(InvalidInput, match=r"cannot be sent to workers: cannot pickle this. Use engine 'serial'"):
            answers(Files(many, "*", engine=shared[name]), NotForTravel())
    assert answers(Files(many, "*"), NotForTravel())


def test_a_worker_of_another_version_refuses() -> None:
    work = pickle.dumps(("0.0.1", len))
    assert attempt(work, []) == Failure(
        f"a worker runs cloister {machine.own_version()}, this process 0.0.1: install the same version there"
    )
    assert attempt(packed(len), [1, 2]) == 2
    lacking = packed(len).replace(b"builtins", b"nowhere_")
    assert attempt(lacking, []).text.startswith("a worker lacks what this run needs (No module named 'nowhere_')")


def test_a_running_scheduler_is_used_and_left_running(
    many: list[Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    import distributed

    expected = answers(Files(many, "*"))
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, processes=False, protocol="tcp://", dashboard_address="127.0.0.1:0"
    ) as cluster:
        address = cluster.scheduler_address
        monkeypatch.chdir(tmp_path)
        for _ in range(2):
            with Files("part-*.parquet", "*", engine="dask", scheduler=address) as population:
                assert answers(population) == expected
        cluster.scale(0)
        monkeypatch.setattr("cloister.rows.workers.dask_cluster.PATIENCE", 1)
        with pytest.raises(InvalidInput, match=f"the Dask scheduler at '{address}' has no workers"):
            answers(Files(many, "*", engine="dask", scheduler=address))


def test_a_scheduler_that_does_not_answer_or_is_another_service_is_named(
    many: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cloister.rows.workers.dask_cluster.GREETING", 2)
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Pages) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        web = f"tcp://127.0.0.1:{server.server_address[1]}"
        for address in (web, "tcp://127.0.0.1:9", "nonsense://x", "127.0.0.1:notaport"):
            with pytest.raises(InvalidInput, match=f"no Dask scheduler answers at '{address}'"):
                answers(Files(many, "*", engine="dask", scheduler=address))
        server.shutdown()
