"""``cloister new-plugin``: what it writes passes the kit, and what it cannot write is not begun."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

from cloister.commands import new_plugin
from tests.in_process import ran
from tests.outside import environment

OF_NAMES = "registry or command_line"
"""Some of the kit: what CI runs in full of the examples, whose lines under another name are what is written."""


@pytest.mark.thorough
@pytest.mark.parametrize("role", new_plugin.EXAMPLES)
def test_what_it_writes_passes_the_kit_is_listed_and_runs(role: str, tmp_path: Path) -> None:
    done = ran(f"new-plugin my-own-2 --role {role}", tmp_path)
    package = tmp_path / "cloister-my-own-2"
    assert f"edit src/cloister_my_own_2/{role}.py" in done.stdout
    assert tomllib.loads((package / "pyproject.toml").read_text())["project"]["dependencies"] == ["cloister"]

    def python(folder: Path, *words: str) -> str:
        command, around = [sys.executable, "-m", *words], environment(package)
        done = subprocess.run(command, cwd=folder, env=around, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    python(package, "pytest", "-q", "-k", OF_NAMES)
    listed = python(tmp_path, "cloister.cli", "plugins")
    assert listed.splitlines()[1:] == ["my-own-2 (cloister-my-own-2 0.1.0): 1 components"]
    np.save(tmp_path / "rows.npy", np.random.default_rng(0).uniform(-1, 1, (1000, 2)))
    (line,) = re.findall("^cloister (fit .*)$", (package / "README.md").read_text(), re.MULTILINE)
    python(tmp_path, "cloister.cli", *line.split())


@pytest.mark.parametrize("role", new_plugin.EXAMPLES)
def test_nothing_of_the_examples_name_is_left(role: str, tmp_path: Path) -> None:
    ran(f"new-plugin mine --role {role} --out deep/down", tmp_path)
    files = [path for path in (tmp_path / "deep" / "down").rglob("*") if path.is_file()]
    assert len(files) == 6
    for spelling in new_plugin.spellings(new_plugin.EXAMPLES[role]):
        assert not [path for path in files if spelling in f"{path}{path.read_text()}"]


def test_what_ends_half_way_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*arguments: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "rename", full)
    with pytest.raises(OSError, match="No space left"):
        new_plugin.write({Path("a", "b.py"): "x = 1\n"}, tmp_path / "made")
    assert list(tmp_path.iterdir()) == []
