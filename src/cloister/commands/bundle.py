"""``cloister bundle``: what devices that run no Python need of a plan."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cloister.commands.common import AsJson, PlanFolder, print_json, show
from cloister.commands.endings import ending, printing


def bundle(
    plan: PlanFolder,
    out: Annotated[Path | None, typer.Option(help="Folder of the bundles. Default: the plan's.")] = None,
    check: Annotated[bool, typer.Option("--check", help="Make nothing: compare those that are there with the plan, to "
        "the byte.")] = False,
    as_json: AsJson = False,
) -> None:  # fmt: skip
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
