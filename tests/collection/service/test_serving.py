"""A collector as a program: killed, ended, on a full disk, over TLS; and what is left of those who reported."""

from __future__ import annotations

import itertools
import os
import random
import signal
import socket
import ssl
import threading
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest

from cloister.collection.plan.plan import CollectionPlan
from cloister.collection.server.aggregator import decode
from cloister.collection.service.running import FILES
from cloister.collection.service.segments import LOCK
from cloister.collection.wire.batches import BatchForm
from cloister.federated.transport.certificates import COORDINATOR_NAME, make_test_certificates
from tests.collection.service.collectors import (
    OCTETS,
    USERS,
    batch,
    collecting,
    form_of,
    on_disk,
    plan_in,
    post,
    report,
)
from tests.waiting import PATIENCE, until

pytestmark = pytest.mark.thorough


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> CollectionPlan:
    return plan_in(tmp_path_factory.mktemp("plan") / "plan")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    plan_in(tmp_path / "plan")
    return tmp_path


class Load:
    """People who report until they are acknowledged, over several connections, one by one and in batches."""

    def __init__(self, form: BatchForm, address: str) -> None:
        self.form, self.address, self.acknowledged, self.stopped = form, address, list[int](), False
        self._next, self._lock = iter(range(USERS)), threading.Lock()
        self._threads = [threading.Thread(target=self._lane, args=(lane,)) for lane in range(4)]
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Wait until all have ended."""
        self.stopped = True
        for thread in self._threads:
            thread.join()

    def _lane(self, lane: int) -> None:
        rng = random.Random(lane)
        with httpx.Client() as client:
            while not self.stopped:
                with self._lock:
                    users = list(itertools.islice(self._next, 1 if lane % 2 else rng.randrange(2, 9)))
                body = report(self.form, users[0]) if len(users) == 1 else batch(self.form, *users)
                self._until_acknowledged(client, users, body)

    def _until_acknowledged(self, client: httpx.Client, users: list[int], body: bytes) -> None:
        tried = False
        while not self.stopped:
            try:
                found = client.post(f"{self.address}/reports", content=body, headers=OCTETS)
            except httpx.HTTPError:  # it was killed: whoever asks again learns what became of the first try
                tried = True
                time.sleep(0.01)
                continue
            assert found.status_code in (200, 201, 409), found.text
            said = found.json()
            assert said["accepted"] + said["refused"].get("duplicate", 0) == len(users)
            assert tried or not said["refused"]
            self.acknowledged += users
            return


@pytest.mark.parametrize("kills", [4, pytest.param(50, marks=pytest.mark.long)])
def test_kills_under_load_lose_nothing_acknowledged_and_nothing_counts_twice(kills: int, folder: Path) -> None:
    plan = CollectionPlan.read(folder / "plan")
    form, rng, out, port = form_of(plan), random.Random(0), folder / "reports", 0

    def kept() -> list[int]:
        """User numbers of all whole batches."""
        found = [user for path in out.glob("*.reports") for user in form.parse(path.read_bytes()).users.tolist()]
        assert len(set(found)) == len(found)
        return found

    with ExitStack() as stack:
        load: Any = None
        for _ in range(kills):
            with collecting(folder, "--port", str(port)) as process:
                port = process.port
                if load is None:
                    load = Load(form, process.address)
                    stack.callback(load.stop)
                time.sleep(rng.random() * 0.15)
                known = list(load.acknowledged)
                process.kill()
            assert set(known) <= set(kept())
        with collecting(folder, "--port", str(port)) as process:
            time.sleep(0.2)
            load.stop()
            assert process.end() == 0
    assert sorted(kept()) == sorted(on_disk(out, form).tolist()), "all batches are whole"
    assert set(load.acknowledged) <= set(kept())
    assert len(load.acknowledged) > 100
    assert decode(plan, out, accept_shares=True).intake.accepted == len(kept())


@pytest.mark.parametrize("by", [signal.SIGTERM, signal.SIGINT])
def test_told_to_end_it_answers_what_is_under_way_and_says_what_is_on_the_disk(
    folder: Path, plan: CollectionPlan, by: signal.Signals
) -> None:
    form = form_of(plan)
    with collecting(folder) as process:
        for user in (0, 1, 2, 3, 3):
            post(process.address, report(form, user))
        with socket.create_connection(("127.0.0.1", process.port), timeout=10) as line:
            body = report(form, 4)
            fields = f"host: x\r\ncontent-length: {len(body)}\r\ncontent-type: {OCTETS['content-type']}"
            line.sendall(f"POST /reports HTTP/1.1\r\n{fields}\r\n\r\n".encode() + body[:5])
            time.sleep(0.3)
            ending = threading.Thread(target=process.end, args=(by,))
            ending.start()
            time.sleep(0.3)
            line.sendall(body[5:])
            assert line.recv(1000).startswith(b"HTTP/1.1 201")
        ending.join()
    assert "WARNING" not in process.stderr
    assert process.said[-1] == '{"event": "end", "accepted": 5, "reports": 5, "refused": {"duplicate": 1}}\n'
    assert on_disk(folder / "reports", form).tolist() == list(range(5))
    with collecting(folder) as process:
        assert '"reports": 5' in process.said[0]


SECRETS = {
    "user-agent": "Mozilla-of-Ann",
    "cookie": "session=Bob",
    "x-forwarded-for": "203.0.113.77",
    "referer": "http://carol/",
    "x-real-ip": "203.0.113.78",
    "authorization": "Bearer dave",
}


def test_no_address_port_time_or_header_of_a_report_is_written_anywhere(folder: Path, plan: CollectionPlan) -> None:
    """All that a collector wrote or printed is read for what a report came with: good and bad ones, HTTP and not."""
    form, started, ports = form_of(plan), int(time.time()), list[int]()

    def send(content: bytes, answered: bool) -> None:
        with socket.socket() as line:
            line.bind(("127.66.55.44", 0))  # an address of this machine that appears nowhere else
            line.connect(("127.0.0.1", process.port))
            ports.append(line.getsockname()[1])
            line.sendall(content)
            assert not answered or line.recv(1000)

    with collecting(folder, "--timeout", "1") as process:
        for body in (*(report(form, user, 1) for user in range(8)), report(form, 3), b"nonsense", report(form, USERS)):
            fields = {**OCTETS, **SECRETS, "host": "collector", "content-length": str(len(body))}
            head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
            send(f"POST /reports?q=erin HTTP/1.1\r\n{head}\r\n".encode() + body, answered=True)
        for broken in (b"\x16\x03\x01 no HTTP\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"POST /reports HTTP/1.1\r\n"):
            send(broken, answered=False)
        time.sleep(2.2)
        metrics = httpx.get(f"{process.address}/metrics").text + httpx.get(f"{process.address}/round").text
        assert process.end() == 0
    (segment,) = (folder / "reports").glob("*.reports")
    kept = segment.read_bytes()
    # the files are the reports and nothing else
    assert sorted(path.name for path in (folder / "reports").iterdir()) == [LOCK, segment.name]
    assert (folder / "reports" / LOCK).read_bytes() == b""
    assert on_disk(folder / "reports", form).tolist() == list(range(8))
    assert segment.stat().st_mtime == 0
    said = ("".join(process.said) + process.stderr + metrics).replace(str(process.port), "")
    for secret in [*SECRETS.values(), "127.66.55.44", "erin", "44.55.66.127", *map(str, ports)]:
        assert secret not in said
        assert secret.encode() not in kept
    for second in range(started - 1, int(time.time()) + 2):
        assert str(second) not in said
        for stamp in (time.gmtime(second), time.localtime(second)):
            assert time.strftime("%H:%M:%S", stamp) not in said
    assert process.stderr == ""


def test_with_a_certificate_it_speaks_tls_and_nothing_else(folder: Path, plan: CollectionPlan) -> None:
    make_test_certificates(folder, ())
    own = (
        "--cert",
        f"{COORDINATOR_NAME}.pem",
        "--key",
        f"{COORDINATOR_NAME}.key",
        "--timeout",
        "1",
        "--connections",
        "9",
    )
    with collecting(folder, "--host", "0.0.0.0", "--connections", "9", *own) as process:
        assert process.address == f"https://0.0.0.0:{process.port}"
        line = ("127.0.0.1", process.port)
        trusted = ssl.create_default_context(cafile=str(folder / "ca.pem"))
        trusted.verify_flags &= ~ssl.VERIFY_X509_STRICT  # test certificates name no key of their authority
        with httpx.Client(verify=trusted, base_url=f"https://127.0.0.1:{process.port}") as client:
            known: Any = {"headers": OCTETS, "extensions": {"sni_hostname": COORDINATOR_NAME}}
            assert client.post("/reports", content=report(form_of(plan), 1), **known).status_code == 201
            with pytest.raises(httpx.HTTPError):
                httpx.get(f"http://127.0.0.1:{process.port}/round")
            for noise in (b"hello\r\n\r\n", os.urandom(300), b""):
                with socket.create_connection(line) as other:
                    other.sendall(noise)
            assert client.get("/health", **known).status_code == 200
            with ExitStack() as stack:  # who never says hello takes no more than her part of the process's files
                silent = [stack.enter_context(socket.create_connection(line)) for _ in range(9 + FILES // 2)]
                silent[-1].settimeout(PATIENCE)
                assert silent[-1].recv(1) == b""
            until(lambda: client.get("/health", **known).status_code == 200)
        assert process.end() == 0
    assert process.stderr == ""


def test_a_bundle_that_is_altered_is_said(folder: Path) -> None:
    path = folder / "plan" / "bundle-1.json"
    path.write_bytes(path.read_bytes().replace(b'"round":1', b'"round":1 '))
    with collecting(folder) as process:
        assert process.end() == 0
    assert "bundle-1 in plan is not what this plan says" in process.stderr
    assert "'cloister bundle plan --check'" in process.stderr
