"""Limits on what anybody may ask of a collector: rates per address, and bytes under way.

An address is kept in memory only, and only while its allowance is not full again; it is written nowhere. Time is the
monotonic clock's: setting the machine's clock changes nothing.
"""

from __future__ import annotations

import ipaddress
import math
import time
from collections.abc import Callable
from typing import final

import attrs

BURST = 2.0
"""Seconds of a rate that may be used at once."""

MAX_PEERS = 2**16
"""Most addresses that are remembered; the one that was heard of first is forgotten for one more."""


@final
@attrs.frozen
class Limits:
    """What is allowed. Args: rate (requests per second and address; 0: any), body (bytes of a request), held (bytes of
    all requests under way), seconds (for a request to arrive, and for its answer), connections (open at once), head
    (bytes of a request before its body), tickets (most in one request)."""

    rate: float = 100.0
    body: int = 2**22
    held: int = 2**26
    seconds: float = 20.0
    connections: int = 2000
    head: int = 2**15
    tickets: int = 10_000


DEFAULT = Limits()


@final
class Rates:
    """A token bucket per address. Addresses of this machine, where a proxy may run, have no limit. Args: rate (per
    second; 0: no limits), clock (seconds that never go back)."""

    def __init__(self, rate: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate, self._clock = rate, clock
        self._most = max(1.0, rate * BURST)
        self._used = dict[str, tuple[float, float]]()

    def __len__(self) -> int:
        """How many addresses are remembered."""
        return len(self._used)

    def wait(self, address: str) -> float:
        """Take one request of an address: 0 if it is allowed, else the seconds until one is."""
        peer = _peer(address) if self._rate else None
        if peer is None:
            return 0.0
        now = self._clock()
        used, at = self._used.pop(peer, (0.0, now))
        used = max(0.0, used - (now - at) * self._rate)
        wait = max(0.0, (used + 1 - self._most) / self._rate)
        self._used[peer] = (used if wait else used + 1, now)
        if len(self._used) > MAX_PEERS:
            del self._used[next(iter(self._used))]
        return wait

    def forget(self) -> None:
        """Forget the addresses whose allowance is full again."""
        now = self._clock()
        full = [peer for peer, (used, at) in self._used.items() if used <= (now - at) * self._rate]
        for peer in full:
            del self._used[peer]


def retry_after(seconds: float) -> dict[str, str]:
    """The header that says when to come again."""
    return {"retry-after": str(max(1, math.ceil(seconds)))}


def _peer(address: str) -> str | None:
    """Whom an address belongs to: itself, or its network of 64 bits in version 6; None for this machine."""
    try:
        given = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address or None
    if isinstance(given, ipaddress.IPv6Address):
        given = given.ipv4_mapped or given
    if given.is_loopback:
        return None
    return str(given) if given.version == 4 else str(ipaddress.ip_network((int(given) >> 64 << 64, 64)))
