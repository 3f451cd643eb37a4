"""A collector as a program: killed, ended, on a full disk, over TLS; and what is left of those who reported."""

from __future__ import annotations

import datetime as dt
import os
import random
import resource
import signal
import socket
import ssl
import threading
import time
from collections import Counter
from pathlib import Path

import httpx
import numpy as np
import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from cloister.collection.plan.plan import CollectionPlan
from cloister.collection.server.aggregator import decode
from cloister.collection.service.app import collector
from cloister.collection.service.segments import LOCK
from cloister.collection.wire.batches import BatchForm
from cloister.core.errors import InvalidInput
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
def plan(tmp_path_factory: pytest.TempPathFactory) -> CollectionPlan:
    return plan_in(tmp_path_factory.mktemp("plan") / "plan")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    plan_in(tmp_path / "plan")
    return tmp_path


class Load:
    """People who report until they are acknowledged, over several connections, one by one and in batches."""

    def __init__(self, form: BatchForm, lanes: int = 4) -> None:
        self.form, self.lanes, self.address = form, lanes, ""
        self.acknowledged, self.again, self.stopped = list[int](), Counter[str](), False
        self._next, self._lock = iter(range(USERS)), threading.Lock()
        self._threads = [threading.Thread(target=self._lane, args=(lane,)) for lane in range(lanes)]
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Wait until all have ended."""
        self.stopped = True
        for thread in self._threads:
            thread.join()

    def _lane(self, lane: int) -> None:
        rng = random.Random(lane)
        with httpx.Client(verify=False) as client:
            while not self.stopped and self._one(client, rng, lane):
                pass

    def _one(self, client: httpx.Client, rng: random.Random, lane: int) -> bool:
        """Report for some users who have not yet; whether there were any."""
        with self._lock:
            some = 1 if lane % 2 else rng.randrange(2, 9)
            users = [user for _ in range(some) if (user := next(self._next, -1)) >= 0]
        if not users:
            return False
        body = report(self.form, users[0]) if len(users) == 1 else batch(self.form, *users)
        self._until_acknowledged(client, users, body)
        return True

    def _until_acknowledged(self, client: httpx.Client, users: list[int], body: bytes) -> None:
        tried = 0
        while not self.stopped:
            try:
                found = client.post(f"{self.address}/reports", content=body, headers=OCTETS)
            except httpx.HTTPError:  # it was killed: whoever asks again learns what became of the first try
                tried += 1
                time.sleep(0.01)
                continue
            assert found.status_code in (200, 201, 409), found.text
            said = found.json()
            assert said["accepted"] + said["refused"].get("duplicate", 0) == len(users)
            assert tried or not said["refused"]
            self.again["duplicate"] += said["refused"].get("duplicate", 0)
            self.acknowledged += users
            return


@pytest.mark.parametrize("kills", [4, pytest.param(50, marks=pytest.mark.long)])
def test_kills_under_load_lose_nothing_acknowledged_and_nothing_counts_twice(kills: int, folder: Path) -> None:
    plan = CollectionPlan.read(folder / "plan")
    form, rng, out = form_of(plan), random.Random(0), folder / "reports"
    port, load = 0, None
    try:
        for _ in range(kills):
            with collecting(folder, "--port", str(port)) as process:
                port = process.port
                if load is None:
                    load = Load(form)
                    load.address = process.address
                time.sleep(rng.random() * 0.15)
                known = list(load.acknowledged)
                process.kill()
            found = on_disk(out, form) if not _torn(out, form) else _whole(out, form)
            assert set(known) <= set(found.tolist())
            assert len(set(found.tolist())) == len(found)
        assert load is not None
        with collecting(folder, "--port", str(port)) as process:
            time.sleep(0.2)
            load.stop()
            assert process.end() == 0
    finally:
        if load is not None:
            load.stop()
    found = on_disk(out, form)
    assert len(set(found.tolist())) == len(found)
    assert set(load.acknowledged) <= set(found.tolist())
    assert len(load.acknowledged) > 100
    assert decode(plan, out, accept_shares=True).intake.accepted == len(found)


def _whole(out: Path, form: BatchForm) -> np.ndarray:
    """User numbers of all whole batches."""
    return np.concatenate([form.parse(path.read_bytes()).users for path in sorted(out.glob("*.reports"))])


def _torn(out: Path, form: BatchForm) -> bool:
    return any((found := form.parse(p.read_bytes())).end < found.size for p in out.glob("*.reports"))


@pytest.mark.parametrize("by", [signal.SIGTERM, signal.SIGINT])
def test_told_to_end_it_says_what_is_on_the_disk(folder: Path, plan: CollectionPlan, by: signal.Signals) -> None:
    form = form_of(plan)
    with collecting(folder) as process:
        for user in range(5):
            post(process.address, report(form, user))
        post(process.address, report(form, 3))
        assert process.end(by) == 0
    assert "WARNING" not in process.stderr
    assert process.said[-1] == '{"event": "end", "accepted": 5, "reports": 5, "refused": {"duplicate": 1}}\n'
    assert on_disk(folder / "reports", form).tolist() == list(range(5))
    with collecting(folder) as process:
        assert '"reports": 5' in process.said[0]


def test_reports_under_way_when_it_is_told_to_end_are_answered(folder: Path, plan: CollectionPlan) -> None:
    body = report(form_of(plan), 1)
    with collecting(folder) as process:
        with socket.create_connection(("127.0.0.1", process.port), timeout=10) as line:
            head = f"POST /reports HTTP/1.1\r\nhost: x\r\ncontent-length: {len(body)}\r\n"
            line.sendall(f"{head}content-type: {OCTETS['content-type']}\r\n\r\n".encode() + body[:5])
            time.sleep(0.3)
            ending = threading.Thread(target=process.end)
            ending.start()
            time.sleep(0.3)
            line.sendall(body[5:])
            assert line.recv(1000).startswith(b"HTTP/1.1 201")
        ending.join()
    assert on_disk(folder / "reports", form_of(plan)).tolist() == [1]


def test_a_full_disk_sends_reports_back_until_there_is_room(folder: Path, plan: CollectionPlan) -> None:
    """No file of the process may grow beyond a size, of which the writes learn as of a full disk."""
    form, out = form_of(plan), folder / "reports"
    room = 3 * len(batch(form, 1)) + 10

    def bound() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (room, resource.RLIM_INFINITY))

    with collecting(folder, preexec_fn=bound) as process:
        statuses = [post(process.address, report(form, user)).status_code for user in range(3)]
        assert statuses == [201] * 3
        # the file has no room for a fourth, and the next one has; a batch fits into none
        full = post(process.address, batch(form, *range(10, 50)))
        assert (full.status_code, full.json()["refused"]) == (503, {"disk": 1})
        assert full.headers["retry-after"]
        assert httpx.get(f"{process.address}/health").status_code == 503
        assert on_disk(out, form).tolist() == [0, 1, 2]
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        until(lambda: httpx.get(f"{process.address}/health").status_code == 200)
        assert post(process.address, batch(form, *range(10, 50))).json() == {"accepted": 40, "refused": {}}
        assert process.end() == 0
    assert sorted(on_disk(out, form).tolist()) == [0, 1, 2, *range(10, 50)]
    events = "".join(process.said)
    assert '"event": "disk", "why": "File too large"' in events
    assert '"event": "disk works"' in events


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
    with collecting(folder, "--timeout", "1") as process:
        bodies = [report(form, user, 1) for user in range(8)] + [report(form, 3), b"nonsense", report(form, USERS)]
        for body in bodies:
            with socket.socket() as line:
                line.bind(("127.66.55.44", 0))  # an address of this machine that appears nowhere else
                line.connect(("127.0.0.1", process.port))
                ports.append(line.getsockname()[1])
                fields = {**OCTETS, **SECRETS, "host": "collector", "content-length": str(len(body))}
                head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
                line.sendall(f"POST /reports?q=erin HTTP/1.1\r\n{head}\r\n".encode() + body)
                assert line.recv(1000)
        for broken in (b"\x16\x03\x01 no HTTP\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"POST /reports HTTP/1.1\r\n"):
            with socket.socket() as line:
                line.bind(("127.66.55.44", 0))
                line.connect(("127.0.0.1", process.port))
                ports.append(line.getsockname()[1])
                line.sendall(broken)
        httpx.get(f"{process.address}/metrics")
        time.sleep(2.2)
        metrics = httpx.get(f"{process.address}/metrics").text + httpx.get(f"{process.address}/round").text
        assert process.end() == 0
    printed = "".join(process.said) + process.stderr
    (segment,) = (folder / "reports").glob("*.reports")
    kept = segment.read_bytes()
    # the files are the reports and nothing else
    assert sorted(path.name for path in (folder / "reports").iterdir()) == [LOCK, segment.name]
    assert (folder / "reports" / LOCK).read_bytes() == b""
    found = form.parse(kept)
    assert (found.end, found.users.tolist()) == (len(kept), list(range(8)))
    assert segment.stat().st_mtime == 0
    said = (printed + metrics).replace(str(process.port), "")
    for secret in [*SECRETS.values(), "127.66.55.44", "erin", "44.55.66.127", *map(str, ports)]:
        assert secret not in said
        assert secret.encode() not in kept
    for second in range(started - 1, int(time.time()) + 2):
        assert str(second) not in said
        stamp = time.gmtime(second)
        assert time.strftime("%H:%M:%S", stamp) not in said
        assert time.strftime("%H:%M:%S", time.localtime(second)) not in said
    assert process.stderr == ""


def test_a_decoder_reads_the_folder_while_it_grows(folder: Path, plan: CollectionPlan) -> None:
    load = Load(form_of(plan))
    with collecting(folder) as process:
        load.address = process.address
        counts = list[int]()
        while not load.acknowledged:
            time.sleep(0.01)
        for _ in range(4):
            time.sleep(0.3)
            counts.append(decode(plan, folder / "reports", accept_shares=True).intake.accepted)
        load.stop()
        assert process.end() == 0
    assert counts == sorted(counts)
    assert counts[-1] > counts[0] > 0
    assert decode(plan, folder / "reports", accept_shares=True).intake.accepted == len(
        on_disk(folder / "reports", form_of(plan))
    )


def certificate(folder: Path) -> None:
    """A certificate of this machine, that it has signed itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = dt.datetime.now(dt.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - dt.timedelta(1))
        .not_valid_after(now + dt.timedelta(1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(key, SHA256())
    )
    (folder / "cert.pem").write_bytes(made.public_bytes(Encoding.PEM))
    (folder / "key.pem").write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))


def test_with_a_certificate_it_speaks_tls_and_nothing_else(folder: Path, plan: CollectionPlan) -> None:
    certificate(folder)
    with collecting(folder, "--host", "0.0.0.0", "--cert", "cert.pem", "--key", "key.pem", "--timeout", "1") as process:
        assert process.address == f"https://0.0.0.0:{process.port}"
        trusted = ssl.create_default_context(cafile=str(folder / "cert.pem"))
        url = f"https://localhost:{process.port}"
        body = report(form_of(plan), 1)
        assert httpx.post(f"{url}/reports", content=body, headers=OCTETS, verify=trusted).status_code == 201
        with pytest.raises(httpx.HTTPError):
            httpx.get(f"http://127.0.0.1:{process.port}/round")
        for noise in (b"hello\r\n\r\n", os.urandom(300), b""):
            with socket.create_connection(("127.0.0.1", process.port)) as line:
                line.sendall(noise)
        assert httpx.get(f"{url}/health", verify=trusted).status_code == 200
        assert process.end() == 0
    assert process.stderr == ""


def test_a_plan_without_its_bundle_is_collected_and_its_lack_is_said(folder: Path) -> None:
    (folder / "plan" / "bundle-1.json").unlink()
    with collecting(folder) as process:
        assert process.end() == 0
    assert "'cloister bundle' makes it" in process.stderr


@pytest.mark.parametrize("seed", [None, 2])
def test_a_bundle_that_is_altered_or_another_plan_s_is_said(folder: Path, seed: int | None) -> None:
    path = folder / "plan" / "bundle-1.json"
    if seed is None:
        path.write_bytes(path.read_bytes().replace(b'"round":1', b'"round":1 '))
    else:
        plan_in(folder / "other", seed=seed)
        for name in ("bundle-1.json", "bundle-1.bin"):
            (folder / "plan" / name).write_bytes((folder / "other" / name).read_bytes())
    with collecting(folder) as process:
        assert process.end() == 0
    (said,) = (line for line in process.stderr.splitlines() if line.startswith("WARNING"))
    assert "bundle-1 in plan is not what this plan says" in said
    assert "'cloister bundle plan --check'" in said


@pytest.mark.parametrize("out", ["plan", "plan/reports", ".", "link/reports"])
def test_reports_in_the_plan_s_folder_or_around_it_are_refused_before_anything_is_made(folder: Path, out: str) -> None:
    (folder / "link").symlink_to("plan")
    before = sorted(folder.rglob("*"))
    with pytest.raises(InvalidInput, match="holds the plan's folder, or is in it"):
        collector(folder / "plan", folder / out)
    assert sorted(folder.rglob("*")) == before


def test_a_port_that_is_taken_is_said_in_one_line(folder: Path) -> None:
    with (
        collecting(folder) as process,
        pytest.raises(AssertionError, match=r"Address already in use\. Choose another --port"),
    ):
        Process(folder, "--out", "others", "--port", str(process.port))
