"""``cloister demo``: a first look, on rows that come along."""

from __future__ import annotations

from typing import Annotated

import typer

from cloister.commands.common import AsJson, print_json, show
from cloister.core.errors import InvalidInput
from cloister.showing.progress import progress


def demo(
    epsilon: Annotated[float, typer.Option(help="Privacy budget, in nats.")] = 1.0,
    delta: Annotated[float, typer.Option(help="Probability of failure of the guarantee.")] = 1e-5,
    k: Annotated[int, typer.Option("-k", "--k", help="Number of centres.")] = 10,
    seed: Annotated[int | None, typer.Option(help="Repeat the public choices. Never the noise.")] = None,
    federated: Annotated[
        bool, typer.Option("--federated", help="Deal the rows out to three parties who pool masked sums.")
    ] = False,
    phones: Annotated[
        bool,
        typer.Option(
            "--phones",
            help="Serve a page on this machine instead: it is a phone, and 100,000 simulated ones report with it.",
        ),
    ] = False,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Of --phones; 0: any that is free.")] = 0,
    open_it: Annotated[bool, typer.Option("--open", help="Of --phones: open the page in the browser.")] = False,
    as_json: AsJson = False,
) -> None:
    """Cluster handwritten digits privately, beside what needs no privacy; or phones that report to a collector here."""
    if phones:
        if federated or as_json or seed is not None or (delta, k) != (1e-5, 10):
            raise InvalidInput("--phones goes with --epsilon, --port and --open alone: give no other option")
        _phones(epsilon, port, open_it)
        return
    if port or open_it:
        raise InvalidInput("--port and --open are for --phones: add it, or leave them out")
    from cloister.commands.demonstration import demonstrate

    with progress() as bar:
        shown = demonstrate(epsilon, delta, k, seed, bar.advance, bar.started, federated)
    if as_json:
        print_json({"costs": shown.costs, "result": shown.result.as_dict()})
        return
    n, d = shown.shape
    show(f"{n:,} handwritten digits of {d} pixels, {k} clusters. Mean squared distance to the nearest centre:\n")
    widest = max(shown.costs.values())
    for name, cost in shown.costs.items():
        show(f"  {name:<28} {cost:8.1f}  {'#' * round(40 * cost / widest)}")
    show(f"\n{shown.result.privacy.text()}")


def _phones(epsilon: float, port: int, open_it: bool) -> None:
    """Serve until Ctrl-C."""
    import webbrowser

    from cloister.lab.phones.server import run

    def started(address: str) -> None:
        show(f"your phone is at {address}: open it in a browser. Ctrl-C ends the demonstration")
        if open_it:
            webbrowser.open(address)

    run(epsilon, port, started)
