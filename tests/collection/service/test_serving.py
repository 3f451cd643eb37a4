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
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest

from cloister.collection.server.aggregator import decode
from cloister.collection.service.app import create_app
from cloister.collection.service.segments import LOCK
from cloister.collection.wire.batches import BatchForm
from cloister.core.errors import InvalidInput
from cloister.federated.transport.certificates import COORDINATOR_NAME, make_test_certificates
from tests.collection.service.collectors import (
    OCTETS,
    USERS,
    Process,
    batch,
    collecting,
    form_of,
    on_disk,
    plan_in,
    post,
    report,
)
from tests.waiting import until

pytestmark = pytest.mark.thorough


@pytest.fixture(scope="module")
def form(tmp_path_factory: pytest.TempPathFactory) -> BatchForm:
    """That of the reports of the plan that is collected for."""
    return form_of(plan_in(tmp_path_factory.mktemp("plan") / "plan"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    plan_in(tmp_path / "plan")
    return tmp_path


LANES = 4


class Load:
    """People who report until they are acknowledged, over several connections, one by one and in batches."""

    def __init__(self, form: BatchForm, address: str) -> None:
        self.form, self.address, self.acknowledged, self.stopped = form, address, list[int](), False
        self._pool = ThreadPoolExecutor(LANES)
        self._lanes = [self._pool.submit(self._lane, lane) for lane in range(LANES)]

    def stop(self) -> None:
        """Wait until all have ended. Raises: AssertionError: somebody was told what is wrong."""
        self.stopped = True
        for lane in self._lanes:
            lane.result()

    def _lane(self, lane: int) -> None:
        rng, left, users = random.Random(lane), iter(range(lane, USERS, LANES)), list[int]()
        with httpx.Client() as client:
            while not self.stopped:
                tried = bool(users)
                users = users or list(itertools.islice(left, 1 if lane % 2 else rng.randrange(2, 9)))
                body = report(self.form, users[0]) if len(users) == 1 else batch(self.form, *users)
                try:
                    found = client.post(f"{self.address}/reports", content=body, headers=OCTETS)
                except httpx.HTTPError:  # it was killed: whoever asks again learns what became of the first try
                    time.sleep(0.01)
                    continue
                assert found.status_code in (200, 201, 409), found.text
                said = found.json()
                assert said["accepted"] + said["refused"].get("duplicate", 0) == len(users)
                assert tried or not said["refused"]
                self.acknowledged += users
                users = []


@pytest.mark.parametrize("kills", [4, pytest.param(50, marks=pytest.mark.long)])
def test_kills_under_load_lose_nothing_acknowledged_and_nothing_counts_twice(
    kills: int, folder: Path, form: BatchForm
) -> None:
    rng, out, port = random.Random(0), folder / "reports", 0

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
            until(lambda: len(load.acknowledged) > 100)
            load.stop()
            assert process.end() == 0
    assert sorted(kept()) == sorted(on_disk(out, form).tolist()), "all batches are whole"
    assert set(load.acknowledged) <= set(kept())
    assert decode(folder / "plan", out, accept_shares=True).intake.accepted == len(kept())


@pytest.mark.parametrize("by", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT])
def test_told_to_end_it_answers_what_is_under_way_and_says_what_is_on_the_disk(
    folder: Path, form: BatchForm, by: signal.Signals
) -> None:
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


def test_a_second_ctrl_c_leaves_no_time_of_a_report_either(folder: Path, form: BatchForm) -> None:
    with collecting(folder) as process, socket.create_connection(("127.0.0.1", process.port)) as line:
        post(process.address, report(form, 0))
        line.sendall(f"POST /reports HTTP/1.1\r\nhost: x\r\ncontent-type: {OCTETS['content-type']}\r\n".encode())
        line.sendall(b"content-length: 99\r\n\r\n")
        time.sleep(0.3)
        process.send(signal.SIGINT)
        time.sleep(0.3)
        assert process.end(signal.SIGINT) == 0
    assert [path.stat().st_mtime for path in (folder / "reports").glob("*.reports")] == [0]


SECRETS = {
    "user-agent": "Mozilla-of-Ann",
    "cookie": "session=Bob",
    "x-forwarded-for": "203.0.113.77",
    "referer": "http://carol/",
    "x-real-ip": "203.0.113.78",
    "authorization": "Bearer dave",
}


def test_no_address_port_time_or_header_of_a_report_is_written_anywhere(folder: Path, form: BatchForm) -> None:
    """All that a collector wrote or printed is read for what a report came with: good and bad ones, HTTP and not."""
    started, ports = int(time.time()), list[int]()

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


def test_with_a_certificate_it_speaks_tls_and_nothing_else(folder: Path, form: BatchForm) -> None:
    make_test_certificates(folder, ())
    own = f"--host 0.0.0.0 --cert {COORDINATOR_NAME}.pem --key {COORDINATOR_NAME}.key --timeout 1 --connections 9"
    with collecting(folder, *own.split()) as process:
        assert process.address == f"https://0.0.0.0:{process.port}"
        line = ("127.0.0.1", process.port)
        trusted = ssl.create_default_context(cafile=str(folder / "ca.pem"))
        trusted.verify_flags &= ~ssl.VERIFY_X509_STRICT  # test certificates name no key of their authority
        with httpx.Client(verify=trusted, base_url=f"https://127.0.0.1:{process.port}") as client:
            known: Any = {"headers": OCTETS, "extensions": {"sni_hostname": COORDINATOR_NAME}}
            assert client.post("/reports", content=report(form, 1), **known).status_code == 201
            with pytest.raises(httpx.HTTPError):
                httpx.get(f"http://127.0.0.1:{process.port}/round")
            for noise in (b"hello\r\n\r\n", os.urandom(300), b""):
                with socket.create_connection(line) as other:
                    other.sendall(noise)
            assert client.get("/health", **known).status_code == 200
        assert process.end() == 0
    assert process.stderr == ""


def test_a_bundle_that_is_altered_is_said(folder: Path) -> None:
    path = folder / "plan" / "bundle-1.json"
    path.write_bytes(path.read_bytes().replace(b'"round":1', b'"round":1 '))
    with collecting(folder) as process:
        assert process.end() == 0
    assert "bundle-1 in plan is not what this plan says" in process.stderr
    assert "'cloister bundle plan --check'" in process.stderr


def test_reports_in_the_plan_s_folder_are_refused_also_by_another_name(folder: Path) -> None:
    (folder / "link").symlink_to("plan")
    with pytest.raises(InvalidInput, match="contains the plan's folder or is inside it"):
        create_app(folder / "plan", folder / "link" / "reports")


def test_a_port_that_is_taken_is_said_in_one_line(folder: Path) -> None:
    with (
        collecting(folder) as process,
        pytest.raises(AssertionError, match=r"Address already in use\. Choose another --port"),
    ):
        Process(folder, "--out", "others", "--port", str(process.port))
