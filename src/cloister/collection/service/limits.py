"""Limits on what anybody may ask of a collector: rates per address, and bytes under way.

An address is kept in memory only, and only while its allowance is not full again; it is written nowhere. Time is the
monotonic clock's: setting the machine's clock changes nothing.

What a collector counts, as text for Prometheus. Numbers only: no address, no user number, no time of a report.
"""

from __future__ import annotations

import ipaddress
import math
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import final

import attrs

REASONS = {
    "no reports": "requests that hold no report of this form",
    "damaged": "requests with reports that are damaged or cut short",
    "another plan": "requests with reports of another plan",
    "another round": "requests with reports of a round that is closed",
    "out of range": "reports of user numbers that the plan does not have",
    "duplicate": "reports of users who have reported already",
    "ticket": "reports without a valid ticket",
    "closed": "requests after the last round was closed",
    "between rounds": "requests while the next round was being opened",
    "no HTTP": "connections that sent no HTTP, or too long a head",
    "form": "requests whose content is not application/octet-stream",
    "too large": "requests that are too large",
    "too slow": "requests that took too long",
    "too many": "requests above the rate of one address",
    "busy": "requests while too much was under way, or too many connections were open",
    "disk": "requests while the disk took nothing",
}
"""Why something is refused. Those up to "ticket" count reports; a request that is refused whole counts as one."""


@final
@attrs.define
class ServiceCounts:
    """All that is counted since the start.

    Args: accepted (reports), refused (per reason), requests (with reports), commits, bytes (written), seconds (of
    writing and syncing), slowest (of them), waiting (reports that wait for the disk), connections (open now), held
    (bytes of requests in memory).
    """

    accepted: int = 0
    refused: Counter[str] = attrs.field(factory=Counter)
    requests: int = 0
    commits: int = 0
    bytes: int = 0
    seconds: float = 0.0
    slowest: float = 0.0
    waiting: int = 0
    connections: int = 0
    held: int = 0

    def commit(self, reports: int, written: int, seconds: float) -> None:
        """Note a batch that is on the disk."""
        self.accepted += reports
        self.commits += 1
        self.bytes += written
        self.seconds += seconds
        self.slowest = max(self.slowest, seconds)

    def lines(self) -> list[str]:
        """For people: a line for each reason."""
        return [f"refused {count:,} {REASONS[reason]}" for reason, count in self.refused.items() if count]

    def text(self, facts: Mapping[str, float], of_plan: Mapping[str, float], plan: str) -> str:
        """Return all in Prometheus' text format.

        Args:
            facts: what is so now, by name: more gauges.
            of_plan: gauges that are compared between collectors of one plan, whose label they have.
            plan: the label, a beginning of its hash.
        """
        lines = [*self._metrics(facts)]
        for name, value in of_plan.items():
            lines += [f"# TYPE cloister_{name} gauge", f'cloister_{name}{{plan="{plan}"}} {value}']
        return "".join(f"{line}\n" for line in lines)

    def _metrics(self, facts: Mapping[str, float]) -> Iterator[str]:
        counters = {
            "reports_accepted": self.accepted,
            "requests": self.requests,
            "commits": self.commits,
            "written_bytes": self.bytes,
            "commit_seconds": self.seconds,
        }
        gauges = {
            "commit_seconds_slowest": self.slowest,
            "reports_waiting": self.waiting,
            "connections": self.connections,
            "held_bytes": self.held,
            **facts,
        }
        for name, value in counters.items():
            yield f"# TYPE cloister_{name}_total counter"
            yield f"cloister_{name}_total {value:g}" if isinstance(value, float) else f"cloister_{name}_total {value}"
        yield "# TYPE cloister_refused_total counter"
        for reason in REASONS:
            yield f'cloister_refused_total{{reason="{reason}"}} {self.refused[reason]}'
        for name, value in gauges.items():
            yield f"# TYPE cloister_{name} gauge"
            yield f"cloister_{name} {value:g}" if isinstance(value, float) else f"cloister_{name} {value}"


BURST = 2.0
"""Seconds of a rate that may be used at once."""

MAX_PEERS = 2**16
"""Most addresses that are remembered; the one that was heard of first is forgotten for one more."""


@final
@attrs.frozen
class Limits:
    """What is allowed. Args: rate (requests per second and address; 0: any), body (bytes of a request), held (bytes of
    all requests under way), seconds (for a request to arrive, and for its answer), connections (open at once), head
    (bytes of a request before its body), tickets (most in one request). Of ``held`` and of ``connections`` one address
    has a quarter, where it has a rate."""

    rate: float = 100.0
    body: int = 2**22
    held: int = 2**26
    seconds: float = 20.0
    connections: int = 2000
    head: int = 2**15
    tickets: int = 10_000

    @property
    def alone(self) -> int:
        """Most connections of one address, so that nobody takes all by sending nothing on many."""
        return max(1, self.connections // 4) if self.rate else self.connections

    @property
    def held_alone(self) -> int:
        """Most bytes under way of one address, so that nobody takes all memory by requests that do not end."""
        return self.held // 4 if self.rate else self.held


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
        peer = peer_of(address) if self._rate else None
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


@final
class HeldBytes:
    """Bytes of requests under way, of all and per address; this machine's have no share. Args: limits, counts (whose
    ``held`` is their sum)."""

    def __init__(self, limits: Limits, counts: ServiceCounts) -> None:
        self._limits, self._counts = limits, counts
        self._peers = Counter[str]()

    def __len__(self) -> int:
        """Return the number of addresses with bytes under way."""
        return len(self._peers)

    def add(self, peer: str | None, size: int) -> None:
        """Hold so many more bytes of an address; a negative number lets go of them."""
        self._counts.held += size
        if peer is not None:
            self._peers[peer] += size
            if not self._peers[peer]:
                del self._peers[peer]

    def full(self, peer: str | None) -> bool:
        """Return whether an address, or all together, hold more than they may."""
        alone = peer is not None and self._peers[peer] > self._limits.held_alone
        return alone or self._counts.held > self._limits.held


def retry_after(seconds: float) -> dict[str, str]:
    """The header that says when to come again."""
    return {"retry-after": str(max(1, math.ceil(seconds)))}


def peer_of(address: str) -> str | None:
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
