"""``cloister new-plugin``: what it writes passes the kit, and what it cannot write is not begun."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from cloister.commands import new_plugin
from tests.in_process import ran
from tests.outside import environment

OF_NAMES = "registry or command_line"
"""Some of the kit: what CI runs in full of the examples, whose lines under another name are what is written."""


@pytest.mark.thorough
@pytest.mark.parametrize("checks", [OF_NAMES, pytest.param("", marks=pytest.mark.long)], ids=["some", "all"])
@pytest.mark.parametrize("role", new_plugin.EXAMPLES)
def test_what_it_writes_passes_the_kit_and_is_listed(role: str, checks: str, tmp_path: Path) -> None:
    done = ran(f"new-plugin my-own-2 --role {role}", tmp_path)
    package = tmp_path / "cloister-my-own-2"
    assert f"edit src/cloister_my_own_2/{role}.py" in done.stdout
    python, around = [sys.executable, "-m"], environment(package)
    kit = subprocess.run(
        [*python, "pytest", "-q", "-k", checks], cwd=package, env=around, capture_output=True, text=True, check=False
    )
    assert kit.returncode == 0, kit.stdout
    listed = subprocess.run(
        [*python, "cloister.cli", "plugins"], env=around, capture_output=True, text=True, check=True
    )
    assert listed.stdout.splitlines()[1:] == ["my-own-2 (cloister-my-own-2 0.1.0): 1 components"]


@pytest.mark.parametrize("role", new_plugin.EXAMPLES)
def test_nothing_of_the_examples_name_is_left(role: str, tmp_path: Path) -> None:
    ran(f"new-plugin mine --role {role} --out deep/down", tmp_path)
    files = [path for path in (tmp_path / "deep" / "down").rglob("*") if path.is_file()]
    assert len(files) == 6
    for spelling in new_plugin.spellings(new_plugin.EXAMPLES[role]):
        assert not [path for path in files if spelling in f"{path}{path.read_text()}"]
