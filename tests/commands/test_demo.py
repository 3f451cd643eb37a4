"""``cloister demo --phones``, as a process; what it serves: ``tests/lab/phones``."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from pathlib import Path
from urllib.request import urlopen

import pytest

from tests.in_process import PROGRAM

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
