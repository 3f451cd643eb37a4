"""``cloister demo --phones``, as a process; what it serves: ``tests/lab/phones``."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import webbrowser
from pathlib import Path
from urllib.request import urlopen

import pytest

import cloister.lab.phones.server
from tests.in_process import PROGRAM, cloister as command

pytestmark = pytest.mark.thorough


def test_it_says_where_the_page_is_until_it_is_ended_and_leaves_nothing(tmp_path: Path) -> None:
    with subprocess.Popen(
        [PROGRAM, "demo", "--phones", "--epsilon", "2"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(tmp_path), "PYTHONUNBUFFERED": "1"},
    ) as serving:
        assert serving.stdout is not None
        assert serving.stderr is not None
        found = re.search(r"at (http://127\.0\.0\.1:\d+/): open it in a browser", serving.stdout.readline())
        assert found is not None
        with urlopen(f"{found[1]}demo/facts") as answer:
            assert json.load(answer)["people"] == 100_000
        with urlopen(f"{found[1]}bundle-1.json") as answer:
            assert json.load(answer)["epsilon"] == 2
        assert [folder.name[:16] for folder in tmp_path.iterdir()] == ["cloister-phones-"]
        serving.send_signal(signal.SIGINT)
        assert (serving.wait(30), serving.stdout.read(), serving.stderr.read()) == (0, "", "")
    assert list(tmp_path.iterdir()) == []


def test_the_page_is_opened_where_that_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    opened = list[str]()
    monkeypatch.setattr(webbrowser, "open", opened.append)
    monkeypatch.setattr(
        cloister.lab.phones.server, "run", lambda epsilon, port, started: started(f"http://here:{port}/")
    )
    assert command("demo", "--phones", "--port", "81").returncode == 0
    assert opened == []
    command("demo", "--phones", "--port", "81", "--open")
    assert opened == ["http://here:81/"]


def test_a_port_that_is_taken_is_one_line() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = command("demo", "--phones", "--port", taken.getsockname()[1])
    assert (done.returncode, done.stdout) == (2, "")
    assert len(done.stderr.strip().splitlines()) == 1
