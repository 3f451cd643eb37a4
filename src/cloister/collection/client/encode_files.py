"""Encode rows of files, or of a database's table, into one file of reports, a bounded number of rows at a time.

Order of work: everything is checked before anybody is charged, everybody is charged before anything is drawn, and
everything is drawn and remembered before anything is written. The output depends on a row through the randomiser
alone: it is sorted by user number whatever the order of the input, file names are random, and no time is recorded.
Files, and a folder made for them, are readable by their owner only: messages for a shuffler are close to the rows.
"""

from __future__ import annotations

import os
import secrets
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any, BinaryIO, cast, final

import attrs
import numpy as np

from cloister.collection.client.encoder import BYTES, PlanEncoder
from cloister.collection.client.state import State
from cloister.collection.plan.canonical_json import OWNERS_FOLDER, appearing, made, writing
from cloister.collection.wire.answers import Packed
from cloister.collection.wire.batches import form_of
from cloister.collection.wire.user_set import UserSet
from cloister.core.encoding import finite
from cloister.core.errors import InvalidInput, UnknownName
from cloister.core.types import Floats, Ids
from cloister.rows.options import Reading
from cloister.rows.reading import refuse_missing, refuse_none
from cloister.rows.selection import Selection, in_order, table_columns
from cloister.run.fit import source
from cloister.run.places import in_database, refuse_foreign_address

CELLS, MAX_ROWS = 2**22, 2**18
"""Most cells and most rows that are encoded, remembered and written at once: 32 MB."""


@final
class RowTable:
    """Rows of files, or of a database's table, with their user numbers; can be read repeatedly.

    Args:
        encoder: encoder of the plan's open round.
        rows: files, or an address, as ``run.fit.source`` takes them.
        reading: how they are read. Columns are in the order of the plan's; by default those that it names, and of files
            without names all. ``user_column`` holds the user numbers; rows in a database need it: they have no places.
        first: number of the first row's user; the others count on. None: rows are everybody's, from 0.
        progress: called with the number of rows just read.
        checked: called with this table once all is checked, before anybody is charged.

    Attributes:
        selection: which columns are used, and which are left out.
    """

    def __init__(
        self,
        encoder: PlanEncoder,
        rows: Sequence[str],
        reading: Reading | None = None,
        first: int | None = None,
        progress: Callable[[int], None] | None = None,
        checked: Callable[[RowTable], None] = lambda table: None,
    ) -> None:
        plan = encoder.plan
        reading = Reading() if reading is None else reading
        given = attrs.evolve(reading, categories=plan.categories, user_column=None)
        self._column = reading.user_column
        self._encoder, self._missing, self._given_first = encoder, reading.missing or "refuse", first
        self._first = first or 0
        self._progress, self._checked = progress or (lambda n: None), checked
        if not 0 <= self._first < plan.rows:
            raise InvalidInput(f"the first user number is {self._first}: this plan's are 0 to {plan.rows - 1}")
        refuse_foreign_address(rows)
        if in_database(rows) and self._column is None:
            raise InvalidInput(
                "rows in a database have no places for user numbers to follow from: name the column that holds each "
                "person's number, --user-column NAME"
            )
        planned = None if plan.columns is None else table_columns(plan.columns, plan.categories)
        asked = given.names or planned

        def read(some: Sequence[str] | None) -> Any:
            return source(rows, given, columns=some)

        def chosen(some: Sequence[str] | None) -> Selection:
            with closing(read(some)) as found:
                return cast(Selection, found.selection)

        if self._column is not None:  # told of before there seems to be one column too many
            try:
                chosen([self._column])
            except UnknownName:
                raise
            except InvalidInput:
                raise InvalidInput(
                    f"column '{self._column}' holds no numbers: --user-column names the one that holds each person's "
                    f"number in this plan, 0 to {plan.rows - 1}"
                ) from None
        wanted = [name for name in chosen(asked).used if name != self._column or name in (asked or ())]
        if self._column in wanted:
            raise InvalidInput(f"column '{self._column}' holds the user numbers: it cannot be a column of the plan too")
        wanted = in_order(wanted, planned or wanted)
        self.selection: Selection = chosen(wanted)
        made = self.selection.features
        if len(made) != plan.dimension or (plan.categories and made != plan.columns):
            raise InvalidInput(
                f"the plan is for {plan.dimension} columns, these are {len(made)} ({_few(made)}): choose them "
                f"with --columns, in the order of the plan"
            )
        self._rows = read([*wanted, *([] if self._column is None else [self._column])])

    def close(self) -> None:
        """End what reading the rows has begun."""
        self._rows.close()

    def chunks(self) -> Iterator[tuple[Ids, Floats]]:
        """Yield users (n,) and their rows (n, d); a chunk is valid until the next one is asked for. Where rows with
        missing cells are left out, they stay here: their users report as being nowhere
        (``core.encoding.encode_owned``).

        Raises: InvalidInput: rows or a user number cannot be used.
        """
        for chunk in self._rows.chunks():
            if self._column is None:
                first, rows = chunk.start + self._first, chunk.rows
                users = np.arange(first, first + len(rows), dtype=np.uint64)
                if first + len(rows) > self._encoder.plan.rows:
                    raise InvalidInput(
                        f"there are rows for user numbers above {self._encoder.plan.rows - 1}, the plan's last one: "
                        f"give at most as many rows as the plan has users, or publish a plan for more"
                    )
            else:
                users, rows = self._encoder.users(chunk.rows[:, -1]), chunk.rows[:, :-1]
            if self._missing == "refuse" and not finite(rows).all():
                refuse_missing()
            yield users, rows
            self._progress(len(chunk.rows))

    @property
    def ascending(self) -> bool:
        """Whether rows come sorted by user number."""
        return self._column is None

    def check(self) -> UserSet:
        """Read everything once. Returns: the users with rows whom this round asks. Raises: InvalidInput: some row,
        number or file is unusable, so nothing may be encoded."""
        people = self._encoder.plan.rows
        everybody, asked = UserSet(people), UserSet(people)
        for users, _ in self.chunks():
            everybody.add(users)
            asked.add(users[self._encoder.asked(users)])
        if not everybody.count:
            refuse_none()
        if everybody.count == 1 < people and self._given_first is None and self.ascending:
            raise InvalidInput(
                "a single row is one person's, and nothing says whose: give her user number with --first, or the "
                "column that holds it with --user-column"
            )
        self._checked(self)
        return asked

    def pieces(self) -> Iterator[tuple[Ids, Floats]]:
        """Yield the users asked in this round with their rows, in pieces that are each sorted by user number."""
        size = piece_rows(self._encoder.plan.dimension, self._encoder.width)
        held, count = list[tuple[Ids, Floats]](), 0
        for users, rows in self.chunks():
            who = self._encoder.asked(users)
            held.append((users[who], rows[who]))
            count += int(who.sum())
            if count >= size:
                yield _joined(held)
                held, count = [], 0
        if count:
            yield _joined(held)


def piece_rows(dimension: int, width: int = 1) -> int:
    """Rows that are encoded at once. Args: dimension, width (bytes of an answer)."""
    return max(1, min(max(1024, min(MAX_ROWS, CELLS // dimension)), BYTES // width))


def collect(
    encoder: PlanEncoder,
    table: RowTable,
    out: Path,
    state: State | None = None,
    ready: Callable[[], None] = lambda: None,
) -> tuple[Path | None, int]:
    """Encode a table into a new file in the folder ``out``, which is created if missing.

    Args: ready (called once everything is checked, before anybody is charged).

    Returns: the file (None if this round asks none of these users) and its number of reports.
    Raises: CloisterError: no report was written.
    """
    encoder.check_memory(state)
    form_of(encoder.transcript.head, encoder.round)  # refused before anybody is charged
    with ExitStack() as stack:
        stack.enter_context(prepared(out))
        roll = table.check()
        ready()
        if not roll.count:
            return None, 0
        store = state
        if store is None and not table.ascending:  # sorted on disk, so that memory does not grow with the rows
            store = State(Path(stack.enter_context(tempfile.TemporaryDirectory())) / "reports", durable=False)
        if store is not None:
            store.charge(encoder.transcript, roll.pieces(MAX_ROWS))
            for users, rows in table.pieces():
                encoder.remembered(users, rows, store)
        pieces = _drawn(encoder, table) if store is None else _kept(encoder, roll, store)
        with _file(out) as (file, path):
            for users, answers in pieces:
                file.write(encoder.encoded(users, answers).in_batches())
    return path, roll.count


@contextmanager
def prepared(folder: Path) -> Iterator[None]:
    """A folder for reports, created if it is missing and readable by its owner only, see ``made``. Raises:
    InvalidInput: it cannot be created or written."""
    with ExitStack() as stack:
        with writing(f"into {folder}"):
            stack.enter_context(made(folder, OWNERS_FOLDER))
        if not os.access(folder, os.W_OK | os.X_OK):
            raise InvalidInput(f"cannot write into {folder}: no permission")
        yield


def _drawn(encoder: PlanEncoder, table: RowTable) -> Iterator[tuple[Ids, Packed]]:
    for users, rows in table.pieces():
        yield users, encoder.draw(rows, users)


def _kept(encoder: PlanEncoder, roll: UserSet, store: State) -> Iterator[tuple[Ids, Packed]]:
    for users in roll.pieces(piece_rows(encoder.plan.dimension, encoder.width)):
        yield users, store.answers(encoder.transcript, users, encoder.width)


@contextmanager
def _file(folder: Path) -> Iterator[tuple[BinaryIO, Path]]:
    """A new file readable by its owner only; decoders skip the hidden name under which it is written."""
    path = folder / f"part-{secrets.token_hex(8)}.reports"
    with writing(path, ". No report was written"), appearing(path, owners=True) as file:
        yield file, path


def _joined(held: list[tuple[Ids, Floats]]) -> tuple[Ids, Floats]:
    """Concatenate chunks and sort them by user number."""
    users, rows = np.concatenate([u for u, _ in held]), np.concatenate([r for _, r in held])
    if (users[1:] < users[:-1]).any():
        order = np.argsort(users)
        users, rows = users[order], rows[order]
    return users, rows


def _few(names: Sequence[str]) -> str:
    return ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")
