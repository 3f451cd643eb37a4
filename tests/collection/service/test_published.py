"""Rounds that open and close while a collector runs, and whose reports it takes."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import AsyncMock, Mock

import pytest

from cloister.collection.client.encoder import PlanEncoder
from cloister.collection.plan import bundle_folder
from cloister.collection.plan.transcript import Transcript
from cloister.collection.server.aggregator import advance
from cloister.collection.service import collector
from cloister.collection.service.app import create_app
from cloister.collection.service.segments import Segments
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
    monkeypatch.setattr(collector, "LOOK", 0.02)
    bundle_folder.write(planned(options={"rounds": ROUNDS}), tmp_path / "plan", "in words")
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
    with Client(create_app(plan, out, on_event=told.append)) as client:
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
        create_app(plan, out)
    assert told == [{"event": "round", "round": 2}, {"event": "closed", "round": 2}]
    assert [answers.reports["accepted"] for answers in Transcript.read(plan).closed] == [len(ROWS) - 1, len(ROWS)]


def test_between_two_rounds_reports_are_sent_back(folder: Path) -> None:
    told = list[dict[str, Any]]()
    with Client(create_app(folder / "plan", folder / "reports", on_event=told.append)) as client:
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
    with Client(create_app(folder / "plan", folder / "reports")) as client:
        assert client.get("/round").json()["round"] == 2, "whoever begins later begins with the open round"
        assert client.send(answers(folder))[0] == 200


FAULTS = [PermissionError(13, "Permission denied"), MemoryError(), RuntimeError("can't start new thread")]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: type(fault).__name__)
def test_the_watch_of_the_plan_s_folder_survives_what_it_meets_and_opens_the_round_when_it_can(
    folder: Path, fault: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    told, plan, out = list[dict[str, Any]](), folder / "plan", folder / "reports"
    opens = Mock(side_effect=fault)
    with Client(create_app(plan, out, on_event=told.append)) as client:
        ready = client.get("/health")
        assert (ready.status_code, ready.json()["state"], ready.json()["watching"]) == (200, "taking reports", True)
        client.send(answers(folder))
        advance(plan, out)
        with monkeypatch.context() as broken:
            broken.setattr(collector, "open_round", opens)
            wait_for(client, lambda: opens.call_count >= 3)
            found = client.get("/health")
            assert (found.status_code, found.json()["ready"], found.json()["state"]) == (503, False, "waiting")
            assert found.json()["waiting"] is True
            assert client.get("/alive").status_code == 200, "a restart would meet the same"
            assert gauges(client) == {"watching": 1, "between_rounds": 1, "taking_reports": 0}
        wait_for(client, shows(client, round=2, open=True))
        wait_for(client, lambda: client.get("/health").json()["waiting"] is False)
        assert gauges(client) == {"watching": 1, "between_rounds": 0, "taking_reports": 1}
    assert [event["event"] for event in told] == ["waiting", "round"], "the same reason is said once"
    assert told[0]["why"] == f"{type(fault).__name__}: {fault}"


def test_a_pipe_that_stands_for_a_round_s_answers_is_waited_for_and_not_opened(folder: Path) -> None:
    plan, out = folder / "plan", folder / "reports"
    told = list[dict[str, Any]]()
    with Client(create_app(plan, out, on_event=told.append)) as client:
        client.send(answers(folder))
        elsewhere = Path(shutil.copytree(plan, folder / "elsewhere" / "plan"))
        advance(elsewhere, out)
        os.mkfifo(plan / "round-1.json")
        wait_for(client, lambda: any("round-1.json: it is not a regular file" in event["why"] for event in told))
        (plan / "round-1.json").unlink()
        shutil.copytree(elsewhere, plan, dirs_exist_ok=True)
        wait_for(client, shows(client, round=2, open=True))


def closed_elsewhere(folder: Path, name: str, rounds: int, some: slice, **changes: Any) -> Path:
    """A folder of a plan with the same name of method and rounds, of which some people have answered rounds."""
    place = folder / name
    bundle_folder.write(planned(options={"rounds": ROUNDS}, **changes), place / "plan", "in words")
    with Client(create_app(place / "plan", place / "reports")) as client:
        for number in range(1, rounds + 1):
            assert client.send(answers(place, some))[0] == 200
            advance(place / "plan", place / "reports")
            wait_for(client, shows(client, round=number + 1) if number < ROUNDS else shows(client, open=False))
    return place / "plan"


def test_a_plan_that_takes_the_place_of_another_is_not_collected_for_nor_given_out(folder: Path) -> None:
    plan, out, told = folder / "plan", folder / "reports", list[dict[str, Any]]()
    other = closed_elsewhere(folder, "other", 1, slice(None), epsilon=3.0)
    kept = Path(shutil.copytree(plan, folder / "kept"))
    app = create_app(plan, out, on_event=told.append)
    with Client(app) as client:
        mine, theirs, before = answers(folder), answers(folder / "other"), client.get("/round").json()
        shutil.rmtree(plan)
        shutil.copytree(other, plan)
        wait_for(client, lambda: any("now holds another plan" in event["why"] for event in told))
        looked = app.state.collector._last_look
        assert client.get("/plan.json").content == (kept / "plan.json").read_bytes()
        assert client.send(theirs)[1]["refused"] == {"another plan": 1}
        assert client.send(mine)[0] == 200
        after = client.get("/round").json()
        assert [after[name] for name in ("plan", "round", "head")] == [
            before[name] for name in ("plan", "round", "head")
        ]
        assert app.state.collector._last_look == looked, "nobody would see the next round"
        shutil.rmtree(plan)
        shutil.copytree(kept, plan)
        wait_for(client, lambda: client.get("/health").json()["waiting"] is False)
        advance(plan, out)
        wait_for(client, shows(client, round=2, open=True))


def test_a_plan_that_takes_the_place_of_another_in_the_middle_of_a_look_opens_no_round(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan, told = folder / "plan", list[dict[str, Any]]()
    other = closed_elsewhere(folder, "other", 1, slice(None), epsilon=3.0)
    app = create_app(plan, folder / "reports", on_event=told.append)
    honest = app.state.collector._check_plan

    def replaced() -> None:
        honest()
        shutil.rmtree(plan)
        shutil.copytree(other, plan)

    with Client(app) as client:
        monkeypatch.setattr(app.state.collector, "_check_plan", replaced)
        wait_for(client, lambda: any("now holds another plan" in event["why"] for event in told))
        assert client.get("/round").json()["open"] is True


def test_rounds_that_do_not_follow_the_open_one_are_not_opened(folder: Path) -> None:
    plan, out, told = folder / "plan", folder / "reports", list[dict[str, Any]]()
    other = closed_elsewhere(folder, "other", 2, slice(1, None))
    with Client(create_app(plan, out, on_event=told.append)) as client:
        client.send(answers(folder))
        advance(plan, out)
        wait_for(client, shows(client, round=2, open=True))
        shutil.copytree(other, plan, dirs_exist_ok=True)
        wait_for(client, lambda: any("other answers" in event.get("why", "") for event in told))
        assert client.get("/health").json()["state"] == "waiting"


def test_a_plan_s_folder_that_is_gone_is_seen_and_its_files_are_given_out_all_the_same(folder: Path) -> None:
    app = create_app(folder / "plan", folder / "reports")
    with Client(app) as client:
        before = {name: client.get(f"/{name}").content for name in ("plan.json", "bundle-1.json", "bundle-1.bin")}
        (folder / "plan").rename(folder / "elsewhere")
        wait_for(client, lambda: client.get("/health").json()["waiting"] is True)
        looked = app.state.collector._last_look
        client.wait(0.1)
        assert app.state.collector._last_look == looked
        assert {name: client.get(f"/{name}").content for name in before} == before
        assert client.get("/round").json()["bundle"] == "/bundle-1.json"
        (folder / "elsewhere").rename(folder / "plan")
        wait_for(client, lambda: client.get("/health").json()["waiting"] is False)


def test_a_file_that_was_asked_for_while_it_was_copied_is_given_out_whole_afterwards(folder: Path) -> None:
    for name in ("bundle-1.bin", "bundle-1.json"):
        file = folder / "plan" / name
        content = file.read_bytes()
        with Client(create_app(folder / "plan", folder / "reports")) as client:
            file.write_bytes(content[:10])
            assert client.get(f"/{name}").content == content[:10]
            file.write_bytes(content)
            assert client.get(f"/{name}").content == content


def test_no_exception_ends_the_watch(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    faults = [*FAULTS, Refused("another plan"), OSError(5, "Input/output error"), None, ValueError("odd")]
    sleeps = [*[None] * len(faults), asyncio.CancelledError()]
    looks = AsyncMock(side_effect=faults)
    watched = create_app(folder / "plan", folder / "reports").state.collector
    monkeypatch.setattr(watched, "_look", looks)
    monkeypatch.setattr(asyncio, "sleep", AsyncMock(side_effect=sleeps))
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(watched._watch())
    assert looks.await_count == len(faults)
    assert watched.waiting == "ValueError: odd"


def gauges(client: Client) -> dict[str, int]:
    """What the metrics say of the watch, each with the plan's label."""
    found = re.findall(
        r'^cloister_(watching|between_rounds|taking_reports)\{plan="[0-9a-f]{16}"\} (\d)$', *text(client)
    )
    return {name: int(value) for name, value in found}


def text(client: Client) -> tuple[str, re.RegexFlag]:
    return client.get("/metrics").text, re.MULTILINE


def test_a_watch_that_cannot_look_is_seen_and_that_of_a_closed_plan_is_not_ready_but_alive(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan, out = folder / "plan", folder / "reports"
    with Client(create_app(plan, out)) as client:
        with monkeypatch.context() as broken:
            broken.setattr(collector, "STALE", 0.0)
            assert gauges(client) == {"watching": 0, "between_rounds": 0, "taking_reports": 1}
            assert client.get("/health").json()["watching"] is False
        for _ in range(ROUNDS):
            client.send(answers(folder))
            advance(plan, out)
            wait_for(client, shows(client, round=2) if Transcript.read(plan).index == 1 else shows(client, open=False))
        wait_for(client, lambda: client.get("/health").json()["state"] == "closed")
        assert client.get("/health").status_code == 503
        assert client.get("/alive").status_code == 200, "devices are told here that all rounds are closed"


def test_a_look_that_fails_does_not_count_as_one(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    app = create_app(folder / "plan", folder / "reports")
    with Client(app) as client:
        monkeypatch.setattr(collector.Collector, "_look", AsyncMock(side_effect=OSError(5, "Input/output error")))
        wait_for(client, lambda: app.state.collector.waiting == "OSError: [Errno 5] Input/output error")
        assert "Input" not in client.get("/health").text, "everybody reads it"
        before = app.state.collector._last_look
        client.wait(0.1)
        assert app.state.collector._last_look == before
        assert client.get("/health").status_code == 200, "reports of the open round are taken"


def test_an_output_that_was_closed_stops_neither_the_watch_nor_the_writer(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan, out = folder / "plan", folder / "reports"
    with Client(create_app(plan, out, on_event=Mock(side_effect=BrokenPipeError))) as client:
        with monkeypatch.context() as broken:
            broken.setattr(Segments, "append", Mock(side_effect=OSError(28, "No space left on device")))
            assert client.send(answers(folder))[0] == 503
        assert client.send(answers(folder))[0] == 200
        advance(plan, out)
        wait_for(client, shows(client, round=2, open=True))


def test_a_plan_s_messages_go_to_its_shuffler_only_and_reports_to_none(tmp_path: Path) -> None:
    plan_in(tmp_path / "local")
    plan_in(tmp_path / "shuffled", delta=1e-6, rows=100, components=WIRES, method="one-round", trust=None)
    with pytest.raises(Refused, match="only its shuffler may see"):
        create_app(tmp_path / "shuffled", tmp_path / "out")
    with pytest.raises(Refused, match="need no shuffler"):
        create_app(tmp_path / "local", tmp_path / "out", shuffle=True)
    assert not (tmp_path / "out").exists()
    with Client(create_app(tmp_path / "shuffled", tmp_path / "out", shuffle=True)) as client:
        assert client.get("/round").json()["open"]
