"""``cloister demo``: a first look, on rows that come along."""

from __future__ import annotations

from typing import Annotated

import typer

from cloister.commands.common import AsJson, print_json, show
from cloister.run.progress import progress


def demo(
    epsilon: Annotated[float, typer.Option(help="Privacy budget, in nats.")] = 1.0,
    delta: Annotated[float, typer.Option(help="Probability of failure of the guarantee.")] = 1e-5,
    k: Annotated[int, typer.Option("-k", "--k", help="Number of centres.")] = 10,
    seed: Annotated[int | None, typer.Option(help="Repeat the public choices. Never the noise.")] = None,
    federated: Annotated[
        bool, typer.Option("--federated", help="Deal the rows out to three parties who pool masked sums.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Cluster handwritten digits privately, beside what needs no privacy."""
    from cloister.commands.demonstration import demonstrate

    with progress() as (advance, started):
        shown = demonstrate(epsilon, delta, k, seed, advance, started, federated)
    if as_json:
        print_json({"costs": shown.costs, "result": shown.result.as_dict()})
        return
    n, d = shown.shape
    show(f"{n:,} handwritten digits of {d} pixels, {k} clusters. Mean squared distance to the nearest centre:\n")
    widest = max(shown.costs.values())
    for name, cost in shown.costs.items():
        show(f"  {name:<28} {cost:8.1f}  {'#' * round(40 * cost / widest)}")
    show(f"\n{shown.result.privacy.text()}")
