"""``cloister report`` and ``plot``, run as a user runs them: they see a result's file and no rows; the page in a real
browser."""

from __future__ import annotations

import json
import os
import re
import subprocess
import webbrowser
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import numpy as np
import pytest

from tests.browser import CHROMIUM, FLAGS
from tests.in_process import ran
from tests.showing.report.pages import Page, made
from tests.showing.test_figures import words


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made(details={"costs": [9.0, 4.0, 1.0]}).save(tmp_path / "result.json")
    return tmp_path


def test_a_result_becomes_a_page_and_programs_are_told_what_was_written(folder: Path) -> None:
    done = ran("report result.json -o page.html", folder)
    assert (done.stdout, done.stderr) == ("saved to page.html: open it in a browser\n", "")
    assert Page((folder / "page.html").read_text("utf-8")).cards() == 3
    assert sorted(os.listdir(folder)) == ["page.html", "result.json"]
    facts = json.loads(ran("report result.json -o page.html --json", folder).stdout)
    assert facts.pop("bytes") == (folder / "page.html").stat().st_size
    assert facts == {
        "report": "page.html",
        "clusters": 3,
        "columns": 3,
        "privacy": "(add-or-remove one row) epsilon = 1, delta = 1e-06, Central trust",
    }


def test_the_page_is_opened_where_that_is_asked_for(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = list[str]()
    monkeypatch.setattr(webbrowser, "open", opened.append)
    ran("report result.json -o a.html", folder)
    assert opened == []
    ran("report result.json -o b.html --open", folder)
    assert opened == [(folder / "b.html").as_uri()]


def test_lines_over_the_columns_are_a_picture_too(folder: Path) -> None:
    done = ran("plot result.json -o lines.svg --parallel --json", folder)
    assert json.loads(done.stdout)["picture"] == "parallel coordinates"
    assert "c2" in (folder / "lines.svg").read_text()


def browsed(page: Path, tmp_path: Path) -> subprocess.CompletedProcess[str]:
    """What a browser makes of a page: its document, and its console on stderr."""
    flags = [*FLAGS, "--enable-logging=stderr", "--v=0", f"--user-data-dir={tmp_path / 'browser'}", "--dump-dom"]
    command = [str(CHROMIUM), *flags, page.as_uri()]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)


@pytest.mark.thorough
@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed")
def test_a_browser_shows_the_page_without_a_complaint(folder: Path, tmp_path: Path) -> None:
    ran("report result.json -o page.html", folder)
    done = browsed(folder / "page.html", tmp_path)
    assert "<title>3 clusters by fastlloyd: cloister report</title>" in done.stdout
    assert len(re.findall("<article", done.stdout)) == 3
    assert "CONSOLE" not in done.stderr


@pytest.mark.thorough
@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed")
def test_even_markup_that_got_into_a_page_could_not_ask_the_network_or_run(folder: Path, tmp_path: Path) -> None:
    ran("report result.json -o page.html", folder)
    asked = list[str]()

    class Listening(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_error(404)

    with ThreadingHTTPServer(("127.0.0.1", 0), Listening) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        there = f"http://127.0.0.1:{server.server_port}"
        evil = (
            f'<img src="{there}/image"><script src="{there}/script"></script><link rel=stylesheet href="{there}/style">'
            f"<script>document.title = 'taken'</script><style>@import '{there}/import'</style></main>"
        )
        page = folder / "page.html"
        for name, policy in (("kept", True), ("gone", False)):
            text = page.read_text("utf-8").replace("</main>", evil)
            text = text if policy else text.replace("Content-Security-Policy", "nothing")
            (folder / f"{name}.html").write_text(text, "utf-8")
            done = browsed(folder / f"{name}.html", tmp_path)
            assert ("<title>taken</title>" in done.stdout) != policy
            assert ("CONSOLE" in done.stderr) or not policy
            assert (asked == []) == policy
        server.shutdown()


FIT = "fit rows.npy -k 3 --epsilon 1 --delta 1e-6 --bounds=-1:1 --rows 1000 --seed 1"


def test_a_tree_is_drawn_with_its_cells_and_its_costs_from_its_result_alone(tmp_path: Path) -> None:
    """A result that was saved, and what fit printed as JSON."""
    np.save(tmp_path / "rows.npy", np.random.default_rng(0).normal(0, 0.3, (1000, 2)))
    printed = ran(f"{FIT} --method hst-means --out tree.json --json", tmp_path).stdout
    (tmp_path / "printed.json").write_text(printed)
    (tmp_path / "rows.npy").unlink()
    facts = json.loads(ran("plot tree.json -o map.svg --json", tmp_path).stdout)
    details = json.loads(printed)["details"]
    assert facts["cells"] == facts["cells in the result"] == len(details["cells"]) > 1
    assert (facts["picture"], facts["axes"], facts["file"]) == ("map", ["0", "1"], "map.svg")
    assert "tree cell (bluer: more rows per area)" in words(tmp_path / "map.svg")
    done = ran("plot printed.json -o curve.svg --curve --json", tmp_path)
    assert json.loads(done.stdout)["costs"] == len(details["costs"])
    assert "k = 3, requested" in words(tmp_path / "curve.svg")
