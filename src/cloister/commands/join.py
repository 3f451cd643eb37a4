"""``cloister join``: one party's half of a pooled clustering."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cloister.commands.common import (
    ADDRESS_HELP,
    Authority,
    Certificate,
    Journal,
    NotPrivate,
    PartyName,
    PlanFile,
    PrivateKey,
    Unsigned,
    plain,
    print_json,
    print_result,
    say,
    seconds,
    show,
    tell_columns,
    told_once,
)
from cloister.commands.option_groups import excludes, option_groups
from cloister.commands.options import Charged, Printed
from cloister.commands.program import RunProgress, ending, printing
from cloister.commands.progress import Log, event_log, signs_of_life
from cloister.core.errors import CloisterError, InvalidInput, UnknownName, cause
from cloister.rows.options import Reading

if TYPE_CHECKING:
    from cloister.federated.population import Joined
    from cloister.federated.protocol.party import Party
    from cloister.federated.transport.tls import Line

HASTY = 10.0
"""Most seconds for a word that nobody's run depends on."""


@option_groups
def join(
    plan: PlanFile,
    party: PartyName,
    data: Annotated[
        list[str],
        typer.Option(help=f"This party's own, repeatable. {ADDRESS_HELP}"),
    ],
    cert: Certificate,
    reading: Annotated[
        Reading,
        excludes("all parties' plan names them, and each holds numbers", "columns", "categories"),
        excludes("a pool's promise is about rows", "user_column"),
    ],
    charged: Charged,
    printed: Printed,
    key: PrivateKey = None,
    ca: Authority = None,
    secret: Annotated[
        Path | None, typer.Option(help="This party's pooling key, or with shared masks the parties' common secret.")
    ] = None,
    connect: Annotated[str | None, typer.Option(help="The coordinator, host:port, if the plan does not say.")] = None,
    journal: Journal = None,
    check: Annotated[
        bool,
        typer.Option(
            "--check",
            help="Only try whether this party could begin: plan, keys, certificates, the coordinator and its clock, "
            "columns, budget. Nothing is reserved or charged, and nothing of a row is sent.",
        ),
    ] = False,
    patience: Annotated[
        float,
        typer.Option(parser=seconds, metavar="<float>", help="Seconds to wait for the coordinator and the others."),
    ] = 3600.0,
    unsigned: Unsigned = False,
    not_private: NotPrivate = False,
    log: Log = None,
) -> None:
    """Pool this party's rows with others' that nobody sees. All parties get the same private centres."""
    from functools import partial

    from cloister.federated.plan import SEEDED_WARNING, read_pool_plan
    from cloister.federated.population import Joined
    from cloister.federated.protocol.journal import journal_at
    from cloister.federated.protocol.party import Party
    from cloister.federated.transport.certificates import Credentials, read_file
    from cloister.federated.transport.signatures import check_certificate, check_signatures, expiry_warnings, folder_of
    from cloister.federated.transport.tls import Line
    from cloister.run.fit import fit, source
    from cloister.run.saving import checked_target

    pool = read_pool_plan(plan, not_private)
    if pool.test_noise_seed is not None:
        say(SEEDED_WARNING)
    target = connect or pool.coordinator
    if not target:
        raise InvalidInput("the plan does not say where the coordinator is: give --connect host:port")
    account, as_json = charged.account(), bool(printed.as_json)
    credentials = Credentials.read(cert, key, ca)
    until = check_certificate(credentials, party)
    signed = {} if unsigned else check_signatures(pool.agreement, folder_of(plan), credentials.authority)
    warnings = [*expiry_warnings(credentials, party, signed).values()]
    hidden = read_file(secret or cert.with_suffix(".pool"), secret=True)
    shared = pool.agreement.masks == "shared"
    keys: dict[str, Any] = {"secret": hidden if shared else None, "private": None if shared else hidden}
    columns: dict[str, Any] = {"columns": list(pool.plan.clustered), "described": pool.request.describe}
    rows = partial(source, data, reading, told=told_once(), **columns)
    hasty = partial(Line, target, credentials, min(patience, HASTY), pool.max_message_bytes)
    if check:
        state = Party(pool.agreement, party, **keys)
        with closing(hasty(on_warning=warnings.append)) as line:
            state.take_noted(line.exchange(state.check(trial=True)))
        with closing(rows()) as own:  # after it: that this party has tried tells nobody of its file (law 7)
            columns_there = list(own.columns)
        if account is not None and account.resume is None:
            account.admits(pool.plan)
        _tell_tried(
            {
                "agreement": pool.agreement.hash.hex(),
                "parties": [member.name for member in pool.agreement.members],
                "signed": not unsigned,
                "party": party,
                "certificate_until": until.isoformat(),
                "columns": columns_there,
                "coordinator": target,
                "clock_ahead": round(line.ahead, 1),
                "warnings": warnings,
            },
            as_json,
        )
        return
    for words in warnings:
        say(words)
    place = None if printed.out is None else checked_target(printed.out)
    standing = RunProgress(account, place, None if account is None else account.resume)
    with (
        event_log(log) as write,
        closing(Line(target, credentials, patience, pool.max_message_bytes, say)) as line,
        journal_at(journal) as kept,
    ):
        state = Party(pool.agreement, party, **keys, journal=kept)

        stands = ["waiting for the others"]

        def told(words: str) -> None:
            stands[:] = [words]
            write({"event": "progress", "party": party, "what": words})
            with suppress(OSError):  # a closed output is no reason to leave the other parties
                say(words)

        try:
            own = rows()
        except UnknownName:
            if not state.opened:
                _leave(state, hasty)
            raise
        joined = Joined(own, state, line, pool.script, told)
        with (
            closing(own),
            ending(lambda error: _how(error, joined, party, journal, standing.run or ""), lambda: True),
            signs_of_life(lambda: stands[0], lambda entry: write({**entry, "party": party}), steps=False),
        ):
            result = fit(
                pool.request,
                joined,
                noise=pool.noise,
                account=account,
                reserved=standing.reserved,
                checked=lambda: tell_columns(own),
                keep=None if place is None else lambda r: r.save(place),
                facts={"trust": list(pool.trust)},
            )
        write({"event": "finished", "party": party})
    standing.saved, standing.result = place is not None, result
    with printing(standing.where, only=place is None):
        if as_json:
            print_json(result.as_dict())
            return
        print_result(result)
        show("\n".join(pool.trust))
        if place is not None:
            show(f"\nsaved to {place}")


def _leave(state: Party, line: Callable[[], Line]) -> None:
    """Tell the coordinator that this party cannot begin, so that nobody waits for it: its files have no such column.
    All else that opening a file finds may be a row's fault (a line of CSV with a cell too many, say), and like what a
    check of the rows says it is told to nobody (law 7)."""
    with suppress(CloisterError), closing(line()) as hasty:
        hasty.exchange(state.leave())


def _tell_tried(facts: dict[str, Any], as_json: bool) -> None:
    """Say that everything is in order that can be tried before a run."""
    from cloister.federated.transport.tls import clock_difference

    if as_json:
        print_json(facts)
        return
    signed = "all have signed it" if facts["signed"] else "their signatures were not looked at"
    show(f"plan: agreement {facts['agreement'][:16]} of {', '.join(facts['parties'])}; {signed}")
    show(f"certificate: of '{facts['party']}', until {facts['certificate_until'][:16].replace('T', ' ')} UTC")
    show(plain(f"columns: {', '.join(facts['columns'])} are there"))
    show(f"coordinator: {facts['coordinator']} takes the certificate and holds the same plan")
    show(f"clock: this machine's is {clock_difference(facts['clock_ahead'])} the coordinator's")
    for words in facts["warnings"]:
        show(f"warning: {words}")
    show("nothing was reserved or charged, and nothing of a row was sent")


def _how(error: BaseException, joined: Joined, party: str, journal: Path | None, run: str) -> str:
    """How to go on with a run that ended early. A message that will never be accepted is not sent again."""
    from cloister.federated.protocol.messages import Reason, Rejected

    spent = f"the ledger keeps what run {run} reserved" if run and joined.opened else ""
    if isinstance(error, Rejected) and error.reason is not Reason.TIMEOUT:
        return spent
    if not joined.opened:
        if not joined.hello_sent:
            return f"'{party}' has not joined: others wait for it, and are not told why"
        kept = "the coordinator must start again, too" if journal is None else f"with --journal {journal}"
        if isinstance(error, Rejected) and journal is not None:
            kept += ", when the coordinator is started again"
        kept += ", without --resume: nothing is reserved any more" if run else ""
        return f"not all had joined, and nothing was sent: start the same command again, {kept}"
    if journal is None:
        return (
            f"without --journal FILE this party cannot come back, and the session is over for "
            f"all{'; ' if spent else ''}{spent}"
        )
    more = (f" and run {run}", f" --resume {run}") if run else ("", "")
    return f"the session{more[0]} can go on: start the same command again with --journal {journal}{more[1]}"


def sign(
    plan: PlanFile,
    party: PartyName,
    cert: Certificate,
    key: PrivateKey = None,
    ca: Authority = None,
    not_private: NotPrivate = False,
) -> None:
    """Sign the plan: this party agrees to it, and to everybody on its list. Everybody needs everybody's signature to
    join."""
    from cloister.federated.plan import SEEDED_WARNING, read_pool_plan
    from cloister.federated.transport.certificates import Credentials
    from cloister.federated.transport.signatures import folder_of, sign as signed

    pool = read_pool_plan(plan, not_private)
    made = signed(pool.agreement, party, Credentials.read(cert, key, ca))
    path = folder_of(plan) / f"party-{pool.agreement.index(party) + 1}.sig"
    try:
        path.parent.mkdir(exist_ok=True)
        path.write_text(made.to_text())
    except OSError as error:
        raise InvalidInput(f"cannot write {path}: {cause(error)}") from error
    names = ", ".join(member.name for member in pool.agreement.members)
    show(f"'{party}' agrees to pool with {names} under agreement {pool.agreement.hash.hex()[:16]}")
    if pool.test_noise_seed is not None:
        say(SEEDED_WARNING)
    say(f"saved to {path}: send it to the coordinator and all parties")


def party_key(
    file: Annotated[Path, typer.Argument(help="File to make: this party's pooling key. Keep it secret.")],
    shared: Annotated[bool, typer.Option("--shared", help="Make a common secret for shared masks instead.")] = False,
    coordinator: Annotated[bool, typer.Option("--coordinator", help="Make the coordinator's key instead.")] = False,
) -> None:
    """Make a party's pooling key, or the coordinator's, and print the half that goes into the plan."""
    from cloister.federated.protocol.masking import new_secret
    from cloister.federated.protocol.streams import new_private_key, public_key
    from cloister.federated.transport.certificates import write_secret

    if shared and coordinator:
        raise InvalidInput(
            "--shared makes a secret that the coordinator must lack, --coordinator makes its key: give one of them"
        )
    content = new_secret() if shared else new_private_key()
    write_secret(file, content)
    if shared:
        show("a common secret: give it to every party, never to the coordinator")
    else:
        show(f'{"coordinator_key" if coordinator else "key"} = "{public_key(content).hex()}"')


MOST_DAYS = 36_500
"""Longest life of a test certificate: a hundred years."""


def make_certificates(
    folder: Annotated[Path, typer.Argument(help="Folder to fill.")],
    party: Annotated[list[str], typer.Option(help="A party's name. Repeatable.")],
    days: Annotated[int, typer.Option(help="How long they are valid.")] = 30,
) -> None:
    """Make a test authority, and certificates and pooling keys for everybody. For trials: no one machine should hold
    them all."""
    from cloister.federated.protocol.agreement import COORDINATOR_NAME
    from cloister.federated.protocol.streams import new_private_key, public_key
    from cloister.federated.transport.certificates import make_test_certificates, write_secret

    if not 1 <= days <= MOST_DAYS:
        raise InvalidInput(f"--days is {days}: give a number of days from 1 to {MOST_DAYS}")
    make_test_certificates(folder, tuple(party), days)
    public = dict[str, str]()
    for name in (COORDINATOR_NAME, *party):
        private = new_private_key()
        write_secret(folder / f"{name}.pool", private)
        public[name] = public_key(private).hex()
    show(f'coordinator_key = "{public[COORDINATOR_NAME]}"\n')
    for name in party:
        show(f'[[party]]\nname = "{name}"\nkey = "{public[name]}"\n')
    say(f"saved to {folder}; the lines above go into the plan")
