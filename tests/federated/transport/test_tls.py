"""Mutual TLS on loopback: who may speak, in whose name, and how much."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import attrs
import pytest

pytest.importorskip("grpc")

from cloister.core.errors import InvalidInput, Refused
from cloister.federated.transport import tls
from cloister.federated.transport.certificates import Credentials, make_test_certificates
from cloister.federated.transport.tls import Line, Server, Unreachable
from tests.waiting import PATIENCE, until

pytestmark = pytest.mark.thorough


class Echo:
    """Answers with what it got, and remembers from whom."""

    def __init__(self) -> None:
        self.heard = list[tuple[str, bytes]]()

    def handle(self, sender: str, data: bytes, left: float | None = None) -> bytes:
        self.heard.append((sender, data))
        return data


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("certificates")
    make_test_certificates(made / "ours", ("north", "south"))
    make_test_certificates(made / "theirs", ("north",))
    return made


@contextmanager
def echoing(credentials: Credentials) -> Iterator[tuple[Echo, str]]:
    """Who answers with these credentials, and its address."""
    service = Echo()
    server = Server(service, "127.0.0.1:0", credentials, 3, 2**16)  # type: ignore[arg-type]
    server.start()
    yield service, f"127.0.0.1:{server.port}"
    server.stop(0)


@pytest.fixture
def echo(folder: Path) -> Iterator[tuple[Echo, str]]:
    with echoing(Credentials.read(folder / "ours" / "coordinator.pem")) as made:
        yield made


def test_a_sender_is_who_its_certificate_says(echo: tuple[Echo, str], folder: Path) -> None:
    service, address = echo
    with closing(Line(address, Credentials.read(folder / "ours" / "south.pem"), 10)) as line:
        assert line.exchange(b"hello") == b"hello"
    assert service.heard == [("south", b"hello")]


@pytest.mark.parametrize("wrong", ["all", "own", "authority", "the coordinator's"])
def test_a_wrong_certificate_is_refused_before_anything_is_sent(wrong: str, folder: Path) -> None:
    """Also a party's that passes for the coordinator."""
    ours, theirs = (Credentials.read(folder / side / "north.pem") for side in ("ours", "theirs"))
    credentials = {
        "all": theirs,
        "own": attrs.evolve(theirs, authority=ours.authority),
        "authority": attrs.evolve(ours, authority=theirs.authority),
    }.get(wrong, ours)
    listens = Credentials.read(folder / "ours" / ("south.pem" if credentials is ours else "coordinator.pem"))
    with echoing(listens) as (service, address), closing(Line(address, credentials, 30)) as line:
        with pytest.raises(Refused, match="certificates"):
            line.exchange(b"secret")
        assert not service.heard


def test_oversized_messages_and_silence_end_in_an_error(echo: tuple[Echo, str], folder: Path) -> None:
    service, address = echo
    credentials = Credentials.read(folder / "ours" / "north.pem")
    for to, patience, words, data in (
        (address, 10, "resource_exhausted", bytes(2**17)),
        ("127.0.0.1:9", 0.5, "did not answer within", b"anybody?"),
    ):
        with closing(Line(to, credentials, patience)) as line, pytest.raises(Unreachable, match=words):
            line.exchange(data)
    assert not service.heard


def test_one_who_sends_without_end_fills_no_memory_and_others_come_through_later(folder: Path) -> None:
    """Anybody with a certificate of the authority, party or not: what waits for a thread is held in memory."""
    go_on, most = threading.Event(), 4 * 3 + 8

    class Busy(Echo):
        def handle(self, sender: str, data: bytes, left: float | None = None) -> bytes:
            assert go_on.wait(PATIENCE)
            return super().handle(sender, data, left)

    north, south = (Credentials.read(folder / "ours" / f"{name}.pem") for name in ("north", "south"))
    server = Server(Busy(), "127.0.0.1:0", Credentials.read(folder / "ours" / "coordinator.pem"), 3, 2**16)  # type: ignore[arg-type]
    server.start()
    address = f"127.0.0.1:{server.port}"
    with closing(Line(address, south)) as many, closing(Line(address, north, PATIENCE)) as one:
        calls = [many._call.future(b"x", timeout=PATIENCE) for _ in range(most + 30)]
        until(lambda: sum(call.done() for call in calls) == 30)
        with ThreadPoolExecutor(1) as other:
            reply = other.submit(one.exchange, b"hello")
            go_on.set()
            assert reply.result() == b"hello"
        assert sum(call.exception() is None for call in calls) == most
    server.stop(0)


def test_whoever_connects_and_shows_no_certificate_is_cut_off(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Silent from the beginning, and after the first bytes of a handshake. By itself gRPC waits for a minute or two."""
    monkeypatch.setattr(tls, "HANDSHAKE", 0.5)
    with echoing(Credentials.read(folder / "ours" / "coordinator.pem")) as (_, address):
        host, _, port = address.partition(":")
        for first in (b"", b"\x16\x03\x01\x02\x00\x01"):
            with socket.create_connection((host, int(port)), timeout=40) as line:
                line.sendall(first)
                while line.recv(1024):
                    pass


def test_a_port_that_is_taken_is_one_line(echo: tuple[Echo, str], folder: Path) -> None:
    credentials = Credentials.read(folder / "ours" / "coordinator.pem")
    with pytest.raises(InvalidInput, match="cannot listen"):
        Server(Echo(), echo[1], credentials, 3, 2**16)  # type: ignore[arg-type]
    for listen in ("localhost", "localhost:99999", ":7443", "localhost:http"):
        with pytest.raises(InvalidInput, match=f"cannot listen on '{listen}': give host:port"):
            Server(Echo(), listen, credentials, 3, 2**16)  # type: ignore[arg-type]


def test_test_certificates_are_of_different_short_names_and_replace_none(folder: Path) -> None:
    with pytest.raises(InvalidInput, match="already"):
        make_test_certificates(folder / "ours", ("north",))
    for name in ("coordinator", "x" * 65, "a\0b", ""):
        with pytest.raises(InvalidInput, match="different names of up to 64"):
            make_test_certificates(folder / "more", (name,))


class Scripted:
    """A call that fails as scripted before it answers."""

    def __init__(self, *details: str) -> None:
        self._details = list(details)

    def with_call(self, data: bytes, timeout: float) -> tuple[bytes, Any]:
        import grpc

        if not self._details:
            return data, SimpleNamespace(trailing_metadata=tuple)
        words = self._details.pop(0)

        class Failed(grpc.RpcError):  # type: ignore[misc]
            def code(self) -> grpc.StatusCode:
                return grpc.StatusCode.UNAVAILABLE

            def details(self) -> str:
                return words

        raise Failed


def test_a_broken_handshake_is_a_wrong_certificate_before_the_first_reply_and_bad_luck_after_it(folder: Path) -> None:
    """A coordinator that dies while a party connects again breaks a handshake: the party must not give up for that."""
    broken = "Ssl handshake failed: Handshake read failed"
    with closing(Line("127.0.0.1:9", Credentials.read(folder / "ours" / "south.pem"), 10)) as line:
        line._call = Scripted(broken)
        with pytest.raises(Refused, match="certificates"):
            line.exchange(b"hello")
        line._call = Scripted()
        line.exchange(b"hello")
        line._call = Scripted(broken, "Socket closed")
        assert line.exchange(b"again") == b"again"
