"""Encoding of rows in files, or in a database's table, into one file of reports, a bounded number of rows at a time.

Everything is checked before anybody is charged, everybody is charged before anything is drawn, and everything is drawn
and stored before anything is written. The output depends on a row through the randomiser alone: it is sorted by user
number whatever the order of the input, file names are random, and no time is recorded. Files, and a folder made for
them, are readable by their owner only: messages for a shuffler are close to the rows.
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
from cloister.collection.plan.durable_files import OWNERS_FOLDER, atomic_file, created_folder, writing
from cloister.collection.wire.answers import Packed
from cloister.collection.wire.batches import form_of
from cloister.collection.wire.user_set import UserSet
from cloister.core.encoding import finite
from cloister.core.errors import InvalidInput, UnknownName
from cloister.core.types import Floats, Ids
from cloister.rows.options import Reading
from cloister.rows.places import in_database, refuse_foreign_address
from cloister.rows.reading import refuse_missing, refuse_none
from cloister.rows.selection import Selection, in_order, table_columns
from cloister.run.fit import source

CELLS, MAX_ROWS = 2**22, 2**18
"""Maximum number of cells, and of rows, that are encoded, stored and written at once: 32 MB."""


@final
class RowTable:
    """Rows of files, or of a database's table, with their user numbers; can be read repeatedly.

    Args:
        encoder: encoder of the plan's open round.
        rows: files, or an address, as for ``run.fit.source``.
        reading: how they are read. Columns are put in the order of the plan; by default those that it names, and of
            files without names all. ``user_column`` names the column that holds the user numbers, which rows in a
            database need, since they have no order.
        first: user number of the first row; the next rows have the next numbers. None: there is a row for each user,
            from 0.
        progress: called with the number of rows just read.
        checked: called with this table once all is checked, before anybody is charged.

    Attributes:
        selection: the columns used and the columns left out.
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
                "rows in a database have no order that could number their users: name the column that holds each "
                "person's number with --user-column"
            )
        planned = None if plan.columns is None else table_columns(plan.columns, plan.categories)
        requested = given.names or planned

        def read(columns: Sequence[str] | None) -> Any:
            return source(rows, given, columns=columns)

        def chosen(columns: Sequence[str] | None) -> Selection:
            with closing(read(columns)) as table:
                return cast(Selection, table.selection)

        if self._column is not None:  # before it is mistaken for a column of the plan
            try:
                chosen([self._column])
            except UnknownName:
                raise
            except InvalidInput:
                raise InvalidInput(
                    f"column '{self._column}' holds no numbers: --user-column names the one that holds each person's "
                    f"number in this plan, 0 to {plan.rows - 1}"
                ) from None
        names = [name for name in chosen(requested).used if name != self._column or name in (requested or ())]
        if self._column in names:
            raise InvalidInput(f"column '{self._column}' holds the user numbers, so it cannot be a column of the plan")
        names = in_order(names, planned or names)
        self.selection: Selection = chosen(names)
        features = self.selection.features
        if len(features) != plan.dimension or (plan.categories and features != plan.columns):
            raise InvalidInput(
                f"the plan has {plan.dimension} columns, not {len(features)} ({_few(features)}): choose them with "
                f"--columns, in the order of the plan"
            )
        self._rows = read([*names, *([] if self._column is None else [self._column])])

    def close(self) -> None:
        """Close the source of the rows."""
        self._rows.close()

    def chunks(self) -> Iterator[tuple[Ids, Floats]]:
        """Yield users (n,) and their rows (n, d); a chunk is valid until the next one.

        Rows with missing cells that are to be dropped are included: ``core.encoding.encode_owned`` makes their users
        report as being in no bucket.

        Raises: InvalidInput: rows or a user number cannot be used.
        """
        for chunk in self._rows.chunks():
            if self._column is None:
                first, rows = chunk.start + self._first, chunk.rows
                users = np.arange(first, first + len(rows), dtype=np.uint64)
                if first + len(rows) > self._encoder.plan.rows:
                    raise InvalidInput(
                        f"there are rows for user numbers above {self._encoder.plan.rows - 1}, the plan's last one: "
                        f"give fewer rows, or publish a plan for more users"
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
        """Read everything once; return the users with rows whom this round asks.

        Raises: InvalidInput: some row, number or file is unusable, so nothing may be encoded.
        """
        people = self._encoder.plan.rows
        everybody, asked_users = UserSet(people), UserSet(people)
        for users, _ in self.chunks():
            everybody.add(users)
            asked_users.add(users[self._encoder.is_asked(users)])
        if not everybody.count:
            refuse_none()
        if everybody.count == 1 < people and self._given_first is None and self.ascending:
            raise InvalidInput(
                "a single row needs a user number: give it with --first, or name the column that holds it with "
                "--user-column"
            )
        self._checked(self)
        return asked_users

    def pieces(self) -> Iterator[tuple[Ids, Floats]]:
        """Yield the users asked in this round with their rows, in pieces that are each sorted by user number."""
        size = piece_rows(self._encoder.plan.dimension, self._encoder.width)
        chunks, count = list[tuple[Ids, Floats]](), 0
        for users, rows in self.chunks():
            mask = self._encoder.is_asked(users)
            chunks.append((users[mask], rows[mask]))
            count += int(mask.sum())
            if count >= size:
                yield _concatenate(chunks)
                chunks, count = [], 0
        if count:
            yield _concatenate(chunks)


def piece_rows(dimension: int, width: int = 1) -> int:
    """Return the number of rows encoded at once; ``width`` is the length of an answer in bytes."""
    return max(1, min(max(1024, min(MAX_ROWS, CELLS // dimension)), BYTES // width))


def collect(
    encoder: PlanEncoder,
    table: RowTable,
    out: Path,
    state: State | None = None,
    ready: Callable[[], None] = lambda: None,
) -> tuple[Path | None, int]:
    """Encode a table into a new file in the folder ``out``, which is created if missing.

    ``ready`` is called once everything is checked, before anybody is charged.

    Returns:
        The file (None if this round asks none of these users) and its number of reports.

    Raises:
        CloisterError: no report was written.
    """
    encoder.check_state(state)
    form_of(encoder.transcript.head, encoder.round)  # may refuse, before anybody is charged
    with ExitStack() as stack:
        stack.enter_context(reports_folder(out))
        roll = table.check()
        ready()
        if not roll.count:
            return None, 0
        store = state
        if store is None and not table.ascending:  # sort on disk, so that memory does not grow with the rows
            store = State(Path(stack.enter_context(tempfile.TemporaryDirectory())) / "reports", durable=False)
        if store is not None:
            store.charge(encoder.transcript, roll.pieces(MAX_ROWS))
            for users, rows in table.pieces():
                encoder.recall_or_draw(users, rows, store)
        pieces = _draw(encoder, table) if store is None else _stored(encoder, roll, store)
        with _file(out) as (file, path):
            for users, answers in pieces:
                file.write(encoder.wrap(users, answers).to_batches())
    return path, roll.count


@contextmanager
def reports_folder(folder: Path) -> Iterator[None]:
    """Create a folder for reports if it is missing, readable by its owner only, see ``created_folder``.

    Raises: InvalidInput: it cannot be created or written.
    """
    with ExitStack() as stack:
        with writing(f"into {folder}"):
            stack.enter_context(created_folder(folder, OWNERS_FOLDER))
        if not os.access(folder, os.W_OK | os.X_OK):
            raise InvalidInput(f"cannot write into {folder}: no permission")
        yield


def _draw(encoder: PlanEncoder, table: RowTable) -> Iterator[tuple[Ids, Packed]]:
    for users, rows in table.pieces():
        yield users, encoder.draw(rows, users)


def _stored(encoder: PlanEncoder, roll: UserSet, store: State) -> Iterator[tuple[Ids, Packed]]:
    for users in roll.pieces(piece_rows(encoder.plan.dimension, encoder.width)):
        yield users, store.answers(encoder.transcript, users, encoder.width)


@contextmanager
def _file(folder: Path) -> Iterator[tuple[BinaryIO, Path]]:
    """Create a file readable by its owner only; decoders skip the hidden name under which it is written."""
    path = folder / f"part-{secrets.token_hex(8)}.reports"
    with writing(path, ". No report was written"), atomic_file(path, private=True) as file:
        yield file, path


def _concatenate(chunks: list[tuple[Ids, Floats]]) -> tuple[Ids, Floats]:
    """Concatenate chunks and sort them by user number."""
    users, rows = np.concatenate([u for u, _ in chunks]), np.concatenate([r for _, r in chunks])
    if (users[1:] < users[:-1]).any():
        order = np.argsort(users)
        users, rows = users[order], rows[order]
    return users, rows


def _few(names: Sequence[str]) -> str:
    return ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")
