"""Runs of entrants: what they get, and whatever they do wrong."""

from __future__ import annotations

import re
import time
from pathlib import Path

import numpy as np
import pytest

from cloister.lab.bench.entrants import entrant_of
from cloister.lab.bench.installing import install
from cloister.lab.bench.statement import composed
from tests.lab.bench.small import FIRST_ROWS, ROWS, answer, answered, failed, small


def test_a_run_gives_centres_time_and_memory(tmp_path: Path) -> None:
    outcome = answer(answered(small(tmp_path), tmp_path))
    np.testing.assert_array_equal(outcome.centers, ROWS[None, :3])  # every bit of a row goes through CSV and back
    assert 0 < outcome.seconds < 30
    assert 0.2 < outcome.peak_mb < 30, "a shell's memory, and not that of this process"


def test_a_program_gets_its_task_and_no_secret_of_the_caller(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_TOKEN", "secret")
    tells = f'env | sort > "{tmp_path}/told"; cat "$BENCH_BOUNDS" >> "{tmp_path}/told"\n'
    answer(answered(small(tmp_path, tells + FIRST_ROWS), tmp_path, epsilon=0.5, delta=1e-6, n=31))
    told = (tmp_path / "told").read_text()
    for line in (
        "BENCH_K=3",
        "BENCH_EPSILON=0.5",
        "BENCH_DELTA=1e-06",
        "BENCH_N=31",
        "BENCH_SEED=7",
        "BENCH_COLUMNS=2",
    ):
        assert f"{line}\n" in told
    assert told.endswith("-1.0,1.0\n-1.0,1.0\n")
    assert "secret" not in told
    assert "HOME=/root" not in told


def test_paths_with_spaces_and_signs_of_the_shell_are_only_paths(tmp_path: Path) -> None:
    place = tmp_path / "a $(touch hacked); 'b"
    place.mkdir()
    answer(answered(small(place), place))
    assert not list(tmp_path.rglob("hacked*"))


@pytest.mark.parametrize(
    ("program", "kind", "said"),
    [
        ("echo broken >&2; exit 3", "crash", "it ended with exit code 3"),
        ("kill -SEGV $$", "crash", "it was ended by SIGSEGV"),
        ("true", "bad output", r"it wrote no file \$BENCH_OUT"),
        ('echo 0,0 > "$BENCH_OUT"', "bad output", "1 centres, not 3"),
        ('printf "0,0\\nnan,0\\n0,0\\n" > "$BENCH_OUT"', "bad output", "not finite"),
        ('ln -s /etc/passwd "$BENCH_OUT"', "bad output", "cannot be read"),
        (
            'head -n 3 "$BENCH_ROWS" > "$BENCH_OUT"; echo "{" > "$BENCH_STATEMENT"',
            "bad output",
            "statement is no valid",
        ),
        (
            'echo 0,0 >> "$BENCH_ROWS"; head -n 3 "$BENCH_ROWS" > "$BENCH_OUT"',
            "bad output",
            "changed the files of rows",
        ),
        ('rm "$BENCH_ROWS"', "bad output", "changed the files of rows"),
        ("#!/no/such/interpreter\n", "crash", "could not be started: No such file"),
    ],
)
def test_whatever_a_program_does_wrong_is_a_failure_with_a_reason(
    tmp_path: Path, program: str, kind: str, said: str
) -> None:
    failure = failed(answered(small(tmp_path, program), tmp_path))
    assert failure.kind == kind
    assert re.search(said, failure.reason), failure


def test_the_end_of_what_it_printed_is_kept(tmp_path: Path) -> None:
    failure = failed(answered(small(tmp_path, "seq 100000; echo the cause >&2; exit 1"), tmp_path))
    assert failure.log.endswith("the cause")
    assert len(failure.log) <= 2000


def test_a_program_that_does_not_end_is_killed_with_all_that_it_started(tmp_path: Path) -> None:
    started = time.monotonic()
    program = f'(sleep 3; touch "{tmp_path}/alive") & sleep 60'
    failure = failed(answered(small(tmp_path, program), tmp_path, timeout=1.0))
    assert (failure.kind, failure.reason) == ("timeout", "it ran longer than 1 s and was killed")
    time.sleep(max(0.0, 4 - (time.monotonic() - started)))
    assert not (tmp_path / "alive").exists()


def test_a_method_of_cloister_takes_part_by_name(tmp_path: Path) -> None:
    entrant = entrant_of("hst-means")
    outcome = answer(answered(entrant, install(entrant), repeats=2, delta=1e-6, timeout=120))
    assert outcome.centers.shape == (2, 3, 2)
    assert not np.array_equal(outcome.centers[0], outcome.centers[1])
    assert composed(outcome.statement, 1e-6)[0] <= 1 + 1e-9
