"""Mutual TLS on loopback: who may speak, in whose name, and how much."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import attrs
import pytest

pytest.importorskip("grpc")

from cloister.core.errors import InvalidInput, Refused
from cloister.federated.transport.certificates import Credentials, make_test_certificates
from cloister.federated.transport.tls import Line, Server, Unreachable

pytestmark = pytest.mark.thorough


class Echo:
    """Answers with what it got, and remembers from whom."""

    def __init__(self) -> None:
        self.heard = list[tuple[str, bytes]]()

    def handle(self, sender: str, data: bytes, left: float | None = None) -> bytes:
        self.heard.append((sender, data))
        return data


@pytest.fixture
def echo(tmp_path: Path) -> Iterator[tuple[Echo, int, Path]]:
    make_test_certificates(tmp_path / "ours", ("north", "south"))
    make_test_certificates(tmp_path / "theirs", ("north",))
    service = Echo()
    server = Server(service, "127.0.0.1:0", Credentials.read(tmp_path / "ours" / "coordinator.pem"), 3, 2**16)  # type: ignore[arg-type]
    server.start()
    yield service, server.port, tmp_path
    server.stop(0)


def test_a_sender_is_who_its_certificate_says(echo: tuple[Echo, int, Path]) -> None:
    service, port, folder = echo
    line = Line(f"127.0.0.1:{port}", Credentials.read(folder / "ours" / "south.pem"), 10)
    assert line.exchange(b"hello") == b"hello"
    assert service.heard == [("south", b"hello")]
    line.close()


@pytest.mark.parametrize("wrong", ["all", "own", "authority"])
def test_a_wrong_certificate_is_refused_before_anything_is_sent(echo: tuple[Echo, int, Path], wrong: str) -> None:
    service, port, folder = echo
    ours, theirs = (Credentials.read(folder / side / "north.pem") for side in ("ours", "theirs"))
    credentials = {
        "all": theirs,
        "own": attrs.evolve(theirs, authority=ours.authority),
        "authority": attrs.evolve(ours, authority=theirs.authority),
    }[wrong]
    line = Line(f"127.0.0.1:{port}", credentials, 30)
    with pytest.raises(Refused, match="certificates"):
        line.exchange(b"secret")
    assert not service.heard
    line.close()


def test_a_party_cannot_pass_for_the_coordinator(echo: tuple[Echo, int, Path]) -> None:
    _, _, folder = echo
    service = Echo()
    server = Server(service, "127.0.0.1:0", Credentials.read(folder / "ours" / "south.pem"), 3, 2**16)  # type: ignore[arg-type]
    server.start()
    line = Line(f"127.0.0.1:{server.port}", Credentials.read(folder / "ours" / "north.pem"), 10)
    with pytest.raises(Refused, match="certificates"):
        line.exchange(b"secret")
    assert not service.heard
    line.close()
    server.stop(0)


def test_oversized_messages_and_silence_end_in_an_error(echo: tuple[Echo, int, Path]) -> None:
    service, port, folder = echo
    credentials = Credentials.read(folder / "ours" / "north.pem")
    line = Line(f"127.0.0.1:{port}", credentials, 10)
    with pytest.raises(Unreachable, match="resource_exhausted"):
        line.exchange(bytes(2**17))
    assert not service.heard
    line.close()
    nobody = Line("127.0.0.1:9", credentials, 0.5)
    with pytest.raises(Unreachable, match="did not answer within"):
        nobody.exchange(b"anybody?")
    nobody.close()


def test_a_port_that_is_taken_is_one_line(echo: tuple[Echo, int, Path]) -> None:
    _, port, folder = echo
    with pytest.raises(InvalidInput, match="cannot listen"):
        Server(Echo(), f"127.0.0.1:{port}", Credentials.read(folder / "ours" / "coordinator.pem"), 3, 2**16)  # type: ignore[arg-type]
    for listen in ("localhost", "localhost:99999", ":7443", "localhost:http"):
        with pytest.raises(InvalidInput, match=f"cannot listen on '{listen}': give host:port"):
            Server(Echo(), listen, Credentials.read(folder / "ours" / "coordinator.pem"), 3, 2**16)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="already"):
        make_test_certificates(folder / "ours", ("north",))
    with pytest.raises(InvalidInput, match="different names"):
        make_test_certificates(folder / "more", ("coordinator",))
    for name in ("x" * 65, "a\0b", ""):
        with pytest.raises(InvalidInput, match="different names of up to 64"):
            make_test_certificates(folder / "more", (name,))


class Scripted:
    """A call that fails as scripted before it answers."""

    def __init__(self, *details: str) -> None:
        self._details = list(details)

    def __call__(self, data: bytes, timeout: float) -> bytes:
        import grpc

        if not self._details:
            return data
        words = self._details.pop(0)

        class Failed(grpc.RpcError):  # type: ignore[misc]
            def code(self) -> grpc.StatusCode:
                return grpc.StatusCode.UNAVAILABLE

            def details(self) -> str:
                return words

        raise Failed


def test_a_broken_handshake_is_a_wrong_certificate_before_the_first_reply_and_bad_luck_after_it(
    echo: tuple[Echo, int, Path],
) -> None:
    """A coordinator that dies while a party connects again breaks a handshake: the party must not give up for that."""
    _, port, folder = echo
    line = Line(f"127.0.0.1:{port}", Credentials.read(folder / "ours" / "south.pem"), 10)
    line._call = Scripted("Ssl handshake failed: Handshake read failed")
    with pytest.raises(Refused, match="certificates"):
        line.exchange(b"hello")
    line._call = Scripted()
    line.exchange(b"hello")
    line._call = Scripted("Ssl handshake failed: Handshake read failed", "Socket closed")
    assert line.exchange(b"again") == b"again"
    line.close()
