"""What must type-check does, and what must not is found by both checkers, on the lines and for the reasons that are
marked."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

HERE = Path(__file__).parent
FILES = ["good.py", "bad.py"]
MARK = re.compile(r"# E: (?P<mypy>[a-z-]+), (?P<pyright>report\w+)$")

Found = dict[str, dict[int, set[str]]]
"""Error codes per line per file."""


def command(name: str, *arguments: str, folder: Path) -> str:
    program = shutil.which(name, path=str(Path(sys.executable).parent))
    if program is None:
        pytest.skip(f"{name} is not installed")
    done = subprocess.run([program, *arguments], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return done.stdout


def by_mypy(folder: Path) -> Found:
    settings = "--strict --python-version=3.11 --config-file= --hide-error-context --no-pretty"
    python = f"--python-executable={sys.executable}"
    out = command("mypy", *settings.split(), python, *FILES, folder=folder)
    found: Found = {}
    for file, line, code in re.findall(r"^(.+?)\.py:(\d+): error: .*\[([a-z-]+)\]$", out, re.MULTILINE):
        found.setdefault(file, {}).setdefault(int(line), set()).add(code)
    assert len(re.findall(": error: ", out)) >= sum(map(len, found.values())) > 0, out
    return found


def by_pyright(folder: Path) -> Found:
    (folder / "pyrightconfig.json").write_text('{"pythonVersion": "3.11", "typeCheckingMode": "standard"}')
    out = command("basedpyright", "--outputjson", f"--pythonpath={sys.executable}", *FILES, folder=folder)
    found: Found = {}
    for error in json.loads(out)["generalDiagnostics"]:
        if error["severity"] == "error":
            line = int(error["range"]["start"]["line"]) + 1
            found.setdefault(Path(error["file"]).stem, {}).setdefault(line, set()).add(error["rule"])
    return found


CHECKERS: dict[str, Callable[[Path], Found]] = {"mypy": by_mypy, "pyright": by_pyright}


@pytest.mark.thorough
@pytest.mark.parametrize("checker", CHECKERS)
def test_exactly_the_marked_lines_are_found_for_the_marked_reasons(checker: str, tmp_path: Path) -> None:
    """In a copy that no configuration of this repository reaches."""
    for name in [*FILES, "stubs.py"]:
        shutil.copy(HERE / name, tmp_path)
    found = CHECKERS[checker](tmp_path)
    lines = (HERE / "bad.py").read_text().splitlines()
    marked = {number: mark[checker] for number, line in enumerate(lines, 1) if (mark := MARK.search(line))}
    assert len(marked) == sum("# E" in line for line in lines) >= 10
    assert set(found) == {"bad"}, "the other file holds good lines only"
    assert sorted(found["bad"]) == sorted(marked)
    assert {line: code for line, code in marked.items() if code not in found["bad"][line]} == {}
