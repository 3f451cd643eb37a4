"""The table of pages and benchmarks, and which figures are older than the code: on a repository made for it."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from cloister.lab.papers.papers import NAMES
from tests.test_benchmark_datasets import BENCHMARKS, script

ROOT = BENCHMARKS.parent
pages = script("pages")
TABLE = {"docs/a.md": {"measures": ["src/a"]}}


CODE = "".join(f"line {i}\n" for i in range(40))
COMMITS: tuple[tuple[dict[str, str | None], list[str]], ...] = (
    ({"docs/a.md": "| 1.0 | 2 |\n", "src/a/x.py": CODE, "src/b.py": "b"}, []),
    ({"docs/a.md": "| 1.0 | 2 |\nmore words\n", "src/a/x.py": None, "src/a/moved.py": CODE, "src/b.py": "c"}, []),
    ({"src/a/moved.py": CODE.upper()}, ["docs/a.md: 2"]),
    ({"docs/a.md": "other words\n| 1.0 | 2 |\n"}, ["docs/a.md: 2"]),
    ({"docs/a.md": "other words\n| 1.1 | 2 |\n"}, []),
)
"""Files that are written (None: removed), and the pages whose tables are then older than a commit: a file that moved is
no change."""


def test_figures_are_older_than_code_that_changed_after_their_table(tmp_path: Path) -> None:
    git = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@b"]
    for i, (files, older) in enumerate(COMMITS):
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.unlink() if text is None else path.write_text(text)
        for command in (["init", "-q"], ["add", "-A"], ["commit", "-qm", str(i)]):
            subprocess.run([*git, *command], check=True)
        found = list(pages.stale(tmp_path, TABLE))
        assert [f"{page}: {', '.join(said.split(' ', 2)[2] for said in later)}" for page, _, later in found] == older


def test_every_page_that_names_a_benchmark_is_made_by_one_command() -> None:
    """With all benchmarks that it names; and scripts and code are where the table says."""
    for path in (ROOT / "docs").rglob("*.md"):
        page = str(path.relative_to(ROOT))
        scripts = set(re.findall(r"benchmarks/(\w+\.py)", path.read_text("utf-8")))
        papers = set(re.findall(r"`cloister reproduce ([\w-]+)`", path.read_text("utf-8"))) - {"all"}
        facts = {"run": (), "reproduce": (), "measures": (), **pages.PAGES.get(page, {})}
        made = {command.partition(" ")[0] for command in facts["run"]}
        assert scripts <= made, page
        assert papers <= set(facts["reproduce"]) <= set(NAMES), page
        assert scripts or papers or page not in pages.PAGES, page
        there = [*(BENCHMARKS / script for script in made), *(ROOT / code for code in facts["measures"])]
        assert all(path.exists() for path in there), page
