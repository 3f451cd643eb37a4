"""``cloister tickets``: who may report, for collectors that ask."""

from __future__ import annotations

import base64
import re
from pathlib import Path
from typing import Annotated

import typer

from cloister.commands.common import PlanFolder, progress, show
from cloister.core.errors import InvalidInput

tickets_app = typer.Typer(
    help="Tickets that let a user number report to a collector ('cloister serve --tickets').", no_args_is_help=True
)


@tickets_app.command("new-key")
def new_key(path: Annotated[Path, typer.Argument(help="File to make for the issuer alone; the one for the collector "
    "gets its name with .pub.")]) -> None:  # fmt: skip
    """Make an issuer's key."""
    from cloister.collection.service import tickets

    public = tickets.new_key(path)
    show(f"{path} signs tickets: keep it to yourself. Collectors check them with {public}")


@tickets_app.command("mint")
def mint(
    plan: PlanFolder,
    key: Annotated[Path, typer.Option(help="The issuer's key.")],
    users: Annotated[str, typer.Option(help="Numbers: 0:1000 (without 1000), or one.")],
    out: Annotated[Path | None, typer.Option("-o", "--out", help="File to make: 64 bytes per number, in order. "
        "Default: print a line each, the number and its ticket in base64.")] = None,
) -> None:  # fmt: skip
    """Sign a ticket for each of some user numbers of a plan."""
    from cloister.collection.plan.plan import CollectionPlan
    from cloister.collection.service import tickets

    published = CollectionPlan.read(plan)
    numbers = _range(users, published.rows)
    made = tickets.mint(tickets.read_key(key), published.hash, numbers)
    if out is None:
        for number, ticket in zip(numbers, made, strict=True):
            show(f"{number} {base64.b64encode(ticket).decode()}")
        return
    with progress("tickets signed") as advance:
        tickets.write(out, (_counted(ticket, advance) for ticket in made))
    show(f"{len(numbers):,} tickets under plan {published.hash[:16]}, for users {users}, in {out}")


def _counted(ticket: bytes, advance: object) -> bytes:
    assert callable(advance)
    advance(1)
    return ticket


def _range(text: str, planned: int) -> range:
    """The numbers of START:END, or of one. Raises: InvalidInput: others than the plan's."""
    found = re.fullmatch(r"([0-9]{1,19})(?::([0-9]{1,19}))?", text)
    start = int(found[1]) if found else 0
    end = int(found[2]) if found and found[2] else start + 1
    if found is None or not start < end <= planned:
        raise InvalidInput(f"--users takes one number or START:END, of 0:{planned}, not '{text}'")
    return range(start, end)
