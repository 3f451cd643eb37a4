"""The collector's answers, request by request, in the process of the tests."""

from __future__ import annotations

import hashlib
import threading
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cloister.collection.plan.bundle import Bundle
from cloister.collection.plan.plan import CollectionPlan
from cloister.collection.service.app import collector
from cloister.collection.service.limits import Limits
from cloister.collection.service.segments import Segments
from cloister.collection.service.tickets import Issuer, mint, new_key, read_key
from cloister.collection.wire.batches import BatchForm, Parsed
from cloister.core.errors import Damaged
from tests.collection.service.collectors import OCTETS, USERS, Client, batch, form_of, on_disk, plan_in, report


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("plans") / "plan"
    plan_in(folder)
    return folder


@pytest.fixture(scope="module")
def plan(folder: Path) -> CollectionPlan:
    return CollectionPlan.read(folder)


@pytest.fixture
def client(folder: Path, tmp_path: Path) -> Iterator[Client]:
    with Client(collector(folder, tmp_path / "out")) as client:
        yield client


def test_a_report_is_acknowledged_once_and_is_on_the_disk_then(
    client: Client, plan: CollectionPlan, tmp_path: Path
) -> None:
    form = form_of(plan)
    assert client.send(report(form, 17, 3)) == (201, {"accepted": 1, "refused": {}})
    assert on_disk(tmp_path / "out", form).tolist() == [17]
    assert client.send(report(form, 17, 4)) == (409, {"accepted": 0, "refused": {"duplicate": 1}})
    assert on_disk(tmp_path / "out", form).tolist() == [17]
    assert client.get("/round").json()["reports"] == 1


def test_a_batch_is_told_how_many_count_and_why_others_do_not(
    client: Client, plan: CollectionPlan, tmp_path: Path
) -> None:
    form = form_of(plan)
    client.send(report(form, 5))
    sent = batch(form, 1, 2, 2, 5, USERS, 2**63) + batch(form, 3, 1)
    assert client.send(sent) == (200, {"accepted": 3, "refused": {"out of range": 2, "duplicate": 3}})
    assert sorted(on_disk(tmp_path / "out", form).tolist()) == [1, 2, 3, 5]
    assert client.send(batch(form)) == (200, {"accepted": 0, "refused": {}})
    assert client.refused("duplicate") == 3


def test_a_batch_with_one_report_is_a_batch(client: Client, plan: CollectionPlan) -> None:
    assert client.send(batch(form_of(plan), 1))[0] == 200
    assert client.send(batch(form_of(plan), 1))[0] == 200


def wrong(plan: CollectionPlan) -> dict[str, tuple[bytes, int, str]]:
    form = form_of(plan)
    good, many = report(form, 7), bytearray(batch(form, 8, 9))
    many[-1] ^= 1
    return {
        "nothing": (b"", 400, "no reports"),
        "noise": (b"hello, world", 400, "no reports"),
        "another kind": (b"\xc7" + good[1:], 400, "no reports"),
        "with a ticket": (b"\xc3" + good[1:] + bytes(64), 400, "no reports"),
        "cut": (good[:-1], 400, "damaged"),
        "half a batch": (batch(form, 1, 2)[:-1], 400, "damaged"),
        "more behind": (good + b"\0", 400, "damaged"),
        "a flipped bit": (bytes(many), 400, "damaged"),
        "a good one and a bad one": (batch(form, 1) + bytes(many), 400, "damaged"),
        "a huge count": (batch(form)[:10] + b"\xff" * 8, 400, "damaged"),
        "another stamp": (good[:1] + bytes(8) + good[9:], 400, "another plan"),
        "another round": (good[:9] + b"\2" + good[10:], 400, "another plan"),
        "out of range": (report(form, USERS), 400, "out of range"),
    }


def test_a_request_that_is_wrong_is_refused_whole_and_counted(
    client: Client, plan: CollectionPlan, tmp_path: Path
) -> None:
    told = Counter[str]()
    for name, (body, status, reason) in wrong(plan).items():
        found, said = client.send(body)
        told[reason] += 1
        assert (found, said["accepted"], said["refused"]) == (status, 0, {reason: 1}), name
        assert client.refused(reason) == told[reason], name
    assert not list((tmp_path / "out").glob("*.reports"))


def test_other_kinds_of_content_are_refused_so_that_browsers_ask_first(client: Client, plan: CollectionPlan) -> None:
    body = report(form_of(plan), 1)
    for kind in ("text/plain", "application/x-www-form-urlencoded", ""):
        assert client.send(body, **{"content-type": kind}) == (
            415,
            {
                "accepted": 0,
                "refused": {"form": 1},
                "why": "refused: requests whose content is not application/octet-stream",
            },
        )
    assert client.send(body, **{"content-type": "Application/Octet-Stream; x=y"})[0] == 201


def test_pages_of_other_origins_are_let_in_only_as_told(folder: Path, tmp_path: Path, plan: CollectionPlan) -> None:
    asking = {
        "origin": "https://a.example",
        "access-control-request-method": "POST",
        "access-control-request-headers": "content-type",
    }
    with Client(collector(folder, tmp_path / "none")) as client:
        assert "access-control-allow-origin" not in client.request("OPTIONS", "/reports", headers=asking).headers
    with Client(collector(folder, tmp_path / "out", origins=["https://a.example"])) as client:
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
        assert client.send(report(form_of(plan), 1), origin="https://a.example")[0] == 201


def test_the_plan_s_files_are_given_out_as_they_are_and_nothing_else(client: Client, folder: Path) -> None:
    (folder / "secret.json").write_text("{}")
    for name in ("plan.json", "README.txt", "bundle-1.json", "bundle-1.bin"):
        found = client.get(f"/{name}")
        assert (found.status_code, found.content) == (200, (folder / name).read_bytes())
    for name in ("secret.json", "..%2Fplan%2Fplan.json", "bundle-2.json", "round-1.json", "bundle-01.json", ".", "x"):
        assert client.get(f"/{name}").status_code in (404, 405), name
    (folder / "secret.json").unlink()


def test_the_round_says_what_a_device_needs_to_go_on(client: Client, plan: CollectionPlan, folder: Path) -> None:
    content = (folder / "bundle-1.json").read_bytes()
    assert client.get("/round").json() == {
        "plan": plan.hash,
        "round": 1,
        "rounds": 1,
        "head": plan.hash,
        "open": True,
        "reports": 0,
        "bundle": "/bundle-1.json",
        "sha256": hashlib.sha256(content).hexdigest(),
    }
    assert client.get("/round").json()["sha256"] == Bundle.read(folder, 1).sha256


def test_a_plan_without_a_bundle_says_so(tmp_path: Path) -> None:
    plan_in(tmp_path / "plan")
    (tmp_path / "plan" / "bundle-1.bin").unlink()
    with Client(collector(tmp_path / "plan", tmp_path / "out")) as client:
        assert client.get("/round").json()["bundle"] is None
        assert client.get("/bundle-1.bin").status_code == 404


def test_only_those_methods_that_are_meant(client: Client) -> None:
    asked = client.get("/reports")
    assert (asked.status_code, asked.headers["allow"]) == (405, "POST")
    assert "by POST" in asked.text
    for method in ("put", "delete", "patch"):
        for path in ("/reports", "/round", "/plan.json", "/metrics"):
            assert client.request(method, path).status_code == 405
    assert client.request("POST", "/round").status_code == 405


async def chunks(body: bytes) -> AsyncIterator[bytes]:
    yield body[:500]
    yield body[500:]


def limited(folder: Path, out: Path, **limits: Any) -> Client:
    return Client(collector(folder, out, limits=Limits(**limits)))


def test_a_request_that_is_too_large_is_refused_by_what_it_says_and_by_what_it_is(
    folder: Path, tmp_path: Path, plan: CollectionPlan
) -> None:
    form = form_of(plan)
    large = form.batch(np.arange(1000, dtype=np.uint64), np.zeros((1000, form.width), np.uint8))
    with limited(folder, tmp_path / "out", body=len(large) - 1) as client:
        assert client.send(large)[0] == 413
        found = client.request("POST", "/reports", content=chunks(large), headers=OCTETS)
        assert found.status_code == 413
        assert client.refused("too large") == 2
        assert client.send(large[:-1])[0] == 400  # not too large
    with limited(folder, tmp_path / "out", body=len(large)) as client:
        assert client.send(large)[1]["accepted"] == 1000


def test_more_bytes_under_way_than_memory_is_given_to_are_sent_back(
    folder: Path, tmp_path: Path, plan: CollectionPlan
) -> None:
    with limited(folder, tmp_path / "out", held=100) as client:
        status, said = client.send(batch(form_of(plan), *range(50)))
        assert (status, said["refused"]) == (503, {"busy": 1})
        assert client.send(report(form_of(plan), 1))[0] == 201
        assert "cloister_held_bytes 0\n" in client.get("/metrics").text


def test_an_address_that_asks_too_often_is_told_when_to_come_again(
    folder: Path, tmp_path: Path, plan: CollectionPlan
) -> None:
    form = form_of(plan)
    with limited(folder, tmp_path / "out", rate=0.001) as client:
        assert client.send(report(form, 1))[0] == 201
        found = client.request(
            "POST", "/reports", content=report(form, 2), headers={**OCTETS, "x-forwarded-for": "127.0.0.1"}
        )
        assert (found.status_code, found.json()["refused"]) == (429, {"too many": 1})
        assert int(found.headers["retry-after"]) > 900
        assert "cloister_addresses_remembered 1\n" in client.get("/metrics").text


def test_a_full_disk_acknowledges_nothing_and_is_seen_in_the_health(
    client: Client, plan: CollectionPlan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    form, append = form_of(plan), Segments.append

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    assert client.get("/health").json() == {"ready": True, "disk": None}
    monkeypatch.setattr(Segments, "append", full)
    monkeypatch.setattr(Segments, "try_again", full)
    status, said = client.send(report(form, 1))
    assert (status, said["refused"]) == (503, {"disk": 1})
    found = client.get("/health")
    assert (found.status_code, found.json()) == (503, {"ready": False, "disk": "No space left on device"})
    monkeypatch.setattr(Segments, "append", append)
    assert client.send(report(form, 1))[0] == 201
    assert client.get("/health").status_code == 200


@pytest.fixture(scope="module")
def key(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("issuer") / "issuer.key"
    new_key(path)
    return path


def test_with_an_issuer_only_reports_with_her_ticket_for_their_number_count(
    folder: Path, tmp_path: Path, plan: CollectionPlan, key: Path
) -> None:
    form, plain = form_of(plan, tickets=True), form_of(plan)
    tickets = list(mint(read_key(key), plan.hash, range(30)))
    answer = bytes(form.width)
    issuer = Issuer.read(key.with_suffix(".pub"))
    with Client(collector(folder, tmp_path / "out", issuer=issuer)) as client:
        assert client.send(form.report(3, answer, tickets[3]))[0] == 201
        assert client.send(form.report(3, answer, tickets[3]))[0] == 409
        for body in (form.report(4, answer, tickets[5]), report(plain, 4), batch(plain, 4), report(plain, 3)):
            status, said = client.send(body)
            assert (status, said["refused"]) == ((401), {"ticket": 1})
        users = np.arange(30, dtype=np.uint64)
        signed = np.frombuffer(b"".join(tickets), np.uint8).reshape(30, 64).copy()
        signed[7] = 0
        status, said = client.send(form.batch(users, np.zeros((30, form.width), np.uint8), signed))
        assert (status, said) == (200, {"accepted": 28, "refused": {"ticket": 1, "duplicate": 1}})
    # the disk holds reports, and no tickets
    assert sorted(on_disk(tmp_path / "out", plain).tolist()) == [n for n in range(30) if n != 7]
    assert not any(ticket in b"".join(p.read_bytes() for p in (tmp_path / "out").iterdir()) for ticket in tickets)


def test_a_request_with_more_tickets_than_can_be_checked_in_time_is_too_large(
    folder: Path, tmp_path: Path, plan: CollectionPlan, key: Path
) -> None:
    form, issuer = form_of(plan, tickets=True), Issuer.read(key.with_suffix(".pub"))
    app = collector(folder, tmp_path / "out", issuer=issuer, limits=Limits(tickets=10))
    with Client(app) as client:
        many = np.arange(11, dtype=np.uint64)
        body = form.batch(many, np.zeros((11, form.width), np.uint8), np.zeros((11, 64), np.uint8))
        assert client.send(body)[0] == 413


def test_what_was_acknowledged_is_known_after_a_restart(folder: Path, tmp_path: Path, plan: CollectionPlan) -> None:
    form = form_of(plan)
    for start in range(3):
        with Client(collector(folder, tmp_path / "out")) as client:
            assert client.get("/round").json()["reports"] == start
            assert client.send(report(form, start))[0] == 201
            assert [client.send(report(form, user))[0] for user in range(start + 1)] == [409] * (start + 1)


def test_a_collector_that_could_not_be_made_holds_no_lock(folder: Path, tmp_path: Path, plan: CollectionPlan) -> None:
    plan_in(tmp_path / "other", seed=2)
    with Client(collector(folder, tmp_path / "out")) as client:
        client.send(report(form_of(plan), 1))
    with pytest.raises(Damaged, match="another plan"):
        collector(tmp_path / "other", tmp_path / "out")
    with Client(collector(folder, tmp_path / "out")):
        pass


def test_an_error_of_ours_is_said_without_what_was_sent(
    folder: Path, tmp_path: Path, plan: CollectionPlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = list[dict[str, Any]]()
    app = collector(folder, tmp_path / "out", told=told.append)
    with Client(app) as client:
        monkeypatch.setattr(app.state.desk, "receive", lambda body: {}[body])
        found = client.request("POST", "/reports", content=report(form_of(plan), 1), headers=OCTETS)
        assert (found.status_code, told) == (500, [{"event": "fault", "what": "KeyError"}])


def test_a_long_request_of_tiny_batches_does_not_hold_up_the_others(
    client: Client, plan: CollectionPlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Four megabytes of batches of nothing take a second to read: not one of the loop that answers everybody."""
    form, parse, threads = form_of(plan), BatchForm.parse, list[str]()

    def noted(self: BatchForm, data: bytes) -> Parsed:
        threads.append(threading.current_thread().name)
        return parse(self, data)

    monkeypatch.setattr(BatchForm, "parse", noted)
    many = batch(form) * (2**22 // len(batch(form)) - 2)
    for body in (batch(form, 1), many + batch(form, 2)):
        assert client.send(body) == (200, {"accepted": 1, "refused": {}})
    assert [name.startswith("asyncio_") for name in threads] == [False, True]
