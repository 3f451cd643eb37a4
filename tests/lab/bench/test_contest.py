"""Benchmarks: the file, the runs, what is recorded, going on, and the report."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cloister.core.errors import Damaged, InvalidInput, UnknownName
from cloister.lab.bench.benchmark import Benchmark, read_benchmark
from cloister.lab.bench.contest import entrants_of, run_benchmark
from cloister.lab.bench.report import BenchSummary, page_of, text_of
from cloister.lab.bench.results import Results
from cloister.metrics import nicv
from tests.lab.bench.small import small

TINY = """epsilons = [0.5, 2]
runs = 2
timeout = 20
[[sets]]
blobs = { rows = 60, columns = 2 }
k = 3
[[sets]]
data = "no_such_set"
k = 2
"""


def benchmark(folder: Path, text: str = TINY) -> Benchmark:
    """The benchmark of a file with this text."""
    (folder / "tiny.toml").write_text(text)
    return read_benchmark(folder / "tiny.toml")


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Benchmark:
    """A benchmark of one set, and one that is not there."""
    monkeypatch.setenv("CLOISTER_DATA", str(tmp_path))
    return benchmark(tmp_path)


def runs(results: Results, name: str) -> list[dict[str, Any]]:
    return [record for record in results.of_kind("run") if record["entrant"] == name]


def test_every_run_is_a_line_with_machine_versions_seed_cost_time_and_memory(tiny: Benchmark, tmp_path: Path) -> None:
    out = tmp_path / "r.jsonl"
    run_benchmark(tiny, [small(tmp_path)], out, audits=False)
    results = Results.read(out)
    (machine,) = results.of_kind("machine")
    assert machine["versions"].keys() >= {"cloister", "Python", "NumPy"}
    lines = runs(results, "small")
    assert [(line["epsilon"], line["run"]) for line in lines] == [(0.5, 0), (2.0, 0), (0.5, 1), (2.0, 1)]
    table = tiny.sets[0].load(tmp_path)
    assert lines[0]["cost"] == pytest.approx(nicv(table.clipped, table.rows[:3]))
    assert len({line["seed"] for line in lines}) == 4
    assert all(line["seconds"] > 0 and line["peak_mb"] > 0 and line["machine"] == machine["id"] for line in lines)
    (skipped,) = (record for record in results.of_kind("set") if "skipped" in record)
    assert skipped["name"] == "no_such_set"
    assert "put it there" in skipped["skipped"]


def test_what_entrants_do_wrong_is_recorded_and_stops_nothing(tiny: Benchmark, tmp_path: Path) -> None:
    wrong = {
        "crashes": "echo the cause >&2; exit 3",
        "hangs": "sleep 60",
        "counts-wrong": 'echo 0,0 > "$BENCH_OUT"',
        "far-away": 'for i in 1 2 3; do echo 1e300,0; done > "$BENCH_OUT"',
    }
    entrants = [small(tmp_path, program, name) for name, program in wrong.items()]
    missing = small(tmp_path, name="needs-more", needs=["no-such-program"])
    short = benchmark(tmp_path, TINY.replace("[0.5, 2]", "1").replace("runs = 2", "runs = 1").replace("= 20", "= 1"))
    results = run_benchmark(short, [*entrants, missing, small(tmp_path)], None, audits=False)
    failures = {name: runs(results, name)[0]["failure"] for name in wrong}
    assert {name: failure["kind"] for name, failure in failures.items()} == {
        "crashes": "crash",
        "hangs": "timeout",
        "counts-wrong": "bad output",
        "far-away": "bad output",
    }
    assert failures["crashes"]["log"] == "the cause"
    assert "cost" not in runs(results, "far-away")[0]
    assert "cost" in runs(results, "small")[0]
    (record,) = (record for record in results.of_kind("entrant") if record["name"] == "needs-more")
    assert record["not_installed"] == "it needs no-such-program, which is not on the PATH"
    assert runs(results, "needs-more") == []


def test_it_goes_on_where_it_was_cut_off_and_takes_in_more(tiny: Benchmark, tmp_path: Path) -> None:
    out, counted = tmp_path / "r.jsonl", f'echo x >> "{tmp_path}/count"\nhead -n 3 "$BENCH_ROWS" > "$BENCH_OUT"\n'
    entrant = small(tmp_path, counted)
    run_benchmark(tiny, [entrant], out, audits=False)
    whole = out.read_bytes()
    with pytest.raises(InvalidInput, match="--resume goes on with them"):
        run_benchmark(tiny, [entrant], out, audits=False)
    out.write_bytes(whole[: whole.rindex(b'"seconds"')])
    results = run_benchmark(tiny, [entrant, small(tmp_path, name="more")], out, resume=True, audits=False)
    assert (tmp_path / "count").read_text().count("x") == 5  # the run that was cut off, again
    assert [len(runs(results, name)) for name in ("small", "more")] == [4, 4]
    assert Results.read(out).records == results.records
    with pytest.raises(InvalidInput, match="of another benchmark"):
        run_benchmark(tiny.shortened(), [entrant], out, resume=True, audits=False)


def test_another_version_of_an_entrant_runs_again_and_replaces_it(tiny: Benchmark, tmp_path: Path) -> None:
    out, entrant = tmp_path / "r.jsonl", small(tmp_path)
    run_benchmark(tiny, [entrant], out, audits=False)
    assert entrant.folder is not None
    (entrant.folder / "run").write_text('#!/bin/sh\nfor i in 1 2 3; do echo 0,0; done > "$BENCH_OUT"\n')
    summary = BenchSummary.of(
        run_benchmark(tiny, entrants_of(tiny, [str(entrant.folder)]), out, resume=True, audits=False)
    )
    (panel,) = summary.panels
    assert {cost for cell in panel.cells for cost in cell.costs} == {panel.baselines["midpoint"]}


def test_files_that_are_no_results_are_refused(tiny: Benchmark, tmp_path: Path) -> None:
    out = tmp_path / "r.jsonl"
    out.write_text("my notes\n")
    with pytest.raises(InvalidInput, match="holds no results"):
        Results.read(out)
    with pytest.raises(InvalidInput, match="is not a file of results"):
        run_benchmark(tiny, [small(tmp_path)], out)
    out.unlink()
    run_benchmark(tiny, entrants_of(tiny, [str(tmp_path / "small")]), out, audits=False)
    out.write_text(out.read_text().replace('"epsilon": 2.0', '"epsilom": 2.0'))
    with pytest.raises(Damaged, match="cannot be read"):
        Results.read(out)


def test_a_set_of_other_rows_does_not_go_on_in_the_same_file(tiny: Benchmark, tmp_path: Path) -> None:
    out, entrant = tmp_path / "r.jsonl", small(tmp_path)
    np.save(tmp_path / "rows.npy", np.eye(3))
    run = benchmark(tmp_path, 'epsilons = 1\n[[sets]]\nfile = "rows.npy"\nk = 2\n')
    run_benchmark(run, [entrant], out, audits=False)
    np.save(tmp_path / "rows.npy", np.eye(4))
    with pytest.raises(InvalidInput, match="the set rows has other rows"):
        run_benchmark(run, [entrant], out, resume=True, audits=False)
    (tmp_path / "rows.npy").unlink()
    assert "skipped" in run_benchmark(run, [entrant], out, resume=True, audits=False).records[-1]


@pytest.mark.parametrize(
    ("old", "new", "error", "said"),
    [
        ("runs = 2", "run = 2", UnknownName, "did you mean runs"),
        ("runs = 2", "runs = 0", InvalidInput, "whole number from 1"),
        ("[0.5, 2]", "[0.5, -2]", InvalidInput, "positive numbers"),
        ("[0.5, 2]", "[]", InvalidInput, "positive numbers"),
        ("timeout = 20", 'delta = "autp"', InvalidInput, "delta is 'autp'"),
        ("timeout = 20", "delta = 1", InvalidInput, "below 1"),
        ('data = "no_such_set"', "", InvalidInput, "no source"),
        ('data = "no_such_set"', 'data = "a"\nfile = "b"', InvalidInput, "data and file"),
        ('data = "no_such_set"', "data = 3", InvalidInput, "a name in quotes"),
        ('data = "no_such_set"', "blobs = { row = 3 }", UnknownName, "did you mean rows"),
        ("k = 2", "k = 0", InvalidInput, "k is 0"),
        ("k = 2", "kk = 2", UnknownName, "no key of a set"),
        ("k = 2", "k = 2\nbounds = [1, -1]", InvalidInput, "no width"),
        ("k = 2", "k = 2\nbounds = 3", InvalidInput, r"write \[-1, 1\]"),
        ('data = "no_such_set"', 'data = "x"\nname = "blobs"', InvalidInput, "two sets named blobs"),
        ("epsilons", "= epsilons", InvalidInput, "no valid TOML"),
    ],
)
def test_a_benchmark_that_is_wrong_says_what_to_write(
    tmp_path: Path, old: str, new: str, error: type[Exception], said: str
) -> None:
    assert old in TINY
    with pytest.raises(error, match=said):
        benchmark(tmp_path, TINY.replace(old, new))


def test_bounds_that_are_given_are_those_of_every_entrant_and_of_the_costs(tmp_path: Path) -> None:
    np.savetxt(tmp_path / "rows.csv", [[0, 50], [10, 0], [20, 100]], delimiter=",", header="a,b", comments="")
    text = 'epsilons = 1\n[[sets]]\nfile = "rows.csv"\nk = 1\nbounds = [[0, 10], [0, 100]]\n'
    table = benchmark(tmp_path, text).sets[0].load(tmp_path)
    assert (table.rows.tolist(), table.read) == ([[0, 50], [10, 0], [20, 100]], False)
    assert table.clipped.tolist() == [[-1, 0], [1, -1], [1, 1]]


def test_two_entrants_of_one_name_and_none_at_all_are_refused(tiny: Benchmark, tmp_path: Path) -> None:
    folder = str(small(tmp_path).folder)
    with pytest.raises(InvalidInput, match="two entrants are named small"):
        entrants_of(tiny, [folder, folder])
    with pytest.raises(InvalidInput, match="no entrant: give --entrant"):
        entrants_of(tiny, [])


def test_the_report_has_tables_plots_and_badges_and_loads_nothing(tiny: Benchmark, tmp_path: Path) -> None:
    evil = small(tmp_path, "exit 3", "evil", title="<script>alert(1)</script>", note="a\u202eb")
    public = {"guarantee": "none", "trust": "none", "relation": "none"}
    results = run_benchmark(tiny, [evil, small(tmp_path, **public)], None)
    summary = BenchSummary.of(results)
    assert {e.name: e.state for e in summary.entrants} == {"evil": "failed", "small": "public"}
    text, page = text_of(summary), page_of(summary)
    for words in (
        "60 rows, 2 columns, k = 3",
        "not private; passed 2 of 6",
        "exit code 3 (4 runs)",
        "skipped: no_such_set",
    ):
        assert words in text, words
    assert page.count("<figure>") == 3
    assert "<script" not in page
    assert "\u202e" not in page
    assert not re.findall(r"(?:src|href)=\"(?!#)", page)
    assert "cloister bench audit" in page
    assert "is not private" in page or "are not private" in page
    plain = json.loads(json.dumps(summary.as_dict()))
    assert plain["private"] is False
    assert {cell["entrant"]: cell["failures"] for cell in plain["cells"]} == {"evil": 2, "small": 0}
