"""``cloister plan``: publish a plan, everything public in one folder.

``cloister bundle``: what devices that run no Python need of a plan.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cloister.commands.common import AsJson, PlanFolder, print_json, say, show
from cloister.commands.option_groups import excludes, option_groups, requires, with_start
from cloister.commands.options import OUTPUT, Dimension, Printed, Reading, Wanted, declared
from cloister.commands.program import ending, printing


@option_groups
def plan(
    out: Annotated[Path, typer.Option(help="Folder to make.", rich_help_panel=OUTPUT)],
    reading: Annotated[
        Reading, excludes("a plan reads no rows", *(set(declared(Reading)) - {"columns", "categories"}))
    ],
    asked: Annotated[
        Wanted,
        requires("epsilon", "public_rows"),
        excludes("every person has one row", "rows_per_user"),
        excludes("people answer for themselves", "pooled", "not_private"),
    ],
    printed: Annotated[Printed, excludes("a plan is a folder", "out")],
    dimension: Dimension = None,
) -> None:
    """Publish what people are asked: a folder for them and for the server. Reads no rows."""
    from cloister.collection.plan import bundle_folder
    from cloister.collection.plan.liars import harm
    from cloister.collection.plan.plan import checked_folder
    from cloister.collection.plan.publish import publish, without_bundle, words

    checked_folder(out)
    reading, asked = with_start(reading, asked)
    request = asked.request(method="one-round" if asked.method is None else asked.method)
    made = publish(request, reading.columns, dimension, reading.categories)
    text = words(made, made.rounds())
    bundle_folder.write(made, out, text)
    with printing(lambda: f"the plan is in {out}"):
        if printed.as_json:
            auto = {} if made.choice is None else {"auto": made.choice.as_dict()}
            print_json({**made.as_dict(), "liars": harm(made, made.rounds()).as_dict(made.k), **auto})
            for warning in (*made.warnings, *without_bundle(made)):
                say(f"WARNING: {warning}")
        else:
            show(f"{text}\n\nsaved to {out}")


def bundle(
    plan: PlanFolder,
    out: Annotated[Path | None, typer.Option(help="Folder of the bundles. Default: the plan's.")] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Make nothing: compare those that are there with the plan, to the byte.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Make the client bundles of a plan's rounds where they are missing: after a crash, or in another folder."""
    from cloister.collection.plan import bundle_folder

    with ending(lambda error: "" if check else "run it again: a bundle that is there stays"):
        found = bundle_folder.check(plan, out) if check else bundle_folder.make(plan, out)
    place = plan if out is None else out
    with printing(lambda: f"the bundles are in {place}"):
        if as_json:
            facts = [{"round": one.round, "sha256": one.sha256, "bytes": _bytes(one.files)} for one in found]
            print_json({"plan": found[0].as_dict()["plan"], "bundles": facts})
            return
        for one in found:
            said = " and is what the plan says" if check else f", in {place}"
            show(f"bundle-{one.round}.json has SHA-256 {one.sha256}{said}")


def _bytes(files: dict[str, bytes]) -> int:
    return sum(map(len, files.values()))
