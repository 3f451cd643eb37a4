"""``cloister coordinate``: add up masked numbers that nobody here can read."""

from __future__ import annotations

import time
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cloister.commands.common import (
    Authority,
    Certificate,
    Journal,
    NotPrivate,
    PlanFile,
    PrivateKey,
    Unsigned,
    plain,
    say,
    seconds,
)
from cloister.commands.program import ending
from cloister.commands.progress import Log, event_log

if TYPE_CHECKING:
    from cloister.federated.protocol.coordinator import Coordinator

GONE = "the coordinator was interrupted and kept no journal: this session is over, begin another"
"""Told to the parties when a coordinator without a journal is interrupted; with one, they find it gone and wait."""

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
"""All events of a coordinator's log, in words. docs/howto/pool.md says of each what is to be done."""


def coordinate(
    plan: PlanFile,
    listen: Annotated[str, typer.Option(help="Where to listen: host:port.")],
    cert: Certificate,
    key: PrivateKey = None,
    ca: Authority = None,
    secret: Annotated[Path | None, typer.Option(help="The coordinator's pooling key, if it is elsewhere.")] = None,
    journal: Journal = None,
    patience: Annotated[
        float, typer.Option(parser=seconds, metavar="<float>", help="Seconds that parties may take to join.")
    ] = 3600.0,
    timeout: Annotated[
        float,
        typer.Option(
            parser=seconds,
            metavar="<float>",
            help="Seconds that parties may take over a round, after the first one has sent.",
        ),
    ] = 300.0,
    attempts: Annotated[int, typer.Option(min=1, help="How often a round is tried before the session ends.")] = 3,
    log: Log = None,
    unsigned: Unsigned = False,
    not_private: NotPrivate = False,
) -> None:
    """Run a pooled clustering's coordinator: it sees masked numbers, and neither rows, sums nor centres."""
    from cloister.federated.plan import SEEDED_WARNING, read_pool_plan
    from cloister.federated.protocol.agreement import COORDINATOR_NAME
    from cloister.federated.protocol.collusion import PUBLISHED
    from cloister.federated.protocol.coordinator import Coordinator
    from cloister.federated.protocol.journal import journal_at
    from cloister.federated.transport.certificates import Credentials, read_file
    from cloister.federated.transport.service import CoordinatorService
    from cloister.federated.transport.signatures import check_certificate, check_signatures, expiry_warnings, folder_of
    from cloister.federated.transport.tls import Server

    pool = read_pool_plan(plan, not_private)
    credentials = Credentials.read(cert, key, ca)
    check_certificate(credentials)
    signed = {} if unsigned else check_signatures(pool.agreement, folder_of(plan), credentials.authority)
    parties, rounds = pool.agreement.parties, pool.script.expected(pool.noise)
    private = read_file(secret or cert.with_suffix(".pool"), secret=True)
    with event_log(log) as write, journal_at(journal) as kept:
        coordinator = Coordinator(pool.agreement, kept, private=private)
        for shape, noise in rounds:
            coordinator.expect(shape, noise)

        def told(entry: dict[str, Any]) -> None:
            write(entry)
            with suppress(OSError):  # a closed output is no reason to end
                say(plain(in_words(entry, parties, len(rounds))))

        service = CoordinatorService(
            coordinator,
            len(rounds),
            patience=patience,
            timeout=timeout,
            attempts=attempts,
            log=told,
            valid_until={name: from_now(end) for name, end in signed.items()},
        )
        server = Server(service, listen, credentials, parties, pool.max_message_bytes)
        server.start()
        say(
            f"listening on port {server.port} for {', '.join(m.name for m in pool.agreement.members)}; {len(rounds)} "
            f"rounds"
        )
        if pool.shares == 1:
            say(PUBLISHED)
        if pool.test_noise_seed is not None:
            say(SEEDED_WARNING)
        for whose, why in expiry_warnings(credentials, COORDINATOR_NAME, signed).items():
            told({"event": "ends soon", "party": whose, "why": why})
        with ending(lambda error: _how(coordinator, journal), lambda: True):
            try:
                done = service.finished(idle=patience + attempts * timeout)
            except KeyboardInterrupt:
                service.stop(GONE if coordinator.session and journal is None else "")
                raise
            finally:
                server.stop()
        if done:
            told({"event": "done", "round": coordinator.round - 1})
    if not done:
        say(f"ended after {coordinator.round} of {len(rounds)} rounds. {_how(coordinator, journal)}")
        raise typer.Exit(1)


def from_now(end: datetime) -> float:
    """When a date comes, as ``time.monotonic`` counts."""
    return time.monotonic() + (end - datetime.now(UTC)).total_seconds()


def in_words(entry: dict[str, Any], parties: int, rounds: int) -> str:
    """An event in words, with rounds and attempts counted from 1 as parties see them; the log counts from 0."""
    missing, attempt = entry.get("missing", ""), f", attempt {entry['attempt'] + 1}" if entry.get("attempt") else ""
    where = f"round {entry.get('round', -1) + 1} of {rounds}{attempt}"
    here = f"({entry.get('here', 0)} of {parties})" + (f"; waiting for {missing}" if missing else "")
    return WORDS[entry["event"]].format(**entry | {"where": where, "here": here})


def _how(coordinator: Coordinator, journal: Path | None) -> str:
    """How to go on with a session whose coordinator ends."""
    if not coordinator.session:
        return "not all had joined, and nothing was sent: start the same command again"
    if journal is None:
        return "without --journal FILE the session cannot go on: begin another, with new journals"
    return f"the session is open: start the same command again with --journal {journal}, and parties with theirs"
