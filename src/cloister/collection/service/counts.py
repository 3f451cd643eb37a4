"""What a collector counts, as text for Prometheus. Numbers only: no address, no user number, no time of a report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
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

    def text(self, facts: Mapping[str, float]) -> str:
        """In Prometheus' text format. Args: facts (what is so now, by name: more gauges)."""
        return "".join(f"{line}\n" for line in self._metrics(facts))

    def _metrics(self, facts: Mapping[str, float]) -> Iterator[str]:
        counters = {
            "reports_accepted": self.accepted, "requests": self.requests, "commits": self.commits,
            "written_bytes": self.bytes, "commit_seconds": self.seconds,
        }  # fmt: skip
        gauges = {
            "commit_seconds_slowest": self.slowest, "reports_waiting": self.waiting, "connections": self.connections,
            "held_bytes": self.held, **facts,
        }  # fmt: skip
        for name, value in counters.items():
            yield f"# TYPE cloister_{name}_total counter"
            yield f"cloister_{name}_total {value:g}" if isinstance(value, float) else f"cloister_{name}_total {value}"
        yield "# TYPE cloister_refused_total counter"
        for reason in REASONS:
            yield f'cloister_refused_total{{reason="{reason}"}} {self.refused[reason]}'
        for name, value in gauges.items():
            yield f"# TYPE cloister_{name} gauge"
            yield f"cloister_{name} {value:g}" if isinstance(value, float) else f"cloister_{name} {value}"
