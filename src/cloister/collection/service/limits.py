"""Rate limits per address, limits on pending bytes, and counts for Prometheus.

An address is kept in memory only, until its allowance is full again, and never written. Time is the monotonic clock's,
so setting the machine's clock changes nothing. Counts hold no address, no user number and no time of a report.
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
"""Reasons of refusals. Those up to "ticket" count reports; a request that is refused whole counts as one."""


@final
@attrs.define
class ServiceCounts:
    """Counts since the start.

    Attributes:
        accepted: reports.
        refused: refusals per reason.
        requests: requests with reports.
        commits: batches written.
        bytes: bytes written.
        seconds: seconds of writing and syncing.
        slowest: seconds of the slowest commit.
        waiting: reports that wait for the disk.
        connections: connections open now.
        pending_bytes: bytes of requests in memory.
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
    pending_bytes: int = 0

    def commit(self, reports: int, written: int, seconds: float) -> None:
        """Count a batch that is on the disk."""
        self.accepted += reports
        self.commits += 1
        self.bytes += written
        self.seconds += seconds
        self.slowest = max(self.slowest, seconds)

    def lines(self) -> list[str]:
        """Return a line per reason of refusals, for people."""
        return [f"refused {count:,} {REASONS[reason]}" for reason, count in self.refused.items() if count]

    def text(self, facts: Mapping[str, float], of_plan: Mapping[str, float], plan: str) -> str:
        """Return all counts in Prometheus' text format.

        Args:
            facts: further gauges, by name.
            of_plan: gauges to compare between collectors of one plan, labelled with ``plan``.
            plan: first digits of the plan's hash.
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
            "held_bytes": self.pending_bytes,
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
"""Seconds of a rate that may be used in a burst."""

MAX_PEERS = 2**16
"""Maximum number of addresses remembered; the least recent one makes room for another."""


@final
@attrs.frozen
class Limits:
    """Limits of a collector; with a rate limit, one address has at most a quarter of pending bytes and connections.

    Attributes:
        rate: requests per second and address; 0: no limit.
        body: bytes of a request's body.
        pending_bytes: bytes of all pending requests.
        seconds: seconds for a request to arrive, and for its answer.
        connections: open connections.
        head: bytes of a request before its body.
        tickets: tickets in one request.
    """

    rate: float = 100.0
    body: int = 2**22
    pending_bytes: int = 2**26
    seconds: float = 20.0
    connections: int = 2000
    head: int = 2**15
    tickets: int = 10_000

    @property
    def connections_per_peer(self) -> int:
        """Maximum number of connections of one address, so that idle ones cannot take them all."""
        return max(1, self.connections // 4) if self.rate else self.connections

    @property
    def pending_bytes_per_peer(self) -> int:
        """Maximum pending bytes of one address, so that endless requests cannot take all memory."""
        return self.pending_bytes // 4 if self.rate else self.pending_bytes


DEFAULT = Limits()


@final
class Rates:
    """Token bucket per address; this machine, where a proxy may run, has no limit.

    Args:
        rate: requests per second; 0: no limits.
        clock: monotonic clock, in seconds.
    """

    def __init__(self, rate: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate, self._clock = rate, clock
        self._most = max(1.0, rate * BURST)
        self._used = dict[str, tuple[float, float]]()

    def __len__(self) -> int:
        """Return the number of addresses remembered."""
        return len(self._used)

    def wait(self, address: str) -> float:
        """Count one request of an address; return 0 if it is allowed, else the seconds until one is."""
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
class PendingBytes:
    """Bytes of pending requests per address, without a share for this machine; ``counts`` has their sum."""

    def __init__(self, limits: Limits, counts: ServiceCounts) -> None:
        self._limits, self._counts = limits, counts
        self._peers = Counter[str]()

    def __len__(self) -> int:
        """Return the number of addresses with pending bytes."""
        return len(self._peers)

    def add(self, peer: str | None, size: int) -> None:
        """Add ``size`` bytes (negative: release them) of an address."""
        self._counts.pending_bytes += size
        if peer is not None:
            self._peers[peer] += size
            if not self._peers[peer]:
                del self._peers[peer]

    def full(self, peer: str | None) -> bool:
        """Return True if an address, or all together, exceed their limit."""
        peer_full = peer is not None and self._peers[peer] > self._limits.pending_bytes_per_peer
        return peer_full or self._counts.pending_bytes > self._limits.pending_bytes


def retry_after(seconds: float) -> dict[str, str]:
    """Return the header that says when to retry."""
    return {"retry-after": str(max(1, math.ceil(seconds)))}


def peer_of(address: str) -> str | None:
    """Return the owner of an address: itself, or for IPv6 its /64 network; None for this machine."""
    try:
        ip = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address or None
    if isinstance(ip, ipaddress.IPv6Address):
        ip = ip.ipv4_mapped or ip
    if ip.is_loopback:
        return None
    return str(ip) if ip.version == 4 else str(ipaddress.ip_network((int(ip) >> 64 << 64, 64)))
