"""Signs of life off a terminal: what the log and stderr say while work lasts, and what they keep to themselves."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cloister.commands import progress
from cloister.commands.progress import event_log, signs_of_life
from cloister.rows.workers.threads import Threads
from tests.in_process import ran, refused
from tests.waiting import until

FIT = "-k 3 --epsilon 1 --delta 1e-6 --bounds=-1:1 --rows 2000 --method fastlloyd --zoom off --set rounds=2"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for n in (2000, 1000, 10):
        np.save(tmp_path / f"rows{n}.npy", np.random.default_rng(n).uniform(-1, 1, (n, 2)))
    return tmp_path


def events(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_every_new_step_is_in_the_log_without_waiting_for_a_minute(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "GLANCE", 0.001)
    stands = ["round 1 of 2"]
    with event_log(tmp_path / "log") as write, signs_of_life(lambda: stands[0], write):
        until(lambda: len(events(tmp_path / "log")) == 1)
        stands[0] = "round 2 of 2"
        until(lambda: len(events(tmp_path / "log")) == 2)
    assert capsys.readouterr().err == ""
    first, second, last = events(tmp_path / "log")
    assert (first["what"], second["what"], last["event"]) == ("round 1 of 2", "round 2 of 2", "finished")
    assert {"time", "event", "what", "seconds"} == set(first)


def test_a_fit_says_once_a_minute_where_it_stands_and_nothing_before(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    short = ran(f"fit rows2000.npy {FIT}", folder).stderr
    assert "after" not in short
    assert "round" not in short
    monkeypatch.setattr(progress, "MINUTE", 0.0)
    assert ", after 0 min\n" in ran(f"fit rows2000.npy {FIT} --log log", folder).stderr
    *said, last = events(folder / "log")
    assert [event["by"] for event in said if event["event"] == "begun"] == [Threads().words]
    assert last["event"] == "finished"
    assert said[-1]["what"].startswith("round ")


def test_a_log_does_not_tell_how_many_rows_there_are(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever is shown the logs of runs that differ in their rows alone has the same words; looks are as frequent as
    they can be, and each is a line."""
    monkeypatch.setattr(progress, "MINUTE", 0.0)
    monkeypatch.setattr(progress, "GLANCE", 0.0)
    told = set[tuple[str, ...]]()
    for n in (2000, 1000, 10):
        ran(f"fit rows{n}.npy {FIT} --log log{n}", folder)
        words = [str(e.get("what", e["event"])) for e in events(folder / f"log{n}")]
        assert all(re.fullmatch(r"begun|reading|finished|\d+ rounds?|round \d+ of \d+", word) for word in words)
        told.add((words[-2], words[-1]))
    assert len(told) == 1


def test_a_refused_run_has_ended_and_a_log_that_cannot_be_written_is_said_before_anything_is_spent(
    folder: Path,
) -> None:
    np.save(folder / "bad.npy", np.array([[0.1, np.nan]] * 9))
    refused(f"fit bad.npy {FIT} --log log", folder)
    last = events(folder / "log")[-1]
    assert last == {"time": last["time"], "event": "ended"}
    ran("ledger declare l a --epsilon 9 --delta 1e-5", folder)
    assert "cannot write no/log" in refused(f"fit rows2000.npy {FIT} --ledger l --dataset a --log no/log", folder)
    assert json.loads(ran("ledger show l --json", folder).stdout)[0]["runs"] == []


@pytest.mark.parametrize("command", ["decode plan reports", "advance plan --reports reports"])
def test_a_server_says_how_many_reports_it_has_read(
    command: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "MINUTE", 0.0)
    ran("plan --out plan --dimension 2 -k 2 --epsilon 4 --rows 2000 --bounds=-1:1", folder)
    ran("encode plan rows2000.npy --first 0 --out reports", folder)
    assert "2,000 reports read, after 0 min\n" in ran(f"{command} --log log", folder).stderr
    assert events(folder / "log")[-1]["event"] == "finished"
