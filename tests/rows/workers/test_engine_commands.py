"""Engines as a user names them: on the command line, and in a script."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests.in_process import cloister, program
from tests.rows.workers.engine_rows import NAMES

FIT = (
    "fit",
    "part-*.parquet",
    "-k",
    "2",
    "--epsilon",
    "1",
    "--bounds=-1:1",
    "--rows",
    "4000",
    "--seed",
    "1",
    "--columns",
    "x,y",
    "--method",
    "lloyd",
    "--not-private",
    "--json",
    "--zoom",
    "off",
)

pytestmark = pytest.mark.thorough


def test_the_command_line_runs_every_engine(many: list[Path], tmp_path: Path) -> None:
    found = [
        program(*FIT, *given, folder=tmp_path)
        for given in ((), *(("--engine", name, "--workers", "2") for name in NAMES))
    ]
    assert [(done.returncode, done.stderr) for done in found] == [(0, "columns used: x, y\n")] * 3
    assert found[0].stdout == found[1].stdout == found[2].stdout


def test_the_command_line_says_what_is_wrong_in_one_line(many: list[Path], tmp_path: Path) -> None:
    (tmp_path / "o.toml").write_text('engine = "processes"\nworkers = "many"\n')
    many[2].write_bytes(many[2].read_bytes()[:-200])
    for given, message in (
        (("--engine", "dusk"), "cloister: no engine 'dusk': did you mean dask?"),
        (("--config", "o.toml"), "cloister: workers is 'many', which is not a number"),
        (("--workers", "2"), "cloister: engine 'serial' has no workers: choose engine 'processes' or 'dask'"),
        (
            ("--engine", "processes"),
            "cloister: 'part-02.parquet' cannot be read: it is damaged, cut short, or not what its",
        ),
    ):
        done = cloister(*FIT, *given, folder=tmp_path)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith(message)
        assert done.stderr.count("\n") == 1


def test_a_script_without_a_guard_is_told_so(many: list[Path], tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        textwrap.dedent(
            """
            from cloister.core.errors import InvalidInput
            from cloister.plugins.populations.files import Files
            try:
                Files("part-*.parquet", "*", engine="processes", workers=1).check()
            except InvalidInput as error:
                print(error)
            """
        )
    )
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, cwd=tmp_path, check=False, timeout=60
    )
    assert done.returncode == 0
    assert "a script that starts workers does so under if __name__ == '__main__'" in done.stdout
