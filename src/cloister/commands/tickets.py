"""``cloister tickets``: signed permission to report, for collectors that ask for it."""

from __future__ import annotations

import base64
import re
from pathlib import Path
from typing import Annotated

import typer

from cloister.commands.common import PlanFolder, show
from cloister.commands.program import Commands
from cloister.commands.progress import Count, counting
from cloister.core.errors import InvalidInput

tickets_app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    help="Make the tickets that users need to report.\n\nSee 'cloister serve --tickets'.",
)


@tickets_app.command("new-key")
def new_key(
    path: Annotated[
        Path,
        typer.Argument(help="File to make for the issuer's secret key; the collector's key gets its name with .pub."),
    ],
) -> None:
    """Make an issuer's pair of keys."""
    from cloister.collection.service import tickets

    public = tickets.new_key(path)
    show(f"{path} signs tickets: keep it to yourself. Collectors check them with {public}")


@tickets_app.command("mint")
def mint(
    plan: PlanFolder,
    key: Annotated[Path, typer.Option(help="Secret key of the issuer.")],
    users: Annotated[str, typer.Option(help="User numbers: one, or a range such as 0:1000, which ends at 999.")],
    out: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--out",
            help="File to make, of 64 bytes per user number, in order. Default: print each number and its ticket in "
            "base64.",
        ),
    ] = None,
) -> None:
    """Sign tickets for user numbers of a plan."""
    from cloister.collection.plan.plan import CollectionPlan
    from cloister.collection.service import tickets

    published = CollectionPlan.read(plan)
    numbers = _range(users, published.rows)
    signed = tickets.mint(tickets.read_key(key), published.hash, numbers)
    if out is None:
        for number, ticket in zip(numbers, signed, strict=True):
            show(f"{number} {base64.b64encode(ticket).decode()}")
        return
    with counting("tickets signed") as advance:
        tickets.write(out, (_counted(ticket, advance) for ticket in signed))
    show(f"{len(numbers):,} tickets under plan {published.hash[:16]}, for users {users}, in {out}")


def _counted(ticket: bytes, advance: Count) -> bytes:
    advance(1)
    return ticket


def _range(text: str, planned: int) -> range:
    """Parse one number or START:END. Raises: InvalidInput: it is neither, or the plan has no such numbers."""
    match = re.fullmatch(r"([0-9]{1,19})(?::([0-9]{1,19}))?", text)
    start = int(match[1]) if match else 0
    end = int(match[2]) if match and match[2] else start + 1
    if match is None or not start < end <= planned:
        raise InvalidInput(f"--users takes one number or START:END, of 0:{planned}, not '{text}'")
    return range(start, end)
