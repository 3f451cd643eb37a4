"""``cloister drift``: whether new rows still fit an earlier result's centres."""

from __future__ import annotations

from contextlib import ExitStack, closing
from typing import Annotated, Any

import attrs

from cloister.commands.cli_option import by_itself
from cloister.commands.common import (
    GroupNames,
    RowsOrAddress,
    SavedResult,
    notes_once,
    print_json,
    say,
    show,
    tell_columns,
)
from cloister.commands.option_groups import excludes, option_groups, result_from
from cloister.commands.options import LedgerOptions, OutputOptions, RunOptions
from cloister.commands.program import RunProgress, ending, printing
from cloister.rows.options import Reading
from cloister.showing.progress import progress

METHOD = "kept-centers"


@option_groups
def drift(
    result: SavedResult,
    rows: RowsOrAddress,
    reading: Annotated[Reading, excludes("the result has the categories", "categories")],
    charged: LedgerOptions,
    printed: OutputOptions,
    epsilon: Annotated[float, by_itself(RunOptions, "epsilon").option],
    public_rows: Annotated[
        int | None, by_itself(RunOptions, "public_rows", "that of the earlier result").option
    ] = None,
    rows_per_user: Annotated[int | None, by_itself(RunOptions, "rows_per_user").option] = None,
    names: GroupNames = None,
) -> None:
    """Measure privately how well new rows fit old centres.

    Asks one private question. With --out the answer is saved as a result, with which later rows can be compared.
    """
    from cloister.commands.predicting import rows_of
    from cloister.run.drift import check_released, drift as compared
    from cloister.run.fit import fit
    from cloister.run.request import Request
    from cloister.run.saving import checked_target

    earlier = result_from(result, names)
    target = None if printed.out is None else checked_target(printed.out)
    check_released(earlier)  # refuses what cannot be compared, before anything is spent
    if earlier.privacy.rows_per_user is not None and rows_per_user is None:
        say(
            "WARNING: the earlier result protects users, and this answer single rows: give --user-column and "
            "--rows-per-user as then."
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
    with ExitStack() as stack:
        stack.enter_context(ending(standing.next_step, standing.open))
        bar = stack.enter_context(progress())
        population: Any = stack.enter_context(closing(rows_of(earlier, rows, reading, notes_once(), bar.advance)))
        standing.result = released = fit(
            attrs.evolve(request, start=attrs.evolve(earlier, columns=tuple(population.columns))),
            population,
            account=account,
            started=bar.started,
            keep=standing.keep,
            reserved=standing.reserved,
            checked=lambda: tell_columns(population),
            caution=lambda warning: say(f"WARNING: {warning}."),
        )
    comparison = compared(earlier, released)
    with printing(standing.where, only=target is None):
        if printed.as_json:
            print_json(comparison.as_dict() | {"privacy": released.privacy.as_dict()})
            return
        show(f"{comparison.text}\n{released.privacy.headline}" + ("" if target is None else f"\nsaved to {target}"))
