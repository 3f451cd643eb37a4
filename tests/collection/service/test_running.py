"""What the collector is told on its command line about those who reach it."""

from __future__ import annotations

import asyncio
from typing import Any
from unittest.mock import Mock

import pytest
import uvicorn
from uvicorn.server import ServerState

from cloister.collection.service.limits import Limits, ServiceCounts
from cloister.collection.service.running import bounded, check_origin
from cloister.core.errors import InvalidInput


@pytest.mark.parametrize(
    "origin",
    [
        "*",
        "https://example.org",
        "http://example.org",
        "https://example.org:8443",
        "http://localhost:8080",
        "http://127.0.0.1:443",
        "http://example.org:443",
        "https://example.org:80",
        "https://[::1]:8080",
        "https://xn--mnchen-3ya.example",
    ],
)
def test_an_origin_is_what_browsers_say(origin: str) -> None:
    check_origin(origin)


@pytest.mark.parametrize(
    ("origin", "said"),
    [
        ("", "as in https://example.org"),
        ("null", "as in https"),
        ("example.org", "as in https"),
        ("ftp://example.org", "as in https"),
        ("https://example.org/", "no path"),
        ("https://example.org?a", "no path"),
        ("https://ann@example.org", "as in https"),
        ("https://Example.org", "small letters"),
        ("HTTPS://example.org", "as in https"),
        ("https://münchen.example", "xn--"),
        ("https://example.org https://example.com", "as in https"),
        ("https://example.org:443", "leave the usual port out: --origin https://example.org, not"),
        ("http://example.org:80", "leave the usual port out: --origin http://example.org, not"),
    ],
)
def test_what_no_browser_says_would_let_no_page_in_and_is_refused(origin: str, said: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        check_origin(origin)
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


def told(limits: Limits, addresses: list[str]) -> list[bool]:
    """Whether each of some connections, all of which stay open, is told to come later; then that none is remembered."""

    async def met() -> list[bool]:
        config, state, found = uvicorn.Config(lambda: None, log_config=None), ServerState(), list[bool]()
        config.load()
        protocol = bounded(limits, ServiceCounts())
        lines = list[Any]()
        for address in addresses:
            line, transport = protocol(config=config, server_state=state, app_state={}), Mock()
            transport.get_extra_info = {"peername": (address, 1)}.get
            line.connection_made(transport)
            lines.append(line)
            found.append(transport.write.called and transport.close.called)
        for line in lines:
            line.connection_lost(None)
        assert not protocol.peers
        return found

    return asyncio.run(met())


def test_one_address_has_a_quarter_of_all_connections_and_others_are_let_in() -> None:
    """Who holds connections and sends nothing keeps nobody else out; all of a network of version 6 are one."""
    limits = Limits(connections=8)
    assert told(limits, ["192.0.2.1"] * 4 + ["192.0.2.2"] * 2) == [False, False, True, True, False, False]
    assert told(limits, ["2001:db8::1", "2001:db8::2", "2001:db8::3", "2001:db8:0:1::"]) == [False, False, True, False]
    assert told(limits, ["127.0.0.1"] * 9) == [False] * 8 + [True]  # a proxy of this machine
    assert told(Limits(rate=0, connections=8), ["192.0.2.1"] * 9) == [False] * 8 + [True]  # a proxy of another one
