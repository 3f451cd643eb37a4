"""``cloister plan`` and ``cloister bundle``: everything public about a collection, in one folder."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cloister.commands.cli_option import OUTPUT, declared
from cloister.commands.common import AsJson, PlanFolder, print_json, say, show
from cloister.commands.option_groups import excludes, option_groups, requires, with_start
from cloister.commands.options import Dimension, OutputOptions, RunOptions
from cloister.commands.program import ending, printing
from cloister.rows.options import Reading


@option_groups
def plan(
    out: Annotated[Path, typer.Option(help="Folder to make for the plan.", rich_help_panel=OUTPUT)],
    reading: Annotated[
        Reading, excludes("a plan reads no rows", *(set(declared(Reading)) - {"columns", "categories"}))
    ],
    options: Annotated[
        RunOptions,
        requires("epsilon", "public_rows"),
        excludes("every person has one row", "rows_per_user"),
        excludes("people answer for themselves", "pooled", "not_private"),
    ],
    printed: Annotated[OutputOptions, excludes("a plan is a folder", "out")],
    dimension: Dimension = None,
) -> None:
    """Publish a plan: what people will be asked.

    Makes a folder for the people's devices and for the server. Reads no rows.
    """
    from cloister.collection.plan import bundle_folder
    from cloister.collection.plan.liars import harm
    from cloister.collection.plan.plan import checked_folder
    from cloister.collection.plan.publish import publish, without_bundle, words

    checked_folder(out)
    reading, options = with_start(reading, options)
    request = options.request(method="one-round" if options.method is None else options.method)
    published = publish(request, reading.names, dimension, reading.categories)
    text = words(published, published.rounds())
    bundle_folder.write(published, out, text)
    with printing(lambda: f"the plan is in {out}"):
        if printed.as_json:
            auto = {} if published.choice is None else {"auto": published.choice.as_dict()}
            liars = harm(published, published.rounds()).as_dict(published.k)
            print_json({**published.as_dict(), "liars": liars, **auto})
            for warning in (*published.warnings, *without_bundle(published)):
                say(f"WARNING: {warning}")
        else:
            show(f"{text}\n\nsaved to {out}")


def bundle(
    plan: PlanFolder,
    out: Annotated[Path | None, typer.Option(help="Folder for the bundles. Default: the plan's.")] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Make nothing: check that existing bundles equal the plan's, to the byte.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Make the bundles that devices without Python need.

    Makes those of the plan's rounds that are missing, after a crash or in another folder.
    """
    from cloister.collection.plan import bundle_folder

    with ending(lambda error: "" if check else "run it again: a bundle that is there stays"):
        bundles = bundle_folder.check(plan, out) if check else bundle_folder.make(plan, out)
    place = plan if out is None else out
    with printing(lambda: f"the bundles are in {place}"):
        if as_json:
            facts = [{"round": one.round, "sha256": one.sha256, "bytes": _bytes(one.files)} for one in bundles]
            print_json({"plan": bundles[0].as_dict()["plan"], "bundles": facts})
            return
        for one in bundles:
            status = " and is what the plan says" if check else f", in {place}"
            show(f"bundle-{one.round}.json has SHA-256 {one.sha256}{status}")


def _bytes(files: dict[str, bytes]) -> int:
    return sum(map(len, files.values()))
