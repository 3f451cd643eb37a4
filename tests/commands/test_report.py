"""``cloister report``, run as a user runs it, and its page in a real browser."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import webbrowser
from pathlib import Path

import pytest

from tests.in_process import cloister
from tests.report.pages import Page, made

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--enable-logging=stderr",
    "--v=0",
)  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made(details={"costs": [9.0, 4.0, 1.0]}).save(tmp_path / "result.json")
    return tmp_path


def test_a_result_becomes_a_page(folder: Path) -> None:
    done = cloister("report", "result.json", "-o", "page.html", folder=folder)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "saved to page.html: open it in a browser\n"
    assert Page((folder / "page.html").read_text("utf-8")).cards() == 3
    assert sorted(os.listdir(folder)) == ["page.html", "result.json"]


def test_programs_are_told_what_was_written(folder: Path) -> None:
    done = cloister("report", "result.json", "-o", "page.html", "--json", folder=folder)
    facts = json.loads(done.stdout)
    assert facts.pop("bytes") == (folder / "page.html").stat().st_size
    assert facts == {
        "report": "page.html", "clusters": 3, "columns": 3,
        "privacy": "(add-or-remove one row) epsilon = 1, delta = 1e-06, Central trust",
    }  # fmt: skip


def test_the_page_is_opened_where_that_is_asked_for(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = list[str]()
    monkeypatch.setattr(webbrowser, "open", opened.append)
    cloister("report", "result.json", "-o", "a.html", folder=folder)
    assert opened == []
    cloister("report", "result.json", "-o", "b.html", "--open", folder=folder)
    assert opened == [(folder / "b.html").as_uri()]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["none.json", "-o", "page.pdf"], "reports are saved as .html, not 'page.pdf'"),  # the place is checked first
        (["none.json", "-o", "nowhere/page.html"], "there is no folder nowhere"),
        (["none.json", "-o", "page.html"], "cannot read none.json"), (["text.json", "-o", "page.html"], "damaged"),
        (["facts.json", "-o", "page.html"], "does not say where rows can be"),
    ],
)  # fmt: skip
def test_what_cannot_be_reported_is_one_line_exit_two_and_no_file(
    arguments: list[str], expected: str, folder: Path
) -> None:
    (folder / "text.json").write_text("centres")
    made(problem={"k": 3}).save(folder / "facts.json")
    before = sorted(os.listdir(folder))
    done = cloister("report", *arguments, folder=folder)
    assert (done.returncode, done.stdout) == (2, "")
    assert expected in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert sorted(os.listdir(folder)) == before


def test_lines_over_the_columns_are_a_picture_too(folder: Path) -> None:
    done = cloister("plot", "result.json", "-o", "lines.svg", "--parallel", "--json", folder=folder)
    assert json.loads(done.stdout)["picture"] == "parallel coordinates"
    assert "c2" in (folder / "lines.svg").read_text()
    for other in (["--curve"], ["--project"]):
        done = cloister("plot", "result.json", "-o", "other.svg", "--parallel", *other, folder=folder)
        assert (done.returncode, (folder / "other.svg").exists()) == (2, False)


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed")
def test_a_browser_shows_the_page_without_an_error_or_a_request(folder: Path, tmp_path: Path) -> None:
    cloister("report", "result.json", "-o", "page.html", folder=folder)
    log = tmp_path / "network.json"
    command = [str(CHROMIUM), *FLAGS, f"--user-data-dir={tmp_path / 'browser'}", f"--log-net-log={log}", "--dump-dom"]
    done = subprocess.run(
        [*command, (folder / "page.html").as_uri()], capture_output=True, text=True, check=True, timeout=120
    )
    assert "<title>3 clusters by fastlloyd: cloister report</title>" in done.stdout
    assert len(re.findall("<article", done.stdout)) == 3
    assert "CONSOLE" not in done.stderr
    assert set(re.findall(r"\bhttps?://[^\s\"\\]+", log.read_text())) == set()
