"""What the collector is told on its command line about those who reach it."""

from __future__ import annotations

import socket
from contextlib import ExitStack

import pytest

from cloister.collection.service import running
from cloister.collection.service.limits import Limits, ServiceCounts
from cloister.collection.service.running import check_origin, listening
from cloister.core.errors import InvalidInput
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
        ("https://example.org:443", "leave the usual port out: --origin https://example.org, not"),
    ],
)
def test_what_no_browser_says_would_let_no_page_in_and_is_refused(origin: str, said: str) -> None:
    """What else the program refuses stands in ``tests/commands/bad_inputs/serving.txt``."""
    with pytest.raises(InvalidInput, match=said):
        check_origin(origin)


def let_in(limits: Limits, addresses: list[str], monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Which of some connections, all of which stay open and send nothing, are let in; when they end all are
    forgotten. Addresses are of this machine, each of which stands for another one."""
    monkeypatch.setattr(running, "peer_of", lambda address: None if address == "127.0.0.1" else address)
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
    most = 8 + running.FILES // 2
    assert let_in(Limits(connections=8), ["127.0.0.1"] * (most + 2), monkeypatch) == [True] * most + [False] * 2
