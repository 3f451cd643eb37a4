"""Reports from users to the server: one row per user, in Parquet or Arrow.

``user`` is her public number; the other columns are those of ``columns``. Who is asked which question is public.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cloister.collection.wire import columns
from cloister.collection.wire.answers import layout_of
from cloister.collection.wire.blocks import Block, faulty
from cloister.collection.wire.columns import (
    STAMPED,
    by_question,
    numbers,
    raw,
    type_of,
    valid,
    with_arrow,
)
from cloister.core.errors import Refused
from cloister.core.questions import Round
from cloister.core.types import Bools, Ids

if TYPE_CHECKING:
    import pyarrow as pa

USER = "user"


def asked(round: Round[Any], users: Ids) -> list[Bools]:
    """For each question, which users (n,) are asked it: public."""
    return [
        np.ones(len(users), bool) if part.user_share is None else part.user_share.holds(users) for part in round.parts
    ]


def schema(round: Round[Any], plan_hash: str) -> pa.Schema:
    """The schema of every file of a plan's reports."""
    return columns.schema(round, plan_hash, {USER: with_arrow().uint64()})


def to_batch(reports: tuple[Any, ...], users: Ids, schema: pa.Schema) -> pa.RecordBatch:
    """Reports as one row per user. Args: reports (one per question, each holding the users who were asked it, in any
    order), users ((n,) distinct; rows come in this order), schema (the plan's)."""
    pa = with_arrow()
    order, arrays = np.argsort(users, kind="stable"), [pa.array(users, pa.uint64())]
    for number, report in enumerate(reports):
        kind, said = type_of(number, report), report.columns()
        rows = order[np.searchsorted(users, said["users"], sorter=order)]
        arrays += kind.to_arrow(kind.packed(said), rows, len(users))
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def sound(batch: pa.RecordBatch, round: Round[Any]) -> Bools:
    """Which rows (n,) answer exactly the questions that their users are asked. Raises: Refused: the batch has other
    columns or types than this round's, or a row has no user."""
    _checked(batch, round)
    good = np.ones(batch.num_rows, bool)
    for (_, arrays), who in zip(by_question(batch, round), asked(round, numbers(batch.column(0))), strict=True):
        for array in arrays:
            good &= valid(array) == who
    return good


def from_batch(batch: pa.RecordBatch, round: Round[Any]) -> tuple[Any, ...]:
    """Rows back to one report per question, by each type's ``load``. Whether answers are possible, ``absorb`` checks.
    Raises: Refused: no encoder of this round sends such rows."""
    if not sound(batch, round).all():
        raise Refused("a row answers a question that its user is not asked, or leaves one out: no encoder sends that")
    block = block_of(batch, round)
    if not block.without("impossible").all():
        raise Refused("a row answers another question: another plan, seed, space or budget")
    return layout_of(round).reports(block.users, block.answers)


def block_of(batch: pa.RecordBatch, round: Round[Any]) -> Block:
    """Rows of a checked ``schema`` as they would be sent in bytes, with what is wrong with them in other ways."""
    users, layout = numbers(batch.column(0)), layout_of(round)
    named, sound, stamped = valid(batch.column(0)), np.ones(len(users), bool), np.ones(len(users), bool)
    answers = layout.empty(len(users))
    for j, ((kind, arrays), who) in enumerate(zip(by_question(batch, round), layout.who(users), strict=True)):
        for array in arrays:
            sound &= valid(array) == who
        rows = slice(None) if who.all() else np.flatnonzero(who)
        said = {c.name: c.unpacked(raw(array, c.bytes)[rows]) for c, array in zip(kind.columns, arrays, strict=True)}
        if kind.stamp is not None:
            stamped[rows] &= said[STAMPED] == np.uint64(kind.stamp)
        layout.put(answers, j, rows, kind.body.packed(said))
    return Block(users, answers, faulty(named, sound, stamped))


def _checked(batch: pa.RecordBatch, round: Round[Any]) -> None:
    pa, expected = with_arrow(), schema(round, "")
    if batch.schema.names != expected.names or batch.schema.types != expected.types:
        raise Refused("these reports have other columns than the plan's: another plan, or no reports at all")
    try:
        batch.validate(full=True)
    except pa.ArrowInvalid:
        raise Refused("a column of reports is damaged or cut short") from None
    if batch.column(0).null_count:
        raise Refused("a report has no user number: no encoder sends that")
