"""Connections that are slow, endless, too many or no HTTP at all: each ends, and the collector goes on."""

from __future__ import annotations

import random
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import httpx
import pytest

from tests.collection.service.collectors import Process, collecting, plan_in, refused_in
from tests.waiting import PATIENCE, until

pytestmark = pytest.mark.thorough

SECONDS, CONNECTIONS = 1.0, 20
MANY = 2_000
HEAD = b"POST /reports HTTP/1.1\r\nhost: x\r\ncontent-type: application/octet-stream\r\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("connections")
    plan_in(folder / "plan")
    return folder


@pytest.fixture(scope="module")
def collector(folder: Path) -> Iterator[Process]:
    with collecting(folder, "--timeout", str(SECONDS), "--connections", str(CONNECTIONS)) as process:
        yield process
        assert process.memory < 300
        assert process.end() == 0


@pytest.fixture
def line(collector: Process) -> Iterator[socket.socket]:
    with connected(collector) as line:
        yield line


def connected(collector: Process) -> socket.socket:
    return socket.create_connection(("127.0.0.1", collector.port), timeout=PATIENCE)


def ended(line: socket.socket) -> bytes:
    """All that comes until the other side ends the connection."""
    found = b""
    try:
        while data := line.recv(2**16):
            found += data
    except ConnectionError:
        pass
    return found


def count(collector: Process, reason: str) -> int:
    return refused_in(httpx.get(f"{collector.address}/metrics").text, reason)


def fill(line: socket.socket, piece: bytes, pause: float) -> int:
    """Send without end; how many bytes it took until the connection ended."""
    sent, until = 0, time.monotonic() + PATIENCE
    try:
        while time.monotonic() < until:
            line.sendall(piece)
            sent += len(piece)
            time.sleep(pause)
    except OSError:
        return sent
    raise AssertionError(f"{sent} bytes were taken, and the connection still stands")


def works(collector: Process) -> bool:
    return httpx.get(f"{collector.address}/health", timeout=PATIENCE).status_code == 200


@pytest.mark.parametrize(
    "begun", [b"", b"GET", b"GET /round HTTP/1.1\r\nhost: x\r\n", HEAD + b"content-length: 20\r\n\r\n1"]
)
def test_a_request_that_does_not_go_on_ends(collector: Process, line: socket.socket, begun: bytes) -> None:
    before = count(collector, "too slow")
    line.sendall(begun)
    ended(line)
    assert count(collector, "too slow") == before + 1


HEADS = b"GET /round HTTP/1.1\r\nhost: x\r\n"
CHUNK = b"10000\r\n" + bytes(2**16) + b"\r\n"
ENDLESS = {
    "a body": (HEAD + b"transfer-encoding: chunked\r\n\r\n", CHUNK),
    "a body to a page that reads none": (HEADS + b"transfer-encoding: chunked\r\n\r\n", CHUNK),
    "a name": (HEADS, b"a" * 1000),
    "headers": (HEADS, b"x-header: value\r\n" * 50),
    "blank lines": (b"", b"\r\n" * 500),
    "questions of who does not read": (b"", b"GET /plan.json HTTP/1.1\r\nhost: x\r\n\r\n" * 5),
    "a byte now and then": (HEAD, b"x"),
}


@pytest.mark.parametrize("what", ENDLESS)
def test_what_has_no_end_is_cut_off(collector: Process, line: socket.socket, what: str) -> None:
    start, piece = ENDLESS[what]
    line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    line.sendall(start)
    assert fill(line, piece, SECONDS / 10 if len(piece) == 1 else 0.0) < 2**26
    assert works(collector)


CHUNKED = HEAD + b"transfer-encoding: chunked\r\n\r\n"
BESIDE = {
    "trailers": (CHUNKED + b"0\r\n", b"a: b\r\n"),
    "a trailer": (CHUNKED + b"0\r\na: ", b"b"),
    "what a chunk's size is followed by": (CHUNKED + b"5;", b"x"),
    "trailers of a page that reads nothing": (HEADS + b"transfer-encoding: chunked\r\n\r\n0\r\n", b"a: b\r\n"),
}


@pytest.mark.parametrize("what", BESIDE)
def test_what_is_beside_a_body_has_the_bound_of_a_head(collector: Process, line: socket.socket, what: str) -> None:
    """Trailers are kept in memory as headers are: 30 MB of them, within the time of a request, took 500."""
    (start, piece), before = BESIDE[what], count(collector, "no HTTP")
    with suppress(OSError):
        line.sendall(start + piece * (2**20 // len(piece)))
    ended(line)
    assert count(collector, "no HTTP") == before + 1
    assert works(collector)


def test_many_small_chunks_of_a_report_are_no_head(collector: Process, line: socket.socket) -> None:
    line.sendall(
        HEAD + b"connection: close\r\ntransfer-encoding: chunked\r\n\r\n" + b"1\r\nx\r\n" * 2**14 + b"0\r\n\r\n"
    )
    assert b'"refused"' in ended(line)


def test_who_sends_too_much_is_told_so_though_she_sends_it_all_first(collector: Process, line: socket.socket) -> None:
    size = 3 * 2**22
    line.sendall(HEAD + f"content-length: {size}\r\n\r\n".encode() + bytes(size))
    assert line.recv(1000).startswith(b"HTTP/1.1 413")


def test_thousands_of_requests_in_one_piece_are_not_queued(collector: Process, line: socket.socket) -> None:
    line.sendall(b"GET /round HTTP/1.1\r\nhost: x\r\n\r\n" * 5000)
    assert ended(line).count(b"HTTP/1.1") < 100
    assert works(collector)


def test_connections_beyond_the_limit_are_told_to_come_later(collector: Process) -> None:
    time.sleep(SECONDS)
    with ExitStack() as stack:
        lines = [stack.enter_context(connected(collector)) for _ in range(CONNECTIONS + 5)]
        late = ended(lines[-1])
        assert late.startswith(b"HTTP/1.1 503")
        assert b"retry-after" in late
    until(lambda: works(collector))


def test_thousands_of_malformed_requests_are_counted_and_harm_nothing(collector: Process) -> None:
    rng, before = random.Random(1), count(collector, "no HTTP")
    good = HEAD + b"content-length: 5\r\n\r\nhello"
    for _ in range(MANY):
        wrong = bytearray(good[: rng.randrange(1, len(good))] if rng.random() < 0.3 else good)
        for _ in range(rng.randrange(1, 20)):
            wrong[rng.randrange(len(wrong))] = rng.randrange(256)
        with connected(collector) as line, suppress(OSError):  # it may have ended already
            line.sendall(bytes(wrong))
            line.shutdown(socket.SHUT_WR)
            if rng.random() < 0.2:
                ended(line)
    assert count(collector, "no HTTP") > before + MANY // 2
    assert works(collector)


def test_metrics_on_a_port_of_their_own_are_nowhere_else_and_answer_while_all_connections_are_taken(
    folder: Path, tmp_path: Path
) -> None:
    apart = ("--out", str(tmp_path / "apart"), "--metrics-port", "0", "--connections", "2")
    with collecting(folder, *apart) as process, ExitStack() as stack:
        assert httpx.get(f"{process.address}/metrics").status_code == 404
        for path in ("/round", "/plan.json", "/reports", "/health"):
            assert httpx.get(process.metrics.replace("/metrics", path)).status_code == 404
        lines = [stack.enter_context(connected(process)) for _ in range(3)]
        assert ended(lines[-1]).startswith(b"HTTP/1.1 503")
        assert "cloister_connections 2\n" in httpx.get(process.metrics).text
        assert 'cloister_refused_total{reason="busy"} 1\n' in httpx.get(process.metrics).text
        assert process.end() == 0
    assert process.stderr == ""
