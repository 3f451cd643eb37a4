"""The page on benchmarks says what is there."""

from __future__ import annotations

import re
from pathlib import Path

from cloister.lab import bench
from cloister.lab.bench.audit.auditing import NAMES
from cloister.lab.bench.entrants import shipped_folder, shipped_names
from cloister.lab.bench.entry import EntrantFacts
from tests.docs.pages import PAGES, blocks

PAGE = "docs/howto/benchmark.md"
TEXT = PAGES[PAGE].read_text("utf-8")


def test_its_program_is_the_entrant_that_comes_with_cloister() -> None:
    files = {block.file: block.text for block in blocks(PAGE) if block.file}
    example = shipped_folder() / "laplace-rows"
    assert files["run.js"] == (example / "run").read_text()
    assert files["entry.toml"].replace("noised-rows", "laplace-rows") == (example / "entry.toml").read_text()


def test_it_names_every_key_every_variable_and_every_check() -> None:
    keys = set(re.findall(r"`(\w+)`", TEXT.partition("## What it is")[2].partition("```")[0]))
    assert keys >= set(EntrantFacts.__annotations__)
    named = set(re.findall(r"BENCH_\w+", TEXT))
    assert named == set(re.findall(r"BENCH_\w+", "".join(path.read_text() for path in SOURCES)))
    table = TEXT.partition("| check | it fails if |")[2].partition("\n\n")[0]
    assert re.findall(r"^\| ([a-z ]+) \|", table, re.MULTILINE) == [*NAMES]


SOURCES = [
    path for path in Path(bench.__file__).parent.glob("*.py") if path.stem in ("environment", "installing", "running")
]


def test_the_list_of_entrants_names_each() -> None:
    listed = re.findall(r"`([\w-]+)`", "".join(re.findall(r"^\| `.*?\|", README, re.MULTILINE)))
    assert sorted(listed) == shipped_names()


README = (shipped_folder() / "README.md").read_text("utf-8")
