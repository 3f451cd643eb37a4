"""``cloister plan``: publish a plan, everything public in one folder."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cloister.commands.common import print_json, say, show
from cloister.commands.endings import printing
from cloister.commands.options import Printed, Wanted, lacks, needs, taking
from cloister.run.options import OUTPUT, ROWS, Reading, declared


@taking
def plan(
    out: Annotated[Path, typer.Option(help="Folder to make.", rich_help_panel=OUTPUT)],
    reading: Annotated[Reading, lacks("a plan reads no rows", *(set(declared(Reading)) - {"columns"}))],
    asked: Annotated[
        Wanted,
        needs("k", "epsilon", "public_rows", "bounds"),
        lacks("nobody sees rows, and could look where they are", "zoom"),
        lacks("every person has one row", "rows_per_user"),
        lacks("people answer for themselves", "pooled", "not_private"),
    ],
    printed: Annotated[Printed, lacks("a plan is a folder", "out")],
    dimension: Annotated[
        int | None, typer.Option(help="Number of columns, whatever they are called.", rich_help_panel=ROWS)
    ] = None,
) -> None:
    """Publish what people are asked: a folder for them and for the server. Reads no rows."""
    from cloister.collection.plan import bundle_folder
    from cloister.collection.plan.plan import checked_folder
    from cloister.collection.plan.publish import harm, publish, without_bundle, words

    checked_folder(out)
    request = asked.request(zoom="off", method="one-round" if asked.method is None else asked.method)
    made = publish(request, reading.columns, dimension)
    text = words(made, made.rounds())
    bundle_folder.write(made, out, text)
    with printing(lambda: f"the plan is in {out}"):
        if printed.as_json:
            print_json({**made.as_dict(), "liars": harm(made, made.rounds()).as_dict(made.k)})
            for warning in (*made.warnings, *without_bundle(made)):
                say(f"WARNING: {warning}")
        else:
            show(f"{text}\n\nsaved to {out}")
