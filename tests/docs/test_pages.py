"""Every command and all Python on every page runs, in the order in which it stands."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from tests.docs.pages import PAGES, REASONS, Block, blocks
from tests.docs.running import Runner
from tests.test_tutorial import PAGES as ELSEWHERE

NEEDS = {"docs/howto/phones.md": ("node",), "docs/howto/benchmark.md": ("node",)}
"""Programs besides Python and cloister without which a page is not run."""

RUN = [page for page in PAGES if page not in ELSEWHERE and any(block.language for block in blocks(page))]
KNOWN = {"sh", "python", "js", "text", "toml", "json", "sql"}


@pytest.mark.thorough
@pytest.mark.parametrize(
    "page",  # the site's build runs notebooks, too
    [pytest.param(page, marks=[pytest.mark.long] if "notebooks/" in page else []) for page in RUN],
)
def test_all_code_runs_in_the_order_in_which_it_stands(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not all(map(shutil.which, NEEDS.get(page, ()))):
        pytest.skip(f"needs {', '.join(NEEDS[page])}")
    monkeypatch.setenv("MPLBACKEND", "Agg")
    with Runner(tmp_path, PAGES[page].read_text("utf-8")) as runner:
        for block in blocks(page):
            if block.reason is None:
                runner.run(block)


@pytest.mark.parametrize("page", PAGES)
def test_what_is_not_run_says_why_and_code_is_in_a_language_that_is_known(page: str) -> None:
    for block in blocks(page):
        where = f"{page}:{block.line}"
        assert block.reason is None or block.reason in REASONS, f"{where}: {block.reason} is not among {REASONS}"
        assert block.language in KNOWN or block.language.startswith("{") or not block.language, where
        assert block.language or "cloister " not in block.text, f"{where}: commands belong into a block of sh"


@pytest.mark.parametrize("page", PAGES)
def test_no_command_hides_in_an_indented_block(page: str) -> None:
    outside = re.sub(r"^( *)```.*?^\1```$", "", PAGES[page].read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    assert re.findall(r"^    +(?:cloister|pip|python) .*", outside, re.MULTILINE) == []


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("cloister fit none.npy -k 2 --epsilon 1 --bounds -1:1", "none.npy"),
        ("cloister list  # refused: it is not", "ended with 0"),
        ("false | true", "false"),
        ("cloister list > list.txt\ngrep no-such-name list.txt", "no-such-name"),
        ("sleep 0 &\nwait\nfalse", "false"),
    ],
)
def test_a_command_that_ends_otherwise_than_the_page_has_it_is_seen(text: str, fault: str, tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match=fault):
        Runner(tmp_path, "").run(Block("page", 1, "sh", "", text))


def test_python_shares_one_namespace_and_finds_the_page_s_files(tmp_path: Path) -> None:
    runner = Runner(tmp_path, "<!-- has: bounds.toml -->")
    runner.run(Block("page", 1, "python", "", "from pathlib import Path\nbounds = Path('bounds.toml').read_text()"))
    runner.run(Block("page", 5, "toml", "other.toml", "a = 1\n"))
    runner.run(
        Block("page", 9, "python", "raises: KeyError", "assert bounds\nassert Path('other.toml').read_text()\n{}[0]")
    )
    with pytest.raises(pytest.fail.Exception):
        runner.run(Block("page", 9, "python", "raises: KeyError", "0"))
