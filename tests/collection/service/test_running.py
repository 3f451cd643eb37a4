"""What the collector is told on its command line about those who reach it."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from cloister.collection.service import connections
from cloister.collection.service.app import create_app
from cloister.collection.service.limits import Limits, ServiceCounts
from cloister.collection.service.running import certificate, check_origin, listening, serve
from cloister.collection.service.supervisor import notify
from cloister.core.errors import InvalidInput
from cloister.federated.transport.certificates import COORDINATOR_NAME, make_test_certificates
from tests.collection.service.collectors import plan_in
from tests.waiting import PATIENCE


@pytest.mark.parametrize("origin", ["*", "http://localhost:8080", "http://example.org:443", "https://[::1]:8080"])
def test_an_origin_is_what_browsers_say(origin: str) -> None:
    check_origin(origin)


@pytest.mark.parametrize(
    ("origin", "said"),
    [
        ("null", "as in https"),
        ("ftp://example.org", "as in https"),
        ("https://example.org?a", "no path"),
        ("https://ann@example.org", "as in https"),
        ("https://example.org:443", "omit the default port: give --origin https://example.org, not"),
    ],
)
def test_what_no_browser_says_would_let_no_page_in_and_is_refused(origin: str, said: str) -> None:
    """What else the program refuses stands in ``tests/commands/bad_inputs/serving.txt``."""
    with pytest.raises(InvalidInput, match=said):
        check_origin(origin)


def let_in(limits: Limits, addresses: list[str], monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Which of some connections, all of which stay open and send nothing, are let in; when they end all are
    forgotten. Addresses are of this machine, each of which stands for another one."""
    monkeypatch.setattr(connections, "peer_of", lambda address: None if address == "127.0.0.1" else address)
    with ExitStack() as stack:
        listener = stack.enter_context(listening("127.0.0.1", 0))
        listener.listen()
        listener.limits, listener.counts, found = limits, ServiceCounts(), list[bool]()
        for address in addresses:
            stack.enter_context(socket.create_connection(listener.getsockname(), PATIENCE, (address, 0)))
            try:
                stack.enter_context(listener.accept()[0])
            except ConnectionAbortedError:
                found.append(False)
            else:
                found.append(True)
        assert listener.counts.refused["busy"] == found.count(False)
        assert listener.peers.total() == sum(found)
    assert not listener.peers
    return found


def test_one_address_has_a_quarter_of_all_connections_and_others_are_let_in(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who holds connections and sends nothing keeps nobody else out."""
    limits, two = Limits(connections=8), ["127.0.0.2"] * 4 + ["127.0.0.3"] * 2
    assert let_in(limits, two, monkeypatch) == [True, True, False, False, True, True]
    assert let_in(limits, ["127.0.0.1"] * 9, monkeypatch) == [True] * 9  # a proxy here; the ninth is told to come later
    assert let_in(Limits(rate=0, connections=8), two, monkeypatch) == [True] * 6  # a proxy elsewhere


def test_connections_never_take_all_files_of_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    most = 8 + connections.FILES // 2
    assert let_in(Limits(connections=8), ["127.0.0.1"] * (most + 2), monkeypatch) == [True] * most + [False] * 2


def test_a_handshake_has_the_time_of_a_request_and_a_supervisor_is_told_of_start_and_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """asyncio would wait for a minute, in which whoever sends nothing has a connection."""
    plan_in(tmp_path / "plan")
    make_test_certificates(tmp_path, ())
    tls = certificate(tmp_path / f"{COORDINATOR_NAME}.pem", tmp_path / f"{COORDINATOR_NAME}.key")
    given, create = list[dict[str, Any]](), asyncio.BaseEventLoop.create_server

    def noted(loop: Any, *words: Any, **settings: Any) -> Any:
        given.append(settings)
        return create(loop, *words, **settings)

    monkeypatch.setattr(asyncio.BaseEventLoop, "create_server", noted)
    app = create_app(tmp_path / "plan", tmp_path / "out", limits=Limits(seconds=7.0), metrics_apart=True)
    with (
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as supervisor,
        listening("127.0.0.1", 0) as listener,
        listening("127.0.0.1", 0) as metrics,
    ):
        supervisor.bind(f"\0cloister-start-{os.getpid()}")  # a path may have 107 bytes
        monkeypatch.setenv("NOTIFY_SOCKET", f"@cloister-start-{os.getpid()}")
        serve(app, listener, metrics=metrics, tls=tls, started=lambda address: os.kill(os.getpid(), signal.SIGTERM))
        told = [supervisor.recv(100) for _ in range(2)]
    assert told == [b"READY=1", b"STOPPING=1"]
    assert len(given) == 2
    assert all(one["ssl_handshake_timeout"] == one["ssl_shutdown_timeout"] == 7.0 for one in given)


def test_a_supervisor_is_found_by_an_abstract_name_too_and_none_is_no_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    name = f"cloister-test-{os.getpid()}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as supervisor:
        supervisor.bind(f"\0{name}")
        monkeypatch.setenv("NOTIFY_SOCKET", f"@{name}")
        notify("READY=1")
        assert supervisor.recv(100) == b"READY=1"
    for nowhere in (f"@{name}", "/no/such/socket", ""):
        monkeypatch.setenv("NOTIFY_SOCKET", nowhere)
        notify("READY=1")
