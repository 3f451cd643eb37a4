"""``cloister join``: one party's half of a pooled clustering."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, final

import attrs
import typer

from cloister.commands.common import (
    ADDRESS_HELP,
    notes_once,
    plain,
    print_json,
    print_result,
    say,
    show,
    tell_columns,
)
from cloister.commands.option_groups import excludes, option_groups
from cloister.commands.options import LedgerOptions, OutputOptions
from cloister.commands.pool import MemberOptions, PartyName, PoolFile
from cloister.commands.program import RunProgress, ending, printing
from cloister.commands.progress import Log, event_log, signs_of_life
from cloister.core.errors import CloisterError, InvalidInput, UnknownName
from cloister.rows.options import Reading

if TYPE_CHECKING:
    from cloister.federated.plan import FederatedPlan
    from cloister.federated.population import Joined
    from cloister.federated.protocol.party import Party
    from cloister.federated.transport.certificates import Credentials
    from cloister.federated.transport.tls import Line

HASTY = 10.0
"""Maximum number of seconds for a message that no run depends on."""


@option_groups
def join(
    plan: PoolFile,
    party: PartyName,
    data: Annotated[list[str], typer.Option(help=f"This party's rows. {ADDRESS_HELP} Repeatable.")],
    reading: Annotated[
        Reading,
        excludes("the plan names them, and all hold numbers", "columns", "categories"),
        excludes("a pool protects rows, not users", "user_column"),
    ],
    member: MemberOptions,
    charged: LedgerOptions,
    printed: OutputOptions,
    connect: Annotated[
        str | None, typer.Option(help="Address of the coordinator, host:port, if the plan does not have it.")
    ] = None,
    check: Annotated[
        bool,
        typer.Option(
            "--check",
            help="Only check that this party could join: plan, keys, certificates, coordinator and its clock, columns "
            "and budget. Spends nothing, and sends nothing about any row.",
        ),
    ] = False,
    log: Log = None,
) -> None:
    """Join a pool: cluster your rows together with others'.

    All parties get the same private centres, and nobody sees the rows of another.
    """
    from cloister.federated.plan import SEEDED_WARNING
    from cloister.federated.transport.signatures import check_certificate, expiry_warnings
    from cloister.run.fit import source

    pool = member.plan(plan)
    if pool.test_noise_seed is not None:
        say(SEEDED_WARNING)
    target = connect or pool.coordinator
    if not target:
        raise InvalidInput("the plan does not say where the coordinator is: give --connect host:port")
    account = charged.account()
    credentials = member.credentials()
    until = check_certificate(credentials, party)
    signed = member.signatures(pool, plan, credentials)
    warnings = [*expiry_warnings(credentials, party, signed).values()]
    secret, shared = member.pooling_key(), pool.agreement.masks == "shared"
    keys = {"secret": secret if shared else None, "private": None if shared else secret}
    columns: dict[str, Any] = {"columns": list(pool.plan.clustered), "described": pool.request.describe}
    rows = partial(source, data, reading, told=notes_once(), **columns)
    seat = Seat(pool, party, target, credentials, until, keys, member, rows, warnings)
    if check:
        _check(seat, account, bool(printed.as_json))
        return
    for warning in warnings:
        say(warning)
    _take_part(seat, account, printed, log)


@final
@attrs.frozen
class Seat:
    """Place of a party in a pool, whose plan, keys and certificates are in order.

    Args:
        pool: the plan that all parties hold.
        party: the party's name.
        target: address of the coordinator.
        credentials: certificates and private key.
        until: end of the party's certificate.
        keys: pooling key or common secret, by parameter of ``Party``.
        member: options of the session.
        rows: opens the party's rows.
        warnings: on certificates that end soon.
    """

    pool: FederatedPlan
    party: str
    target: str
    credentials: Credentials
    until: datetime
    keys: Mapping[str, Any] = attrs.field(repr=False)
    member: MemberOptions
    rows: Callable[[], Any]
    warnings: list[str]

    def line(self, **options: Any) -> Line:
        """Connect to the coordinator."""
        from cloister.federated.transport.tls import Line

        return Line(self.target, self.credentials, max_bytes=self.pool.max_message_bytes, **options)

    def hasty(self, **options: Any) -> Line:
        """Connect to the coordinator for one message that no run depends on."""
        return self.line(patience=min(self.member.patience, HASTY), **options)

    def state(self, **journal: Any) -> Party:
        """Return the party's side of the protocol."""
        from cloister.federated.protocol.party import Party

        return Party(self.pool.agreement, self.party, **self.keys, **journal)


def _check(seat: Seat, account: Any, as_json: bool) -> None:
    """Try everything that can be tried before a run, and say that it is in order."""
    state = seat.state()
    with closing(seat.hasty(on_warning=seat.warnings.append)) as line:
        state.take_noted(line.exchange(state.check(trial=True)))
    # only now are the rows opened: that this party has tried tells nobody anything about its file (law 7)
    with closing(seat.rows()) as table:
        columns = list(table.columns)
    if account is not None and account.resume is None:
        account.admits(seat.pool.plan)
    facts = {
        "agreement": seat.pool.agreement.hash.hex(),
        "parties": [member.name for member in seat.pool.agreement.members],
        "signed": not seat.member.unsigned,
        "party": seat.party,
        "certificate_until": seat.until.isoformat(),
        "columns": columns,
        "coordinator": seat.target,
        "clock_ahead": round(line.ahead, 1),
        "warnings": seat.warnings,
    }
    print_json(facts) if as_json else _show_check(facts)


def _show_check(facts: dict[str, Any]) -> None:
    from cloister.federated.transport.tls import clock_difference

    signed = "all have signed it" if facts["signed"] else "their signatures were not checked"
    show(f"plan: agreement {facts['agreement'][:16]} of {', '.join(facts['parties'])}; {signed}")
    show(f"certificate: of '{facts['party']}', until {facts['certificate_until'][:16].replace('T', ' ')} UTC")
    show(plain(f"columns: {', '.join(facts['columns'])} are there"))
    show(f"coordinator: {facts['coordinator']} takes the certificate and holds the same plan")
    show(f"clock: this machine's is {clock_difference(facts['clock_ahead'])} the coordinator's")
    for warning in facts["warnings"]:
        show(f"warning: {warning}")
    show("nothing was reserved or charged, and nothing about any row was sent")


def _take_part(seat: Seat, account: Any, printed: OutputOptions, log: Path | None) -> None:
    """Run the session with the other parties, and print the result."""
    from cloister.federated.population import Joined
    from cloister.federated.protocol.journal import journal_at
    from cloister.run.fit import fit
    from cloister.run.saving import checked_target

    place, party, journal = (
        None if printed.out is None else checked_target(printed.out),
        seat.party,
        seat.member.journal,
    )
    standing = RunProgress(account, place, None if account is None else account.resume)
    with (
        event_log(log) as write,
        closing(seat.line(patience=seat.member.patience, on_warning=say)) as line,
        journal_at(journal) as session,
    ):
        state = seat.state(journal=session)
        stage = ["waiting for the others"]

        def report(text: str) -> None:
            stage[:] = [text]
            write({"event": "progress", "party": party, "what": text})
            with suppress(OSError):  # a closed output is no reason to leave the other parties
                say(text)

        try:
            table = seat.rows()
        except UnknownName:
            if not state.opened:
                _leave(state, seat.hasty)
            raise
        joined = Joined(table, state, line, seat.pool.script, report)
        with (
            closing(table),
            ending(lambda error: _next_step(error, joined, party, journal, standing.run or ""), lambda: True),
            signs_of_life(lambda: stage[0], lambda entry: write({**entry, "party": party}), steps=False),
        ):
            standing.result = fit(
                seat.pool.request,
                joined,
                noise=seat.pool.noise,
                account=account,
                reserved=standing.reserved,
                checked=lambda: tell_columns(table),
                keep=standing.keep,
                facts={"trust": list(seat.pool.trust)},
            )
        write({"event": "finished", "party": party})
    with printing(standing.where, only=place is None):
        if printed.as_json:
            print_json(standing.result.as_dict())
            return
        print_result(standing.result)
        show("\n".join(seat.pool.trust))
        if place is not None:
            show(f"\nsaved to {place}")


def _leave(state: Party, line: Callable[[], Line]) -> None:
    """Tell the coordinator that this party cannot begin, since its files lack a column: nobody then waits for it.

    Whatever else opening a file finds may be a row's fault (a line of CSV with a cell too many, say), and like the
    outcome of checking the rows it is told to nobody (law 7).
    """
    with suppress(CloisterError), closing(line()) as hasty:
        hasty.exchange(state.leave())


def _next_step(error: BaseException, joined: Joined, party: str, journal: Path | None, run: str) -> str:
    """Say how to go on with a run that ended early. A message that will never be accepted is not sent again."""
    from cloister.federated.protocol.messages import Reason, Rejected

    spent = f"the ledger keeps what run {run} reserved" if run and joined.opened else ""
    if isinstance(error, Rejected) and error.reason is not Reason.TIMEOUT:
        return spent
    if not joined.opened:
        if not joined.hello_sent:
            return f"'{party}' has not joined: others wait for it, and are not told why"
        again = "the coordinator must start again, too" if journal is None else f"with --journal {journal}"
        if isinstance(error, Rejected) and journal is not None:
            again += ", when the coordinator is started again"
        again += ", without --resume: nothing is reserved any more" if run else ""
        return f"not all had joined, and nothing was sent: start the same command again, {again}"
    if journal is None:
        return (
            f"without --journal FILE this party cannot come back, and the session is over for "
            f"all{'; ' if spent else ''}{spent}"
        )
    session, resume = (f" and run {run}", f" --resume {run}") if run else ("", "")
    return f"the session{session} can go on: start the same command again with --journal {journal}{resume}"
