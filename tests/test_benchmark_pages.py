"""The table of pages and benchmarks, and which figures are older than the code: on a repository made for it."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.test_benchmark_datasets import BENCHMARKS, script

ROOT = BENCHMARKS.parent
pages = script("pages")
TABLE = {"docs/a.md": {"measures": ["src/a"]}, "docs/b.md": {"measures": ["src/b", "src/c.py"]}}


@pytest.fixture
def commit(tmp_path: Path) -> Callable[..., None]:
    """Write files (None: remove) and commit them."""

    def made(**files: str | None) -> None:
        for name, text in files.items():
            path = tmp_path / name.replace("__", "/").replace("_md", ".md").replace("_py", ".py")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.unlink() if text is None else path.write_text(text)
        git = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@b"]
        subprocess.run([*git, "add", "-A"], check=True)
        subprocess.run([*git, "commit", "-qm", ", ".join(files)], check=True)

    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    return made


def test_figures_are_older_than_code_that_changed_after_their_table(
    commit: Callable[..., None], tmp_path: Path
) -> None:
    code = "".join(f"line {i}\n" for i in range(40))
    commit(docs__a_md="| 1.0 | 2 |\n", docs__b_md="| 3.0 |\n", src__a__x_py=code, src__b__y_py=code[1:], src__c_py="c")
    assert list(pages.stale(tmp_path, TABLE)) == []
    commit(docs__a_md="| 1.0 | 2 |\nmore words\n", src__a__x_py=None, src__a__moved_py=code)
    assert list(pages.stale(tmp_path, TABLE)) == []  # a file that moved is no change
    commit(src__a__moved_py=code.upper())
    commit(src__c_py="d", docs__other_md="| 1 |\n")
    commit(docs__a_md="other words\n| 1.0 | 2 |\n")
    found = {page: [text.split(" ", 2)[2] for text in later] for page, _, later in pages.stale(tmp_path, TABLE)}
    assert found == {"docs/a.md": ["src__a__moved_py"], "docs/b.md": ["src__c_py, docs__other_md"]}
    commit(docs__a_md="other words\n| 1.1 | 2 |\n", docs__b_md="| 3.1 |\n")
    assert list(pages.stale(tmp_path, TABLE)) == []


def test_every_page_that_names_a_benchmark_is_made_by_one_command() -> None:
    """With all benchmarks that it names; and scripts and code are where the table says."""
    named = {
        str(page.relative_to(ROOT)): set(re.findall(r"benchmarks/(\w+\.py)", page.read_text("utf-8")))
        for page in (ROOT / "docs").rglob("*.md")
    }
    for page, scripts in named.items():
        made = {command.partition(" ")[0] for command in pages.PAGES.get(page, {"run": ()})["run"]}
        assert scripts <= made, page
    for page, facts in pages.PAGES.items():
        assert named[page], page
        assert all((BENCHMARKS / command.partition(" ")[0]).is_file() for command in facts["run"])
        assert all((ROOT / path).exists() for path in facts["measures"]), page


def test_a_page_s_command_names_the_machine_and_runs_what_the_page_quotes(monkeypatch, capfd) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    monkeypatch.setitem(pages.PAGES, "docs/a.md", {"run": ["machine.py", "gone.py --fast", "machine.py"]})
    assert pages.run("docs/a.md") != 0
    said = capfd.readouterr().out
    assert re.match(rf"docs/a\.md, on .*cores; Python {sys.version_info[0]}", said)
    assert said.count("$ python benchmarks/") == 2
