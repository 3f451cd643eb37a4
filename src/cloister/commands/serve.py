"""``cloister serve``: a collector, which gives out a plan over HTTP and keeps the reports that come.

``cloister tickets``: who may report, for collectors that ask.
"""

from __future__ import annotations

import base64
import json
import math
import re
import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cloister.commands.common import PlanFolder, Port, plain, say, seconds, show
from cloister.commands.progress import counting
from cloister.core.errors import CloisterError, InvalidInput, transient_errors

if TYPE_CHECKING:
    from cloister.collection.service.collector import Collector


tickets_app = typer.Typer(
    help="Tickets that let a user number report to a collector ('cloister serve --tickets').", no_args_is_help=True
)


@tickets_app.command("new-key")
def new_key(
    path: Annotated[
        Path,
        typer.Argument(help="File to make for the issuer alone; the one for the collector gets its name with .pub."),
    ],
) -> None:
    """Make an issuer's key."""
    from cloister.collection.service import tickets

    public = tickets.new_key(path)
    show(f"{path} signs tickets: keep it to yourself. Collectors check them with {public}")


@tickets_app.command("mint")
def mint(
    plan: PlanFolder,
    key: Annotated[Path, typer.Option(help="The issuer's key.")],
    users: Annotated[str, typer.Option(help="Numbers: 0:1000 (without 1000), or one.")],
    out: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--out",
            help="File to make: 64 bytes per number, in order. "
            "Default: print a line each, the number and its ticket in base64.",
        ),
    ] = None,
) -> None:
    """Sign a ticket for each of some user numbers of a plan."""
    from cloister.collection.plan.plan import CollectionPlan
    from cloister.collection.service import tickets

    published = CollectionPlan.read(plan)
    numbers = _range(users, published.rows)
    made = tickets.mint(tickets.read_key(key), published.hash, numbers)
    if out is None:
        for number, ticket in zip(numbers, made, strict=True):
            show(f"{number} {base64.b64encode(ticket).decode()}")
        return
    with counting("tickets signed") as advance:
        tickets.write(out, (_counted(ticket, advance) for ticket in made))
    show(f"{len(numbers):,} tickets under plan {published.hash[:16]}, for users {users}, in {out}")


def _counted(ticket: bytes, advance: object) -> bytes:
    assert callable(advance)
    advance(1)
    return ticket


def _range(text: str, planned: int) -> range:
    """The numbers of START:END, or of one. Raises: InvalidInput: others than the plan's."""
    found = re.fullmatch(r"([0-9]{1,19})(?::([0-9]{1,19}))?", text)
    start = int(found[1]) if found else 0
    end = int(found[2]) if found and found[2] else start + 1
    if found is None or not start < end <= planned:
        raise InvalidInput(f"--users takes one number or START:END, of 0:{planned}, not '{text}'")
    return range(start, end)


EVERY = 10.0
"""Seconds between two lines of counts on a terminal."""


def serve(
    plan: PlanFolder,
    out: Annotated[Path, typer.Option("-o", "--out", help="Folder for the reports; made for you alone.")],
    host: Annotated[str, typer.Option(help="Address to listen on; 0.0.0.0: all.")] = "127.0.0.1",
    port: Port = 8000,
    metrics_port: Annotated[
        int | None,
        typer.Option(
            min=0, max=65535, help="Port for /metrics, which the other one then has no more; 0: any that is free."
        ),
    ] = None,
    metrics_host: Annotated[
        str | None,
        typer.Option(help="Address that --metrics-port listens on (default 127.0.0.1; 0.0.0.0: all)."),
    ] = None,
    cert: Annotated[Path | None, typer.Option(help="Certificate (PEM, with its chain), for HTTPS.")] = None,
    key: Annotated[Path | None, typer.Option(help="Its private key, if it is not in the same file.")] = None,
    plain_http: Annotated[
        bool, typer.Option("--plain-http", help="Listen without TLS for other machines: a proxy in front has it.")
    ] = False,
    origin: Annotated[
        list[str] | None,
        typer.Option(help="Origin of pages that browsers may let in, as in https://example.org; '*': all. Repeatable."),
    ] = None,
    tickets: Annotated[
        Path | None, typer.Option(help="An issuer's public key: only reports with her tickets count.")
    ] = None,
    shuffle: Annotated[
        bool, typer.Option("--shuffle", help="Collect messages for 'cloister shuffle', on the shuffler's machine.")
    ] = False,
    rate: Annotated[
        float,
        typer.Option(
            min=0, help="Requests with reports per second and address, but for those of this machine; 0: any."
        ),
    ] = 100.0,
    timeout: Annotated[
        float,
        typer.Option(
            parser=seconds, metavar="<float>", help="Seconds for a request to arrive, or a TLS handshake to end."
        ),
    ] = 20.0,
    max_bytes: Annotated[int, typer.Option(min=1024, max=2**26, help="Bytes of a request.")] = 2**22,
    connections: Annotated[
        int, typer.Option(min=1, help="Connections at once; at most a quarter of one address.")
    ] = 2000,
    as_json: Annotated[bool, typer.Option("--json", help="Print events as lines of JSON.")] = False,
) -> None:
    """Collect reports over HTTP: what is acknowledged is on the disk. Runs until it is told to end."""
    from cloister.collection.service.app import create_app
    from cloister.collection.service.limits import Limits
    from cloister.collection.service.running import (
        address_of,
        certificate,
        check_origin,
        check_plain,
        listening,
        serve as run,
    )
    from cloister.collection.service.tickets import Issuer

    if key is not None and cert is None:
        raise InvalidInput("--key is of a certificate: give --cert too")
    if metrics_host is not None and metrics_port is None:
        raise InvalidInput("--metrics-host is of a port for /metrics: give --metrics-port too")
    beside = metrics_host or "127.0.0.1"
    if metrics_port and (beside, metrics_port) == (host, port):
        raise InvalidInput(
            f"--port and --metrics-port are both {port}: counts have a port of their own, so choose another"
        )
    if not math.isfinite(rate):
        raise InvalidInput(f"{rate} is not a rate: give requests per second, or 0 for any")
    for given in origin or ():
        check_origin(given)
    if cert is None and not plain_http:
        check_plain(host)
        check_plain(beside)
    tls = None if cert is None else certificate(cert, key)
    issuer = None if tickets is None else Issuer.read(tickets)
    limits = Limits(rate=rate, body=max_bytes, seconds=timeout, connections=connections)
    told = _told(as_json)
    with ExitStack() as stack:
        with transient_errors():
            listener = stack.enter_context(listening(host, port))
            metrics = None
            if metrics_port is not None:
                metrics = stack.enter_context(listening(beside, metrics_port, "--metrics"))
            app = create_app(
                plan,
                out,
                shuffle=shuffle,
                issuer=issuer,
                origins=origin or (),
                limits=limits,
                metrics_apart=metrics is not None,
                told=told,
            )
        desk: Collector = app.state.desk
        if desk.damaged:
            say(f"WARNING: {desk.damaged:,} batches of earlier reports in {out} are damaged: they do not count")

        opened = desk.opened
        if opened is not None and (wrong := _bundle_lacks(plan, opened.form.round)):
            say(f"WARNING: {wrong}")

        def started(address: str) -> None:
            told(
                {"event": "listening", "address": address, "plan": desk.plan.hash, "reports": desk.reports}
                | ({} if metrics is None else {"metrics": f"{address_of(metrics, tls)}/metrics"})
            )

        each = _counter(desk) if sys.stderr.isatty() else None
        run(app, listener, metrics=metrics, tls=tls, started=started, each=each, every=EVERY)
    refused = {reason: count for reason, count in desk.counts.refused.items() if count}
    told({"event": "end", "accepted": desk.counts.accepted, "reports": desk.reports, "refused": refused})
    if not as_json:
        show("".join(f"{line}\n" for line in desk.counts.lines()) + _ended(desk, out))


def _bundle_lacks(plan: Path, number: int) -> str | None:
    """Why devices without Python cannot answer a round, or should not; None if its bundle is what the plan says."""
    from cloister.collection.plan.bundle import Bundle
    from cloister.collection.service.app import PublicFiles

    folder = plain(str(plan))
    if PublicFiles(plan).bundle(number)["bundle"] is None:
        return (
            f"there is no bundle of round {number} in {folder}: devices without Python cannot answer. 'cloister "
            f"bundle' makes it"
        )
    try:
        Bundle.read(plan, number).check(plan)
    except CloisterError:
        return (
            f"bundle-{number} in {folder} is not what this plan says: devices without Python are given it all the "
            f"same. 'cloister bundle {folder} --check' says what is wrong"
        )
    return None


def _ended(desk: Collector, out: Path) -> str:
    number = "" if desk.plan.length == 1 or desk.opened is None else f" of round {desk.opened.form.round}"
    return f"ended: {desk.counts.accepted:,} reports came, and {desk.reports:,}{number} are in {plain(str(out))}"


def _told(as_json: bool) -> Callable[[dict[str, Any]], None]:
    """Handling of events. None of them has a sender, or a time."""
    if as_json:
        return lambda event: show(json.dumps(event))
    return lambda event: say(text) if (text := _in_words(event)) else None


def _in_words(event: dict[str, Any]) -> str:
    match event["event"]:
        case "listening":
            here = f"; {event['reports']:,} reports are here already" if event["reports"] else ""
            counts = f", with counts on {event['metrics']}" if "metrics" in event else ""
            return f"collecting for plan {event['plan'][:16]} on {event['address']}{counts}{here}"
        case "round":
            return f"round {event['round']} is open"
        case "closed":
            return "all rounds are closed: no report is taken any more"
        case "waiting":
            return f"the next round cannot be opened yet: {event['why']}"
        case "disk":
            return f"nothing can be written ({event['why']}): reports are sent back until it can"
        case "disk works":
            return "the disk works again"
        case "fault":
            return f"a request met a fault of the collector's own ({event['what']}): it was not acknowledged"
        case _:
            return ""


def _counter(desk: Collector) -> Callable[[], None]:
    """A line of counts, if they have changed."""
    last = -1

    def tell() -> None:
        nonlocal last
        if (now := desk.reports) != last:
            say(f"{now:,} reports of {desk.plan.rows:,} users; refused {sum(desk.counts.refused.values()):,}")
            last = now

    return tell
