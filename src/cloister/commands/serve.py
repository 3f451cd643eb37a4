"""``cloister serve``: a collector, which publishes a plan over HTTP and stores the reports that arrive."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, final

import attrs
import typer

from cloister.commands.cli_option import LIMITS, NETWORK, cli_option
from cloister.commands.common import PlanFolder, parse_seconds, plain, say, show
from cloister.commands.option_groups import option_groups
from cloister.core.errors import CloisterError, InvalidInput, transient_errors

if TYPE_CHECKING:
    from cloister.collection.service.collector import Collector
    from cloister.collection.service.limits import Limits

EVERY = 10.0
"""Seconds between two lines of counts on a terminal."""


@final
@attrs.frozen(kw_only=True)
class NetworkOptions:
    """Addresses that a collector listens on, and the certificates for them."""

    host: str = cli_option("Address to listen on; 0.0.0.0 for all.", NETWORK, default="127.0.0.1")
    port: int = cli_option("Port to listen on; 0 picks a free one.", NETWORK, default=8000, min=0, max=65535)
    metrics_port: int | None = cli_option(
        "Serve /metrics on this port instead of --port; 0 picks a free one.", NETWORK, min=0, max=65535
    )
    metrics_host: str | None = cli_option(
        "Address that --metrics-port listens on; 0.0.0.0 for all. Default: 127.0.0.1.", NETWORK
    )
    cert: Path | None = cli_option("Certificate for HTTPS, in PEM with its chain.", NETWORK)
    key: Path | None = cli_option("Private key of the certificate, if it is not in the same file.", NETWORK)
    plain_http: bool = cli_option(
        "Accept requests of other machines without TLS, because a proxy in front of the collector provides it.",
        NETWORK,
        "--plain-http",
        default=False,
    )
    origin: list[str] | None = cli_option(
        "Origin whose pages may send reports from a browser, such as https://example.org; '*' for all. Repeatable.",
        NETWORK,
    )

    def checked(self) -> Any:
        """Return the TLS context, None for plain HTTP. Raises: InvalidInput: some options exclude each other."""
        from cloister.collection.service.running import certificate, check_origin, check_plain

        if self.key is not None and self.cert is None:
            raise InvalidInput("--key needs a certificate: give --cert too")
        if self.metrics_host is not None and self.metrics_port is None:
            raise InvalidInput("--metrics-host needs a port: give --metrics-port too")
        if self.metrics_port and (self.beside, self.metrics_port) == (self.host, self.port):
            raise InvalidInput(f"--port and --metrics-port are both {self.port}: choose another port for /metrics")
        for origin in self.origin or ():
            check_origin(origin)
        if self.cert is None and not self.plain_http:
            check_plain(self.host)
            check_plain(self.beside)
        return None if self.cert is None else certificate(self.cert, self.key)

    @property
    def beside(self) -> str:
        """Address that /metrics is served on, if it has a port of its own."""
        return self.metrics_host or "127.0.0.1"

    def listeners(self, stack: ExitStack) -> tuple[Any, Any]:
        """Open the port for reports, and the one for /metrics or None."""
        from cloister.collection.service.running import listening

        reports = stack.enter_context(listening(self.host, self.port))
        if self.metrics_port is None:
            return reports, None
        return reports, stack.enter_context(listening(self.beside, self.metrics_port, "--metrics"))


@final
@attrs.frozen(kw_only=True)
class LimitOptions:
    """Limits on requests."""

    rate: float = cli_option(
        "Rate limit per client address, in report requests per second (localhost exempt); 0: no limit.",
        LIMITS,
        default=100.0,
        min=0,
    )
    timeout: float = cli_option(
        "Seconds for a request to arrive, or for a TLS handshake.",
        LIMITS,
        default=20.0,
        metavar="<float>",
        parser=parse_seconds,
    )
    max_bytes: int = cli_option("Maximum size of a request, in bytes.", LIMITS, default=2**22, min=1024, max=2**26)
    connections: int = cli_option(
        "Maximum number of open connections; one address may hold a quarter of them.", LIMITS, default=2000, min=1
    )

    def limits(self) -> Limits:
        """Return the limits. Raises: InvalidInput: the rate is infinite."""
        from cloister.collection.service.limits import Limits

        if not math.isfinite(self.rate):
            raise InvalidInput(f"{self.rate} is not a rate: give requests per second, or 0 for no limit")
        return Limits(rate=self.rate, body=self.max_bytes, seconds=self.timeout, connections=self.connections)


@option_groups
def serve(
    plan: PlanFolder,
    out: Annotated[Path, typer.Option("-o", "--out", help="Folder for the reports; made for you alone.")],
    network: NetworkOptions,
    limited: LimitOptions,
    tickets: Annotated[
        Path | None, typer.Option(help="Public key of an issuer: accept only reports that carry its tickets.")
    ] = None,
    shuffle: Annotated[
        bool, typer.Option("--shuffle", help="Collect messages for 'cloister shuffle', on the shuffler's machine.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print events as lines of JSON.")] = False,
) -> None:
    """Collect reports over HTTP until it is stopped.

    A report that is acknowledged is on the disk.
    """
    from cloister.collection.service.app import create_app
    from cloister.collection.service.running import address_of, serve as run
    from cloister.collection.service.tickets import Issuer

    limits, tls = limited.limits(), network.checked()
    issuer = None if tickets is None else Issuer.read(tickets)
    report = _reporter(as_json)
    with ExitStack() as stack:
        with transient_errors():
            listener, metrics = network.listeners(stack)
            app = create_app(
                plan,
                out,
                shuffle=shuffle,
                issuer=issuer,
                origins=network.origin or (),
                limits=limits,
                metrics_apart=metrics is not None,
                on_event=report,
            )
        collector: Collector = app.state.collector
        _warn(collector, plan, out)

        def started(address: str) -> None:
            report(
                {"event": "listening", "address": address, "plan": collector.plan.hash, "reports": collector.reports}
                | ({} if metrics is None else {"metrics": f"{address_of(metrics, tls)}/metrics"})
            )

        each = _counter(collector) if sys.stderr.isatty() else None
        run(app, listener, metrics=metrics, tls=tls, started=started, tick=each, interval=EVERY)
    refused = {reason: count for reason, count in collector.counts.refused.items() if count}
    report({"event": "end", "accepted": collector.counts.accepted, "reports": collector.reports, "refused": refused})
    if not as_json:
        show("".join(f"{line}\n" for line in collector.counts.lines()) + _summary(collector, out))


def _warn(collector: Collector, plan: Path, out: Path) -> None:
    """Warn of damaged reports, and of a bundle that devices cannot use."""
    if collector.damaged:
        say(f"WARNING: {collector.damaged:,} batches of earlier reports in {out} are damaged: they do not count")
    if collector.opened is not None and (fault := _bundle_fault(plan, collector.opened.form.round)):
        say(f"WARNING: {fault}")


def _bundle_fault(plan: Path, number: int) -> str | None:
    """Return why devices without Python cannot or should not answer a round; None if its bundle is the plan's."""
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


def _summary(collector: Collector, out: Path) -> str:
    number = (
        "" if collector.plan.length == 1 or collector.opened is None else f" of round {collector.opened.form.round}"
    )
    return (
        f"ended: {collector.counts.accepted:,} reports came, and {collector.reports:,}{number} are in {plain(str(out))}"
    )


def _reporter(as_json: bool) -> Callable[[dict[str, Any]], None]:
    """Return a function that prints events. None of them names a sender or a time."""
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
            return f"nothing can be written ({event['why']}): reports are rejected until it can"
        case "disk works":
            return "the disk works again"
        case "fault":
            return f"internal error in a request ({event['what']}): it was not acknowledged"
        case _:
            return ""


def _counter(collector: Collector) -> Callable[[], None]:
    """Return a function that prints a line of counts if they have changed."""
    last = -1

    def show_counts() -> None:
        nonlocal last
        if (reports := collector.reports) != last:
            refused = sum(collector.counts.refused.values())
            say(f"{reports:,} reports of {collector.plan.rows:,} users; refused {refused:,}")
            last = reports

    return show_counts
