"""``cloister demo``: a first look at cloister, on rows that are installed with it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cloister.commands.cli_option import by_itself
from cloister.commands.common import AsJson, OpenIt, Port, print_json, show
from cloister.commands.options import RunOptions
from cloister.core.errors import InvalidInput
from cloister.showing.progress import progress

if TYPE_CHECKING:
    from cloister.run.fit import Started
    from cloister.run.result import Result

PARTIES = "north", "south", "west"
"""The parties of a federated demonstration."""


def demo(
    epsilon: Annotated[float, by_itself(RunOptions, "epsilon").option] = 1.0,
    delta: Annotated[
        float,
        typer.Option(help="Probability that the guarantee fails; not 0 as in fit, so that Gaussian noise can be used."),
    ] = 1e-5,
    k: Annotated[int, typer.Option("-k", "--k", help="Number of centres.")] = 10,
    seed: Annotated[int | None, by_itself(RunOptions, "seed").option] = None,
    federated: Annotated[
        bool, typer.Option("--federated", help="Deal the rows out to three parties, who add up masked sums.")
    ] = False,
    phones: Annotated[
        bool,
        typer.Option(
            "--phones",
            help="Serve a page instead (--port, --open) that is a phone, and reports beside 100,000 simulated ones.",
        ),
    ] = False,
    port: Port = 0,
    open_it: OpenIt = False,
    as_json: AsJson = False,
) -> None:
    """Try cloister on digits, or on simulated phones.

    Prints the private cost beside that of non-private centres; with --phones runs a collector on this machine.
    """
    if phones:
        if federated or as_json or seed is not None or (delta, k) != (1e-5, 10):
            raise InvalidInput("--phones goes with --epsilon, --port and --open alone: give no other option")
        _phones(epsilon, port, open_it)
        return
    if port or open_it:
        raise InvalidInput("--port and --open are for --phones: add it, or leave them out")
    with progress() as bar:
        result, costs, (n, d) = _digits(epsilon, delta, k, seed, bar.advance, bar.started, federated)
    if as_json:
        print_json({"costs": costs, "result": result.as_dict()})
        return
    show(f"{n:,} handwritten digits of {d} pixels, {k} clusters. Mean squared distance to the nearest centre:\n")
    widest = max(costs.values())
    for name, cost in costs.items():
        show(f"  {name:<28} {cost:8.1f}  {'#' * round(40 * cost / widest)}")
    show(f"\n{result.privacy.text()}")


def _phones(epsilon: float, port: int, open_it: bool) -> None:
    """Serve the page until Ctrl-C."""
    import webbrowser

    from cloister.lab.phones.server import run

    def started(address: str) -> None:
        show(f"your phone is at {address}: open it in a browser. Ctrl-C ends the demonstration")
        if open_it:
            webbrowser.open(address)

    run(epsilon, port, started)


def _digits(
    epsilon: float,
    delta: float,
    k: int,
    seed: int | None,
    progress: Callable[[int], None] | None = None,
    started: Started | None = None,
    federated: bool = False,
) -> tuple[Result, dict[str, float], tuple[int, int]]:
    """Cluster the 1,797 digits that scikit-learn carries (8 x 8 pixels, 0 to 16), next to non-private baselines.

    Returns:
        The result, mean squared distances by name, and the table's shape.
    """
    import numpy as np
    from sklearn.cluster import KMeans
    from sklearn.datasets import load_digits

    from cloister.metrics import nicv
    from cloister.run.fit import fit, parties, source
    from cloister.run.request import Request

    loaded: Any = load_digits()
    rows = np.asarray(loaded.data, np.float64)
    request = Request(
        k=k,
        epsilon=epsilon,
        delta=delta,
        bounds=(0.0, 16.0),
        rows=1800,
        seed=seed,
        trust="aggregated" if federated else None,
        parties=len(PARTIES) if federated else 0,
    )
    population: Any = source(rows, progress=progress)
    if federated:
        shares = {n: rows[i :: len(PARTIES)] for i, n in enumerate(PARTIES)}
        population = parties({name: source(part, progress=progress) for name, part in shares.items()})
    result = fit(request, population, started=started)
    baseline: Any = KMeans(k, random_state=0)
    baseline.set_params(n_init=10).fit(rows)
    costs = {
        "scikit-learn, not private": nicv(rows, baseline.cluster_centers_),
        "cloister, private": nicv(rows, result.centers),
        "the exact mean, not private": nicv(rows, rows.mean(axis=0, keepdims=True)),
        "the midpoint of the bounds": nicv(rows, np.full((1, rows.shape[1]), 8.0)),
    }
    return result, costs, rows.shape
