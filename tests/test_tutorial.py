"""The pages on plugins, read on: their code is that of the examples, their commands run, what they quote is said."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from cloister.commands.new_plugin import EXAMPLES, examples
from cloister.testing import checks_for
from tests.in_process import cloister
from tests.outside import environment
from tests.testing.zoo import SPECIMENS
from tests.testing.zoo_noise import Clamped, ClampedInSilence

PAGES = (
    "docs/howto/plugins.md",
    "docs/howto/plugins_oracle.md",
    "docs/howto/plugins_method.md",
    "docs/howto/plugins_tree.md",
    "docs/howto/plugins_kit.md",
)
"""In the order in which somebody reads them."""

TEXT = "".join((Path(__file__).parents[1] / page).read_text("utf-8") for page in PAGES)
BLOCKS = re.findall(r"^```(\w+) ?(\S*)\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
WHOLE = {f"{EXAMPLES[role]}/{role}.py" for role in ("oracle", "method", "tree")}
"""Files that the tutorial shows from the first line to the last."""


def shown(example: str, file: str) -> list[str]:
    """An example's lines that are not empty."""
    (path,) = (examples() / f"cloister-{example}").rglob(file)
    return lines(path.read_text("utf-8"))


def lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.strip()]


@pytest.mark.parametrize("name", sorted({name for _, name, _ in BLOCKS if "/" in name} | WHOLE))
def test_blocks_of_code_put_together_are_the_examples(name: str) -> None:
    blocks = [lines(text) for _, of, text in BLOCKS if of == name]
    file = shown(*name.split("/"))
    if name in WHOLE:
        assert [line for block in blocks for line in block] == file
    for block in blocks:
        assert any(file[i : i + len(block)] == block for i in range(len(file))), f"{name} has no such lines: {block}"


def test_every_block_says_where_it_is_from() -> None:
    assert [text for kind, name, text in BLOCKS if kind != "sh" and not name] == []


def python(*arguments: str, folder: Path, around: dict[str, str]) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *arguments]
    return subprocess.run(command, cwd=folder, env=around, capture_output=True, text=True, check=False)


@pytest.mark.thorough
def test_its_commands_run_in_the_order_in_which_they_stand(tmp_path: Path) -> None:
    """As somebody types them, but that nothing is downloaded, and that the kit is left to the tests of
    ``new-plugin``."""
    folder, installed, around = tmp_path, list[Path](), dict(os.environ)
    for line in (line for kind, _, text in BLOCKS if kind == "sh" for line in text.splitlines()):
        program, *arguments = shlex.split(line)
        if program == "cd":
            folder = (folder / arguments[0]).resolve()
        elif line == "pip install -e . pytest":
            installed.append(folder)
            around = environment(*installed)
        elif line != "python -m pytest":
            head = {"cloister": ["-m", "cloister.cli"], "python": []}[program]
            done = python(*head, *arguments, folder=folder, around=around)
            assert done.returncode == 0, f"{line}: {done.stderr}"
    assert len(installed) == 3


def test_the_checks_that_it_explains_are_the_kits() -> None:
    table = TEXT.partition("## What the kit says")[2].partition("## ")[0]
    explained = set(re.findall("`([a-z]+_[a-z_]+)`", "".join(re.findall(r"^\|([^|]+)\|", table, re.MULTILINE))))
    assert len(explained) > 15
    assert explained - {check for _, _, check in SPECIMENS} == {"the_registry_says_what_the_class_is"}


def test_the_checks_that_biased_oracles_are_excused_from_are_those_it_lists() -> None:
    honest, biased = ({check.name for check in checks_for(made)} for made in (ClampedInSilence(), Clamped()))
    table = TEXT.partition("| excused |")[2].partition("\n\n")[0]
    rows = re.findall(r"^\| (`.*?) \| (.*) \|$", table, re.MULTILINE)
    for column, names in enumerate((honest - biased, biased - honest)):
        listed = {name for row in rows for name in re.findall("`([a-z_]+)`", row[column])}
        assert listed == {name.removesuffix("_in_a_large_space") for name in names}


def changed(name: str, role: str, file: str, before: str, after: str, folder: Path) -> Path:
    """A new plugin with a change in one of its files."""
    cloister("new-plugin", name, "--role", role, "--out", "broken", folder=folder)
    (path,) = (folder / "broken").rglob(file)
    path.write_text(path.read_text().replace(before, after))
    return folder / "broken"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('"TreeBuilder"', '"Tree"'),
        ("from cloister.plugin", "import cloister.plugins.trees.hexagons\nfrom cloister.plugin"),
        ('for two columns")', 'for two columns", "Public")'),
        ("tree:HoneycombCells", "tree:Honeycomb"),
    ],
)
def test_broken_plugins_are_reported_as_it_says(before: str, after: str, tmp_path: Path) -> None:
    (said,) = (text.splitlines() for _, name, text in BLOCKS if name == "broken")
    package = changed("honeycomb-cells", "tree", "manifest.py", before, after, tmp_path)
    done = python("-m", "cloister.cli", "plugins", folder=tmp_path, around=environment(package))
    broken = [line for line in done.stdout.splitlines() if "BROKEN" in line]
    assert len(broken) == 1
    assert broken[0] in said


@pytest.mark.thorough
def test_too_little_noise_is_found_as_it_says(tmp_path: Path) -> None:
    (said,) = (text.strip() for _, name, text in BLOCKS if name == "too-little-noise")
    change = "sensitivity.l1 / 2 / budget.epsilon"
    assert f"`{change}`" in TEXT
    package = changed("rounded-counts", "oracle", "oracle.py", change.replace("/ 2 ", ""), change, tmp_path)
    asked = ["-m", "pytest", "-q", "-k", "RoundedCounts-neighbours_are_hard_to_tell_apart"]
    assert said in python(*asked, folder=package, around=environment(package)).stdout
