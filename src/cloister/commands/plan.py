"""``cloister plan``: publish a plan, everything public in one folder."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cloister.commands.common import (
    AsJson,
    Centers,
    TrustModel,
    names,
    number_or_text,
    pairs,
    print_json,
    say,
    show,
    whole,
)
from cloister.commands.endings import printing


def plan(
    k: Centers,
    epsilon: Annotated[float, typer.Option(help="What one report may cost its person, in nats.")],
    rows: Annotated[int, typer.Option(parser=whole, metavar="<int>", help="Public number of people: their numbers are "
        "0 to rows - 1.")],
    bounds: Annotated[str, typer.Option(help="Public bounds: ball:RADIUS, -1:1, or 0:120,0:1, or a .toml/.json file.")],
    out: Annotated[Path, typer.Option(help="Folder to make.")],
    method: Annotated[str, typer.Option(help="Which algorithm. See 'cloister list Method'.")] = "one-round",
    trust: TrustModel = None,
    dimension: Annotated[int | None, typer.Option(help="Number of columns, whatever they are called.")] = None,
    columns: Annotated[str | None, typer.Option(help="Names of the columns, separated by commas.")] = None,
    delta: Annotated[float, typer.Option(help="Probability of failure of the guarantee; 0 for pure noise.")] = 0.0,
    wire: Annotated[list[str] | None, typer.Option("--with", help="slot=component, e.g. counts=hadamard-response. "
        "Repeatable.")] = None,
    values: Annotated[list[str] | None, typer.Option("--set", help="option=value, e.g. partitions=2. "
        "Repeatable.")] = None,
    seed: Annotated[int | None, typer.Option(help="Repeat the public choices. Never the noise.")] = None,
    as_json: AsJson = False,
) -> None:  # fmt: skip
    """Publish what people are asked: a folder for them and for the server. Reads no rows."""
    from cloister.collection.plan import bundle_folder
    from cloister.collection.plan.plan import checked_folder
    from cloister.collection.plan.publish import harm, publish, without_bundle, words
    from cloister.run.request import Request

    checked_folder(out)
    request = Request(
        k=number_or_text(k), method=method, epsilon=epsilon, delta=delta, bounds=bounds, rows=rows, seed=seed,
        zoom="off", scale="none",
        components=pairs(wire, "--with"), options=pairs(values, "--set"),
        trust=trust,
    )  # fmt: skip
    made = publish(request, names(columns), dimension)
    text = words(made, made.rounds())
    bundle_folder.write(made, out, text)
    with printing(lambda: f"the plan is in {out}"):
        if as_json:
            print_json({**made.as_dict(), "liars": harm(made, made.rounds()).as_dict(made.k)})
            for warning in (*made.warnings, *without_bundle(made)):
                say(f"WARNING: {warning}")
        else:
            show(f"{text}\n\nsaved to {out}")
