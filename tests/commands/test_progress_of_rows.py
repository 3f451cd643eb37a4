"""What a terminal shows while a command reads rows: signs of life, and never how many rows there are."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from cloister.commands.option_groups import GROUPS
from tests.in_process import cloister

ROWS, PUBLIC = 12_347, 10_000
"""The true number of rows, which no terminal may show, and the public one."""

NONE_READ = {"explain": "reads the names of columns", "plan": "needs no rows", "join": "shows steps of the protocol"}
"""Commands that take options of rows and have no progress of rows, with the reason."""

LINES = {
    "fit": f"fit rows.npy -k 2 --epsilon 1 --delta 1e-8 --bounds=-1:1 --rows {PUBLIC}",
    "drift": f"drift result.json rows.npy --epsilon 1 --rows {PUBLIC}",
    "evaluate": "evaluate result.json rows.npy --no-reference",
    "predict": "predict result.json rows.npy --out labels.npy",
    "profile": "profile result.json --rows rows.npy",
    "encode": "encode plan rows.npy --out encoded",
    "answer": "answer plan rows.npy --out reports --state state.db",
    "compare": f"compare rows.npy -k 2 --epsilon 1 --bounds=-1:1 --rows {PUBLIC} --methods su-lloyd --runs 1",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("rows")
    np.save(made / "rows.npy", np.random.default_rng(0).uniform(-1, 1, (ROWS, 2)))
    plan = f"plan -k 2 --epsilon 4 --bounds=-1:1 --dimension 2 --trust local --rows {2 * PUBLIC} --out {made / 'plan'}"
    assert cloister(*plan.split()).returncode == 0
    fit = LINES["fit"].replace("rows.npy", str(made / "rows.npy"))
    assert cloister(*fit.split(), "--out", str(made / "result.json")).returncode == 0
    return made


def on_terminal(line: str, folder: Path) -> str:
    """What a terminal shows of stderr while a command runs that must succeed; stdout goes elsewhere."""
    screen, end = pty.openpty()
    command = [sys.executable, "-m", "cloister", *line.split()]
    with subprocess.Popen(command, cwd=folder, stdin=end, stdout=subprocess.DEVNULL, stderr=end) as running:
        os.close(end)
        shown = b""
        while True:
            try:
                more = os.read(screen, 2**16)
            except OSError:  # the program has ended, and nobody else writes there
                break
            if not more:
                break
            shown += more
    os.close(screen)
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown.decode())
    assert running.returncode == 0, text
    return text


def test_every_command_that_takes_options_of_rows_is_tried() -> None:
    reading = {name for name, groups in GROUPS.items() if "reading" in groups}
    assert reading == set(LINES) | set(NONE_READ)


@pytest.mark.thorough
@pytest.mark.parametrize("name", LINES)
def test_a_terminal_shows_signs_of_life_and_not_how_many_rows_there_are(name: str, folder: Path) -> None:
    text = on_terminal(LINES[name], folder)
    assert ("runs" if name == "compare" else "read") in text or "round" in text, text
    numbers = {int(number.replace(",", "")) for number in re.findall(r"\d[\d,]*", text)}
    assert not {number for number in numbers if number > 1000} - {PUBLIC, 2 * PUBLIC}, text
