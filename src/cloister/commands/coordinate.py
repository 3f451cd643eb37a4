"""``cloister coordinate``: add up what nobody here can read."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from cloister.commands import PlanFile, Unsigned, event_log, say


def coordinate(
    plan: PlanFile,
    listen: Annotated[str, typer.Option(help="Where to listen: host:port.")],
    cert: Annotated[Path, typer.Option(help="The coordinator's certificate; its key (.key), ca.pem and NAME.pool lie beside it.")],
    key: Annotated[Path | None, typer.Option(help="Its private key, if it is elsewhere.")] = None,
    ca: Annotated[Path | None, typer.Option(help="The authority's certificate, if it is elsewhere.")] = None,
    secret: Annotated[Path | None, typer.Option(help="The coordinator's pooling key, if it is elsewhere.")] = None,
    journal: Annotated[Path | None, typer.Option(help="File to remember the session in: start again with it after a crash.")] = None,
    patience: Annotated[float, typer.Option(help="Seconds that parties may take to join.")] = 3600.0,
    timeout: Annotated[float, typer.Option(help="Seconds that a party may take over a round.")] = 300.0,
    attempts: Annotated[int, typer.Option(help="How often a round is tried before the session ends.")] = 3,
    log: Annotated[Path | None, typer.Option(help="File for a line of JSON per event; no private values.")] = None,
    unsigned: Unsigned = False,
) -> None:  # fmt: skip
    """Run a pooled clustering's coordinator: it sees masked numbers, and neither rows, sums nor centres."""
    from functools import partial

    from cloister.federated.coordinator import Coordinator
    from cloister.federated.desk import Desk
    from cloister.federated.grpc_server import Server
    from cloister.federated.journal import FileJournal, Memory
    from cloister.federated.rounds import coordinator_noise, outline
    from cloister.federated.signatures import check_signatures, folder_of
    from cloister.federated.tls import Credentials, read_file
    from cloister.federated.trust import PUBLISHED
    from cloister.pooling import read_pool_plan

    pool = read_pool_plan(plan)
    credentials = Credentials.read(cert, key, ca)
    if not unsigned:
        check_signatures(pool.agreement, folder_of(plan), credentials.authority)
    parties, rounds, noise = pool.agreement.parties, pool.rounds, pool.noise
    private = read_file(secret or cert.with_suffix(".pool"))
    coordinator = Coordinator(pool.agreement, Memory() if journal is None else FileJournal(journal), private=private)
    for round in rounds:
        coordinator.expect(outline(round, parties), partial(coordinator_noise, round, parties, noise))
    with event_log(log) as write:

        def told(entry: dict[str, Any]) -> None:
            write(entry)
            if entry["event"] in ("refused", "given up", "answered", "idle"):
                say(_told(entry, len(rounds)))

        desk = Desk(coordinator, len(rounds), patience=patience, timeout=timeout, attempts=attempts, log=told)
        server = Server(desk, listen, credentials, parties, pool.most_bytes)
        server.start()
        say(
            f"listening on port {server.port} for {', '.join(m.name for m in pool.agreement.members)}; {len(rounds)} rounds"
        )
        if pool.shares == 1:
            say(PUBLISHED)
        if pool.test_noise_seed is not None:
            say("WARNING: the plan has a test_noise_seed: the noise can be repeated and protects nobody")
        try:
            done = desk.finished(idle=patience + attempts * timeout)
        finally:
            server.stop()
    say("all rounds are answered" if done else f"ended after {coordinator.round} of {len(rounds)} rounds")
    if not done:
        raise typer.Exit(1)


def _told(entry: dict[str, Any], rounds: int) -> str:
    """An event in words. Rounds count from 1, as parties are told; the log's count from 0."""
    where = f"round {entry['round'] + 1} of {rounds}: " if entry.get("round", -1) >= 0 else ""
    more = " ".join(f"{name}={value}" for name, value in entry.items() if name not in ("event", "round"))
    return f"{where}{entry['event']} {more}".rstrip()
