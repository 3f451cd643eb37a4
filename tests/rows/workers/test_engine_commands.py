"""Engines as a user names them: on the command line, and in a script."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests.in_process import program
from tests.rows.workers.engine_rows import NAMES

OPTIONS = (
    "-k 2 --epsilon 1 --bounds=-1:1 --rows 4000 --seed 1 --columns x,y --method lloyd --not-private --json --zoom off"
)
FIT = "fit", "part-*.parquet", *OPTIONS.split()

pytestmark = pytest.mark.thorough


def test_the_command_line_runs_every_engine(many: list[Path], tmp_path: Path) -> None:
    found = [
        program(*FIT, *given, folder=tmp_path)
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
    told = "no worker could be started: a script that starts workers does so under if __name__ == '__main__'\n"
    assert (done.returncode, done.stdout, done.stderr) == (0, told, "")
