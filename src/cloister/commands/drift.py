"""``cloister drift``: whether new rows still fit an earlier result's centres."""

from __future__ import annotations

from contextlib import ExitStack, closing
from pathlib import Path
from typing import Annotated, Any

import attrs
import typer

from cloister.commands.common import GroupNames, RowsOrAddress, print_json, say, show, tell_columns, told_once
from cloister.commands.option_groups import excludes, option_groups, result_from
from cloister.commands.options import Charged, Printed, Wanted, by_itself
from cloister.commands.program import RunProgress, ending, printing
from cloister.rows.options import Reading
from cloister.showing.progress import progress

METHOD = "kept-centers"


@option_groups
def drift(
    result: Annotated[Path, typer.Argument(help="A result that fit, decode, advance or join saved, or drift.")],
    rows: RowsOrAddress,
    reading: Annotated[Reading, excludes("the result says which they are", "categories")],
    charged: Charged,
    printed: Printed,
    epsilon: Annotated[float, by_itself(Wanted, "epsilon")],
    public_rows: Annotated[int | None, by_itself(Wanted, "public_rows", "that of the earlier result")] = None,
    rows_per_user: Annotated[int | None, by_itself(Wanted, "rows_per_user")] = None,
    names: GroupNames = None,
) -> None:
    """How much worse released centres fit new rows, from one private question; with -o the answer is a result, which
    later rows can be compared with."""
    from cloister.commands.predicting import rows_of
    from cloister.run.drift import check_released, drift as compared
    from cloister.run.fit import fit
    from cloister.run.request import Request
    from cloister.run.saving import checked_target

    earlier, target = result_from(result, names), None if printed.out is None else checked_target(printed.out)
    check_released(earlier)  # refuses what cannot be compared, before anything is spent
    if earlier.privacy.rows_per_user is not None and rows_per_user is None:
        say(
            "WARNING: the earlier result protects users, and this answer single rows: name the users as then, with "
            "--user-column and --rows-per-user."
        )
    request = Request(
        k=len(earlier.centers),
        method=METHOD,
        epsilon=epsilon,
        rows=earlier.privacy.rows if public_rows is None else public_rows,
        rows_per_user=rows_per_user,
    )
    account = charged.account()
    standing = RunProgress(account, target)
    with ExitStack() as held:
        held.enter_context(ending(standing.how, standing.open))
        bar = held.enter_context(progress())
        population: Any = held.enter_context(closing(rows_of(earlier, rows, reading, told_once(), bar.advance)))
        standing.result = found = fit(
            attrs.evolve(request, start=attrs.evolve(earlier, columns=tuple(population.columns))),
            population,
            account=account,
            started=bar.started,
            keep=standing.keep,
            reserved=standing.reserved,
            checked=lambda: tell_columns(population),
            caution=lambda warning: say(f"WARNING: {warning}."),
        )
    seen = compared(earlier, found)
    with printing(standing.where, only=target is None):
        if printed.as_json:
            print_json(seen.as_dict() | {"privacy": found.privacy.as_dict()})
            return
        show(f"{seen.text}\n{found.privacy.headline}" + ("" if target is None else f"\nsaved to {target}"))
