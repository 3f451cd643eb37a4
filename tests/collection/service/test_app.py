"""The collector's answers, request by request, in the process of the tests."""

from __future__ import annotations

import json
import os
import shutil
import threading
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any
from unittest.mock import ANY, Mock

import numpy as np
import pytest

from cloister.collection.plan.plan import CollectionPlan
from cloister.collection.service import collector
from cloister.collection.service.app import create_app
from cloister.collection.service.limits import Limits
from cloister.collection.service.segments import Segments
from cloister.collection.service.tickets import Issuer, mint, new_key, read_key
from cloister.collection.wire.batches import BatchForm, Parsed
from tests.collection.service.collectors import OCTETS, USERS, Client, batch, form_of, on_disk, plan_in, report


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("plans") / "plan"
    plan_in(folder)
    return folder


@pytest.fixture(scope="module")
def plan(folder: Path) -> CollectionPlan:
    return CollectionPlan.read(folder)


@pytest.fixture(scope="module")
def form(plan: CollectionPlan) -> BatchForm:
    return form_of(plan)


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out"


Serving = Callable[..., Client]


@pytest.fixture
def serving(folder: Path, out: Path) -> Serving:
    """What makes a collector of the plan. Args: as for ``collector``."""
    return lambda **options: Client(create_app(folder, out, **options))


@pytest.fixture
def client(serving: Serving) -> Iterator[Client]:
    with serving() as client:
        yield client


def test_a_request_that_is_wrong_is_refused_whole_and_counted(client: Client, form: BatchForm, out: Path) -> None:
    good, flipped, told = report(form, 7), bytearray(batch(form, 8, 9)), Counter[str]()
    flipped[-1] ^= 1
    for body, reason in (
        (b"", "no reports"),
        (b"\xc7" + good[1:], "no reports"),  # another kind
        (b"\xc3" + good[1:] + bytes(64), "no reports"),  # with a ticket
        (batch(form, 1, 2)[:-1], "damaged"),
        (batch(form, 1) + flipped, "damaged"),
        (good[:1] + bytes(8) + good[9:], "another plan"),
        (good[:9] + b"\2" + good[10:], "another plan"),  # another round
        (report(form, USERS), "out of range"),
    ):
        told[reason] += 1
        status, said = client.send(bytes(body))
        assert (status, said["accepted"], said["refused"]) == (400, 0, {reason: 1}), body
        assert client.refused(reason) == told[reason], body
    assert not list(out.glob("*.reports"))


def test_other_kinds_of_content_are_refused_so_that_browsers_ask_first(client: Client, form: BatchForm) -> None:
    said = {"accepted": 0, "refused": {"form": 1}}
    said["why"] = "refused: requests whose content is not application/octet-stream"
    asked = client.get("/reports")
    assert (asked.status_code, asked.headers["allow"]) == (405, "POST")
    for kind in ("text/plain", ""):
        assert client.send(report(form, 1), **{"content-type": kind}) == (415, said)
    assert client.send(report(form, 1), **{"content-type": "Application/Octet-Stream; x=y"})[0] == 201


def test_pages_of_other_origins_are_let_in_only_as_told(serving: Serving, form: BatchForm) -> None:
    asking = {
        "origin": "https://a.example",
        "access-control-request-method": "POST",
        "access-control-request-headers": "content-type",
    }
    with serving() as client:
        assert "access-control-allow-origin" not in client.request("OPTIONS", "/reports", headers=asking).headers
    with serving(origins=["https://a.example"]) as client:
        told = client.request("OPTIONS", "/reports", headers=asking)
        assert (told.status_code, told.headers["access-control-allow-origin"]) == (200, "https://a.example")
        assert "POST" in told.headers["access-control-allow-methods"]
        other = client.request("OPTIONS", "/reports", headers={**asking, "origin": "https://b.example"})
        assert other.status_code == 400
        assert "access-control-allow-origin" not in other.headers
        never = client.request("OPTIONS", "/reports", headers={**asking, "access-control-request-method": "DELETE"})
        assert never.status_code == 400
        found = client.get("/round", headers={"origin": "https://a.example"})
        assert found.headers["access-control-allow-origin"] == "https://a.example"
        assert found.headers["access-control-expose-headers"] == "retry-after"
        assert client.send(report(form, 1), origin="https://a.example")[0] == 201


def test_the_plan_s_files_are_given_out_as_they_are_and_nothing_else(client: Client, folder: Path) -> None:
    (folder / "secret.json").write_text("{}")
    for name in ("plan.json", "README.txt", "bundle-1.json", "bundle-1.bin"):
        found = client.get(f"/{name}")
        assert (found.status_code, found.content) == (200, (folder / name).read_bytes())
    for name in ("plan.json.bak", "README.txt~", "bundle-1.bin.gz"):
        shutil.copy(folder / "plan.json", folder / name)
        assert client.get(f"/{name}").status_code == 404, name
        (folder / name).unlink()
    for name in ("secret.json", "..%2Fplan%2Fplan.json", "bundle-2.json", "round-1.json", "bundle-01.json", ".", "x"):
        assert client.get(f"/{name}").status_code in (404, 405), name
    (folder / "secret.json").unlink()


def test_a_pipe_of_a_public_name_is_not_opened(client: Client, folder: Path) -> None:
    os.mkfifo(folder / "bundle-7.json")
    try:
        assert client.get("/bundle-7.json").status_code == 404
    finally:
        (folder / "bundle-7.json").unlink()


def test_without_tickets_whoever_knows_a_number_uses_it_up_and_everybody_sees_when_reports_come(
    client: Client, form: BatchForm, out: Path
) -> None:
    """A forger is told whether the number had reported; its user's own report is then a duplicate."""
    assert client.send(report(form, 7, 1))[0] == 201
    assert client.get("/round").json()["reports"] == 1
    assert client.send(report(form, 7, 2))[0] == 409
    (kept,) = out.glob("*.reports")
    assert form.parse(kept.read_bytes()).answers[0, 0] == 1


def test_a_plan_without_a_bundle_says_so(tmp_path: Path, out: Path) -> None:
    plan_in(tmp_path / "plan")
    (tmp_path / "plan" / "bundle-1.bin").unlink()
    with Client(create_app(tmp_path / "plan", out)) as client:
        assert client.get("/round").json()["bundle"] is None
        assert client.get("/bundle-1.bin").status_code == 404


def test_a_request_that_is_too_large_is_refused_by_what_it_says_and_by_what_it_is(
    serving: Serving, form: BatchForm
) -> None:
    large = batch(form, *range(1000))

    async def chunks() -> AsyncIterator[bytes]:
        yield large[:500]
        yield large[500:]

    with serving(limits=Limits(body=len(large) - 1)) as client:
        for body in (large, chunks()):
            assert client.request("POST", "/reports", content=body, headers=OCTETS).status_code == 413
        assert client.refused("too large") == 2
        assert "cloister_held_bytes 0\n" in client.get("/metrics").text, "bytes beyond the limit are let go of too"
    with serving(limits=Limits(body=len(large))) as client:
        assert client.send(large)[1]["accepted"] == 1000


def test_more_bytes_under_way_than_memory_is_given_to_are_sent_back(serving: Serving, form: BatchForm) -> None:
    with serving(limits=Limits(pending_bytes=100)) as client:
        status, said = client.send(batch(form, *range(50)))
        assert (status, said["refused"]) == (503, {"busy": 1})
        assert client.send(report(form, 1))[0] == 201
        assert "cloister_held_bytes 0\n" in client.get("/metrics").text


def test_one_address_holds_a_quarter_of_the_bytes_under_way_and_this_machine_s_proxy_all(
    folder: Path, out: Path, form: BatchForm
) -> None:
    """Who sends without an end keeps nobody else out."""
    body, statuses = batch(form, *range(50)), dict[str, int]()
    for peer, rate in (("203.0.113.5", 100.0), ("127.0.0.1", 100.0), ("203.0.113.6", 0.0)):
        app = create_app(folder, out, limits=Limits(pending_bytes=2 * len(body), rate=rate))
        with Client(app, client=(peer, 4711)) as client:
            statuses[peer] = client.send(body)[0]
            assert client.refused("busy") == (statuses[peer] == 503)
            assert (app.state.collector.counts.pending_bytes, len(app.state.collector.pending)) == (0, 0)
            assert client.send(report(form, 1))[0] in (201, 409), "what was held is let go of"
    assert statuses == {"203.0.113.5": 503, "127.0.0.1": 200, "203.0.113.6": 200}


def test_an_address_that_asks_too_often_is_told_when_to_come_again(serving: Serving, form: BatchForm) -> None:
    with serving(limits=Limits(rate=0.001)) as client:
        assert client.send(report(form, 1))[0] == 201
        headers = {**OCTETS, "x-forwarded-for": "127.0.0.1"}
        found = client.request("POST", "/reports", content=report(form, 2), headers=headers)
        assert (found.status_code, found.json()["refused"]) == (429, {"too many": 1})
        assert int(found.headers["retry-after"]) > 900
        assert "cloister_addresses_remembered 1\n" in client.get("/metrics").text


def test_a_full_disk_acknowledges_nothing_and_is_seen_in_the_health_and_told(
    serving: Serving, form: BatchForm, monkeypatch: pytest.MonkeyPatch
) -> None:
    told, append = list[dict[str, Any]](), Segments.append
    with serving(on_event=told.append) as client:
        for step in ("append", "try_again"):
            monkeypatch.setattr(Segments, step, Mock(side_effect=OSError(28, "No space left on device")))
        sent = client.request("POST", "/reports", content=report(form, 1), headers=OCTETS)
        assert (sent.status_code, sent.json()["refused"], sent.headers["retry-after"]) == (503, {"disk": 1}, "5")
        found = client.get("/health")
        facts = {"state": "taking reports", "watching": True, "waiting": False, "disk": "No space left on device"}
        assert (found.status_code, found.json()) == (503, {"ready": False, **facts})
        assert client.get("/alive").status_code == 503
        monkeypatch.setattr(Segments, "append", append)
        assert client.send(report(form, 1))[0] == 201
        assert client.get("/health").status_code == client.get("/alive").status_code == 200
    assert told == [{"event": "disk", "why": "No space left on device"}, {"event": "disk works"}]


def test_a_disk_that_may_not_be_written_is_seen_by_everybody_and_whose_it_is_by_the_log_alone(
    serving: Serving, form: BatchForm, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told, shut = list[dict[str, Any]](), out.parent / "shut"
    shut.mkdir(0o000)
    with serving(on_event=told.append) as client:
        for step in ("append", "try_again"):
            monkeypatch.setattr(Segments, step, Mock(side_effect=PermissionError(13, "Permission denied", str(shut))))
        status, said = client.send(report(form, 1))
        assert (status, client.get("/health").json()["disk"]) == (503, "Permission denied")
        for answer in (json.dumps(said), client.get("/health").text, client.get("/metrics").text):
            assert "shut" not in answer
    assert str(shut) in told[0]["why"]


@pytest.fixture(scope="module")
def issuer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The public half of an issuer's key."""
    return new_key(tmp_path_factory.mktemp("issuer") / "issuer.key")


@pytest.fixture(scope="module")
def tickets(issuer: Path, plan: CollectionPlan) -> list[bytes]:
    """Of the first 30 numbers."""
    return list(mint(read_key(issuer.with_suffix(".key")), plan.hash, range(30)))


NONE = bytes(64)
"""What is no ticket."""


def signed(form: BatchForm, tickets: Sequence[bytes]) -> bytes:
    """A batch of reports of the first numbers, with these tickets."""
    users = np.arange(len(tickets), dtype=np.uint64)
    signs = np.frombuffer(b"".join(tickets), np.uint8).reshape(-1, 64)
    return form.batch(users, np.zeros((len(tickets), form.width), np.uint8), signs)


def test_with_an_issuer_only_reports_with_her_ticket_for_their_number_count(
    serving: Serving, out: Path, plan: CollectionPlan, issuer: Path, tickets: list[bytes]
) -> None:
    form, plain, known = form_of(plan, tickets=True), form_of(plan), Issuer.read(issuer)
    with serving(issuer=known) as client:
        for status in (201, 409):
            assert client.send(form.report(3, bytes(form.width), tickets[3]))[0] == status
        wrong = form.report(4, bytes(form.width), tickets[5])
        for body in (wrong, report(plain, 4), batch(plain, 4), report(plain, 3)):
            status, said = client.send(body)
            assert (status, said["refused"]) == (401, {"ticket": 1})
        all_but_one = signed(form, [*tickets[:7], NONE, *tickets[8:]])
        assert client.send(all_but_one) == (200, {"accepted": 28, "refused": {"ticket": 1, "duplicate": 1}})
    # the disk holds reports, and no tickets
    assert sorted(on_disk(out, plain).tolist()) == [n for n in range(30) if n != 7]
    assert not any(ticket in b"".join(p.read_bytes() for p in out.iterdir()) for ticket in tickets)
    with serving(issuer=known, limits=Limits(tickets=10)) as client:
        assert client.send(signed(form, tickets[:11]))[0] == 413, "more than can be checked in time"


def test_who_has_no_ticket_costs_no_more_by_many_reports_and_many_tickets_are_checked_one_request_at_a_time(
    folder: Path,
    out: Path,
    plan: CollectionPlan,
    issuer: Path,
    tickets: list[bytes],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    app = create_app(folder, out, issuer=Issuer.read(issuer))
    real, looked, form = Issuer.valid, list[tuple[int, bool]](), form_of(plan, tickets=True)

    def valid(issuer: Issuer, of: str, pairs: Iterable[tuple[int, bytes]]) -> list[bool]:
        given = list(pairs)
        looked.append((len(given), app.state.collector._checking.locked()))
        return real(issuer, of, given)

    monkeypatch.setattr(Issuer, "valid", valid)
    with Client(app) as client:
        assert client.send(signed(form, [NONE] * 30)) == (401, {"accepted": 0, "refused": {"ticket": 1}, "why": ANY})
        assert looked == [(16, False)]
        one = signed(form, [tickets[0], *[NONE] * 29])
        assert client.send(one) == (200, {"accepted": 1, "refused": {"ticket": 29}})
        assert looked[1:] == [(16, False), (14, True)]


def test_an_error_of_ours_is_said_without_what_was_sent(
    serving: Serving, form: BatchForm, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = list[dict[str, Any]]()
    monkeypatch.setattr(collector.Collector, "receive", lambda self, body: {}[body])
    with serving(on_event=told.append) as client:
        found = client.request("POST", "/reports", content=report(form, 1), headers=OCTETS)
    assert (found.status_code, told) == (500, [{"event": "fault", "what": "KeyError"}])


def test_a_long_request_of_tiny_batches_does_not_hold_up_the_others(
    client: Client, form: BatchForm, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Megabytes of batches of nothing take a second to read: not one of the loop that answers everybody."""
    parse, threads = BatchForm.parse, list[str]()

    def noted(self: BatchForm, data: bytes) -> Parsed:
        threads.append(threading.current_thread().name)
        return parse(self, data)

    monkeypatch.setattr(BatchForm, "parse", noted)
    many = batch(form) * (collector.SHORT // len(batch(form)))
    for body in (batch(form, 1), many + batch(form, 2)):
        assert client.send(body) == (200, {"accepted": 1, "refused": {}})
    assert [name.startswith("asyncio_") for name in threads] == [False, True]
