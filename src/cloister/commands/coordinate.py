"""``cloister coordinate``: the coordinator of a pool, which adds up masked numbers that it cannot read."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cloister.commands.common import parse_seconds, plain, say
from cloister.commands.option_groups import option_groups
from cloister.commands.pool import MemberOptions, PoolFile
from cloister.commands.program import ending
from cloister.commands.progress import Event, Log, event_log

if TYPE_CHECKING:
    from cloister.federated.plan import FederatedPlan
    from cloister.federated.protocol.coordinator import Coordinator
    from cloister.federated.transport.certificates import Credentials

GONE = "the coordinator was interrupted and kept no journal: this session is over, begin another"
"""Message to the parties when a coordinator without a journal is interrupted; with one, they wait for it."""

WORDS = {
    "ends soon": "{why}",
    "tried": "{party} has tried: its plan and its certificate are in order",
    "hello": "{party} has joined {here}",
    "back": "{party} has joined again",
    "refused": "{party} was refused: {why}",
    "left": "{party} cannot begin",
    "not joined": "{missing} did not join in time",
    "vector": "{where}: {party} has sent {here}",
    "ask": "{where}: {party} asks for its outcome",
    "answered": "{where}: answered",
    "given up": "{where}: given up, for want of {missing}",
    "idle": "no party has been heard from for long; missing: {missing}",
    "done": "all rounds are answered",
}
"""Texts of all events in a coordinator's log; docs/howto/pool.md says what to do at each."""


RoundTimeout = Annotated[
    float,
    typer.Option(
        parser=parse_seconds,
        metavar="<float>",
        help="Seconds that parties may take for a round, counted from the first message.",
    ),
]


@option_groups
def coordinate(
    plan: PoolFile,
    listen: Annotated[str, typer.Option(help="Address to listen on: host:port.")],
    member: MemberOptions,
    timeout: RoundTimeout = 300.0,
    attempts: Annotated[int, typer.Option(min=1, help="Attempts at a round before the session ends.")] = 3,
    log: Log = None,
) -> None:
    """Coordinate a pool: add up the parties' masked numbers.

    The coordinator sees masked numbers only: neither rows nor sums nor centres.
    """
    from cloister.federated.protocol.coordinator import Coordinator
    from cloister.federated.protocol.journal import journal_at
    from cloister.federated.transport.service import CoordinatorService
    from cloister.federated.transport.signatures import check_certificate
    from cloister.federated.transport.tls import Server

    pool, journal = member.plan(plan), member.journal
    credentials = member.credentials()
    check_certificate(credentials)
    signed = member.signatures(pool, plan, credentials)
    parties, rounds = pool.agreement.parties, pool.script.expected(pool.noise)
    with event_log(log) as write, journal_at(journal) as session:
        coordinator = Coordinator(pool.agreement, session, private=member.pooling_key())
        for shape, noise in rounds:
            coordinator.expect(shape, noise)

        def report(entry: Event) -> None:
            write(entry)
            with suppress(OSError):  # a closed output is no reason to end
                say(plain(in_words(entry, parties, len(rounds))))

        service = CoordinatorService(
            coordinator,
            len(rounds),
            patience=member.patience,
            timeout=timeout,
            attempts=attempts,
            log=report,
            valid_until={name: from_now(end) for name, end in signed.items()},
        )
        server = Server(service, listen, credentials, parties, pool.max_message_bytes)
        server.start()
        _announce(pool, server.port, len(rounds))
        _warn_of_ends(credentials, signed, report)
        with ending(lambda error: _next_step(coordinator, journal), lambda: True):
            try:
                done = service.finished(idle=member.patience + attempts * timeout)
            except KeyboardInterrupt:
                service.stop(GONE if coordinator.session and journal is None else "")
                raise
            finally:
                server.stop()
        if done:
            report({"event": "done", "round": coordinator.round - 1})
    if not done:
        say(f"ended after {coordinator.round} of {len(rounds)} rounds. {_next_step(coordinator, journal)}")
        raise typer.Exit(1)


def _announce(pool: FederatedPlan, port: int, rounds: int) -> None:
    """Say that the coordinator listens, and what the plan's noise means for whoever runs it."""
    from cloister.federated.plan import SEEDED_WARNING
    from cloister.federated.protocol.collusion import PUBLISHED

    names = ", ".join(party.name for party in pool.agreement.members)
    say(f"listening on port {port} for {names}; {rounds} rounds")
    if pool.shares == 1:
        say(PUBLISHED)
    if pool.test_noise_seed is not None:
        say(SEEDED_WARNING)


def _warn_of_ends(credentials: Credentials, signed: dict[str, datetime], report: Callable[[Event], None]) -> None:
    """Report the certificates that end soon."""
    from cloister.federated.protocol.agreement import COORDINATOR_NAME
    from cloister.federated.transport.signatures import expiry_warnings

    for name, why in expiry_warnings(credentials, COORDINATOR_NAME, signed).items():
        report({"event": "ends soon", "party": name, "why": why})


def from_now(end: datetime) -> float:
    """Return a date on the clock of ``time.monotonic``."""
    return time.monotonic() + (end - datetime.now(UTC)).total_seconds()


def in_words(entry: Event, parties: int, rounds: int) -> str:
    """Return the text of an event, with rounds and attempts counted from 1 as parties see them (the log: from 0)."""
    missing, attempt = entry.get("missing", ""), f", attempt {entry['attempt'] + 1}" if entry.get("attempt") else ""
    round_text = f"round {entry.get('round', -1) + 1} of {rounds}{attempt}"
    here = f"({entry.get('here', 0)} of {parties})" + (f"; waiting for {missing}" if missing else "")
    return WORDS[entry["event"]].format(**entry | {"where": round_text, "here": here})


def _next_step(coordinator: Coordinator, journal: Path | None) -> str:
    """Say how to go on with a session whose coordinator ends."""
    if not coordinator.session:
        return "not all had joined, and nothing was sent: start the same command again"
    if journal is None:
        return "without --journal FILE the session cannot go on: begin another, with new journals"
    return f"the session is open: start the same command again with --journal {journal}, and parties with theirs"
