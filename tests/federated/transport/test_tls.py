"""Mutual TLS on loopback: who may speak, in whose name, and how much."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import attrs
import pytest

pytest.importorskip("grpc")

from cloister.core.errors import InvalidInput, Refused
from cloister.federated.transport import tls
from cloister.federated.transport.certificates import Credentials
from cloister.federated.transport.tls import Line, Server
from tests.federated.pooling import in_thread
from tests.waiting import PATIENCE, until

pytestmark = pytest.mark.thorough


class Echo:
    """Answers with what it got, and remembers from whom."""

    def __init__(self) -> None:
        self.heard = list[tuple[str, bytes]]()

    def handle(self, sender: str, data: bytes, left: float | None = None) -> bytes:
        self.heard.append((sender, data))
        return data


@contextmanager
def echoing(certificate: Path, listen: str = "127.0.0.1:0", to: Echo | None = None) -> Iterator[tuple[Echo, str]]:
    """Who answers with this certificate, and its address."""
    service = to or Echo()
    server = Server(service, listen, Credentials.read(certificate), 3, 2**16)  # type: ignore[arg-type]
    server.start()
    yield service, f"127.0.0.1:{server.port}"
    server.stop(0)


@pytest.fixture
def echo(certs: Path) -> Iterator[tuple[Echo, str]]:
    with echoing(certs / "ours" / "coordinator.pem") as made:
        yield made


def test_a_sender_is_who_its_certificate_says(echo: tuple[Echo, str], certs: Path) -> None:
    service, address = echo
    with closing(Line(address, Credentials.read(certs / "ours" / "south.pem"), 10)) as line:
        assert line.exchange(b"hello") == b"hello"
    assert service.heard == [("south", b"hello")]


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ("all", "was not issued by the authority in this party's --ca"),
        ("own", "the coordinator's is valid here, so it must be refusing this party's"),
        ("authority", "was not issued by the authority in this party's --ca"),
        ("the coordinator's", "the coordinator's has no DNS name 'coordinator'"),
        ("over", r"so it must be refusing this party's: .* the clock there \(here it is 20"),
    ],
)
def test_a_wrong_certificate_is_refused_before_anything_is_sent(wrong: str, why: str, certs: Path) -> None:
    """Also a party's that passes for the coordinator, and one that is over."""
    ours, theirs, over = (
        Credentials.read(certs / f"{name}.pem") for name in ("ours/north", "theirs/north", "ours/over")
    )
    credentials = {
        "all": theirs,
        "own": attrs.evolve(theirs, authority=ours.authority),
        "authority": attrs.evolve(ours, authority=theirs.authority),
        "over": over,
    }.get(wrong, ours)
    listens = certs / "ours" / ("south.pem" if credentials is ours else "coordinator.pem")
    with echoing(listens) as (service, address), closing(Line(address, credentials, 30)) as line:
        with pytest.raises(Refused, match=f"do not accept each other's certificates: .*{why}"):
            line.exchange(b"secret")
        assert not service.heard


def test_one_who_sends_without_end_fills_no_memory_and_others_come_through_later(certs: Path) -> None:
    """Anybody with a certificate of the authority, party or not: what waits for a thread is held in memory."""
    go_on, most = threading.Event(), 4 * 3 + 8

    class Busy(Echo):
        def handle(self, sender: str, data: bytes, left: float | None = None) -> bytes:
            assert go_on.wait(PATIENCE)
            return super().handle(sender, data, left)

    north, south = (Credentials.read(certs / "ours" / f"{name}.pem") for name in ("north", "south"))
    with (
        echoing(certs / "ours" / "coordinator.pem", to=Busy()) as (_, address),
        closing(Line(address, south)) as many,
        closing(Line(address, north, PATIENCE)) as one,
    ):
        calls = [many._call.future(b"x", timeout=PATIENCE) for _ in range(most + 30)]
        until(lambda: sum(call.done() for call in calls) == 30)
        reply = in_thread(lambda: one.exchange(b"hello"))
        go_on.set()
        assert reply.result(PATIENCE) == b"hello"
        assert sum(call.exception() is None for call in calls) == most


def test_whoever_connects_and_shows_no_certificate_is_cut_off(certs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Silent from the beginning, and after the first bytes of a handshake. By itself gRPC waits for a minute or two."""
    monkeypatch.setattr(tls, "HANDSHAKE_TIMEOUT", 0.5)
    with echoing(certs / "ours" / "coordinator.pem") as (_, address):
        host, _, port = address.partition(":")
        for first in (b"", b"\x16\x03\x01\x02\x00\x01"):
            with socket.create_connection((host, int(port)), timeout=40) as line:
                line.sendall(first)
                while line.recv(1024):
                    pass


def test_a_port_that_is_taken_is_one_line(echo: tuple[Echo, str], certs: Path) -> None:
    with pytest.raises(InvalidInput, match="cannot listen"), echoing(certs / "ours" / "coordinator.pem", echo[1]):
        pass


def failed(words: str) -> Any:
    """How a call fails when nobody can be reached."""
    import grpc

    error: Any = grpc.RpcError()
    error.code, error.details = lambda: grpc.StatusCode.UNAVAILABLE, lambda: words
    return error


def test_a_broken_handshake_is_a_wrong_certificate_before_the_first_reply_and_bad_luck_after_it(certs: Path) -> None:
    """A coordinator that dies while a party connects again breaks a handshake: the party must not give up for that."""
    broken, gone = failed("Ssl handshake failed: Handshake read failed"), failed("Socket closed")
    answer = b"answer", SimpleNamespace(trailing_metadata=tuple)
    with closing(Line("127.0.0.1:9", Credentials.read(certs / "ours" / "south.pem"), 10)) as line:
        line._call = Mock(with_call=Mock(side_effect=[broken, answer, broken, gone, answer]))
        with pytest.raises(Refused, match="certificates"):
            line.exchange(b"hello")
        assert [line.exchange(b"hello") for _ in range(2)] == [b"answer", b"answer"]
