"""Rounds that open and close while a collector runs, and whose reports it takes."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cloister.collection.client.encoder import PlanEncoder
from cloister.collection.plan import bundle
from cloister.collection.plan.transcript import Transcript
from cloister.collection.server.aggregator import advance
from cloister.collection.service import desk
from cloister.collection.service.app import collector
from cloister.core.errors import Refused
from cloister.core.randomness import NoiseRng
from tests.collection.rounds_fakes import ROWS, USERS, planned
from tests.collection.service.collectors import Client, plan_in
from tests.collection.shuffled_plans import WIRES
from tests.waiting import PATIENCE

ROUNDS = 2


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A plan of two rounds, that a collector looks into often."""
    monkeypatch.setattr(desk, "LOOK", 0.02)
    bundle.write(planned(options={"rounds": ROUNDS}), tmp_path / "plan", "in words")
    return tmp_path


def answers(folder: Path, some: slice = slice(None)) -> bytes:
    """What people answer to the open round."""
    encoder = PlanEncoder(Transcript.read(folder / "plan"), noise=NoiseRng.for_tests(1))
    return encoder.encode(ROWS[some], USERS[some]).to_bytes()


def wait_for(client: Client, true: Callable[[], bool]) -> None:
    """Let the collector run until something is so, however long a loaded machine takes."""
    end = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < end, client.get("/round").json()
        client.wait(0.02)


def shows(client: Client, **facts: Any) -> Callable[[], bool]:
    """Whether its round is such."""
    return lambda: facts.items() <= client.get("/round").json().items()


def test_rounds_open_and_close_without_a_restart(folder: Path) -> None:
    told, plan, out = list[dict[str, Any]](), folder / "plan", folder / "reports"
    with Client(collector(plan, out, told=told.append)) as client:
        first, late = answers(folder, slice(1, None)), answers(folder, slice(0, 1))
        assert client.send(first)[1]["accepted"] == len(ROWS) - 1
        advance(plan, out)
        wait_for(client, shows(client, round=2, reports=0, open=True))
        assert client.get("/round").json()["head"] == Transcript.read(plan).head
        for name in ("round-1.json", "bundle-2.json"):
            assert client.get(f"/{name}").content == (plan / name).read_bytes()
        status, said = client.send(late)
        assert (status, said["refused"]) == (400, {"another round": 1})
        second = answers(folder)
        assert client.send(second)[1]["accepted"] == len(ROWS)
        assert client.send(second)[1] == {"accepted": 0, "refused": {"duplicate": len(ROWS)}}
        advance(plan, out)
        wait_for(client, lambda: client.send(second)[0] == 410)
        assert client.send(second)[1]["refused"] == {"closed": 1}
        assert shows(client, open=False, round=None)()
    with pytest.raises(Refused, match="all rounds of this plan are closed"):
        collector(plan, out)
    assert told == [{"event": "round", "round": 2}, {"event": "closed", "round": 2}]
    assert [answers.reports["accepted"] for answers in Transcript.read(plan).closed] == [len(ROWS) - 1, len(ROWS)]


def test_between_two_rounds_reports_are_sent_back(folder: Path) -> None:
    told = list[dict[str, Any]]()
    with Client(collector(folder / "plan", folder / "reports", told=told.append)) as client:
        old = answers(folder)
        client.send(old)
        elsewhere = Path(shutil.copytree(folder / "plan", folder / "elsewhere" / "plan"))
        advance(elsewhere, folder / "reports")
        content = (elsewhere / "round-1.json").read_bytes()
        shutil.copytree(elsewhere, folder / "plan", ignore=lambda *_: ["round-1.json"], dirs_exist_ok=True)
        (folder / "plan" / "round-1.json").write_bytes(content[:-10])  # as if it were still copied
        wait_for(client, shows(client, open=False))
        status, said = client.send(answers(folder / "elsewhere"))
        assert (status, said["refused"]) == (503, {"between rounds": 1})
        wait_for(client, lambda: bool(told))  # it has tried to open the round
        (folder / "plan" / "round-1.json").write_bytes(content)
        wait_for(client, shows(client, round=2))
        assert told[0]["event"] == "waiting"
        assert "round-1.json" in told[0]["why"]
    with Client(collector(folder / "plan", folder / "reports")) as client:
        assert client.get("/round").json()["round"] == 2, "whoever begins later begins with the open round"
        assert client.send(answers(folder))[0] == 200


def test_a_plan_s_messages_go_to_its_shuffler_only_and_reports_to_none(tmp_path: Path) -> None:
    plan_in(tmp_path / "local")
    plan_in(tmp_path / "shuffled", delta=1e-6, rows=100, components=WIRES, method="one-round", trust=None)
    with pytest.raises(Refused, match="only its shuffler may see"):
        collector(tmp_path / "shuffled", tmp_path / "out")
    with pytest.raises(Refused, match="need no shuffler"):
        collector(tmp_path / "local", tmp_path / "out", shuffle=True)
    assert not (tmp_path / "out").exists()
    with Client(collector(tmp_path / "shuffled", tmp_path / "out", shuffle=True)) as client:
        assert client.get("/round").json()["open"]
