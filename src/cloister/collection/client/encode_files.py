"""Encode files of rows into one file of reports, a bounded number of rows at a time.

Order of work: everything is checked before anybody is charged, everybody is charged before anything is drawn, and
everything is drawn and remembered before anything is written. The output depends on a row through the randomiser
alone: it is sorted by user number whatever the order of the input, file names are random, and no time is recorded.
Files, and a folder made for them, are readable by their owner only: messages for a shuffler are close to the rows.
"""

from __future__ import annotations

import os
import secrets
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, BinaryIO, final

import attrs
import numpy as np

from cloister.collection.client.encoder import BYTES, PlanEncoder
from cloister.collection.client.state import State
from cloister.collection.plan.canonical_json import OWNERS_FOLDER, flush, made, private, sync, writing
from cloister.collection.wire.answers import Packed
from cloister.collection.wire.batches import form_of
from cloister.collection.wire.user_set import UserSet
from cloister.core.errors import InvalidInput
from cloister.core.types import Floats, Ids
from cloister.rows.columns import Selection
from cloister.run.fit import source

CELLS, MAX_ROWS = 2**22, 2**18
"""Most cells and most rows that are encoded, remembered and written at once: 32 MB."""


@final
@attrs.frozen(kw_only=True)
class Naming:
    """How rows get user numbers. Args: first (number of the first row; the others count on; None: they are everybody's,
    from 0), column (takes them from this column instead)."""

    first: int | None = None
    column: str | None = None


@final
class RowTable:
    """Rows of files with their user numbers; can be read repeatedly.

    Args:
        encoder: encoder of the plan's open round.
        paths: files, as the population ``files`` reads them.
        columns: names or patterns in the order of the plan's columns; default: the plan's own names; of files without
            names all.
        missing: "refuse" or "drop" rows with missing or infinite cells.
        progress: called with the number of rows just read.
        form: delimiter and encoding of CSV files.
        checked: called with this table once all is checked, before anybody is charged.

    Attributes:
        selection: which columns are used, and which are left out.
    """

    def __init__(
        self,
        encoder: PlanEncoder,
        paths: Sequence[str],
        naming: Naming,
        columns: Sequence[str] | None = None,
        missing: str = "refuse",
        progress: Callable[[int], None] | None = None,
        form: Mapping[str, str | None] | None = None,
        checked: Callable[[RowTable], None] = lambda table: None,
    ) -> None:
        self._encoder, self._naming, self._missing = encoder, naming, missing
        self._first = naming.first or 0
        self._progress, self._checked = progress or (lambda n: None), checked
        plan = encoder.plan
        if not 0 <= self._first < plan.rows:
            raise InvalidInput(f"the first user number is {self._first}: this plan's are 0 to {plan.rows - 1}")
        asked, form = columns or plan.columns, form or {}

        def read(some: Sequence[str] | None) -> Any:
            return source(paths, some, missing, delimiter=form.get("delimiter"), encoding=form.get("encoding"))

        if naming.column is not None:
            read([naming.column])  # report an unknown name before complaining that there is one column too many
        found: Sequence[str] = read(asked).columns
        wanted = [name for name in found if name != naming.column or name in (asked or ())]
        if len(wanted) != plan.dimension:
            raise InvalidInput(
                f"the plan is for {plan.dimension} columns, these are {len(wanted)} ({_few(wanted)}): choose them "
                f"with --columns"
            )
        if naming.column in wanted:
            raise InvalidInput(
                f"column '{naming.column}' holds the user numbers: it cannot be a column of the plan too"
            )
        self._files = read([*wanted, *([] if naming.column is None else [naming.column])])
        self.selection: Selection = read(wanted).selection

    def chunks(self) -> Iterator[tuple[Ids, Floats]]:
        """Yield users (n,) and their usable rows (n, d); a chunk is valid until the next one is asked for. Raises:
        InvalidInput: a file or a user number cannot be used."""
        for start, cells in self._files.chunks():
            if self._naming.column is None:
                first, rows = start + self._first, cells
                users = np.arange(first, first + len(cells), dtype=np.uint64)
                if first + len(cells) > self._encoder.plan.rows:
                    raise InvalidInput(
                        f"there are rows for user numbers above {self._encoder.plan.rows - 1}, the plan's last one: "
                        f"give at most as many rows as the plan has users, or publish a plan for more"
                    )
            else:
                users, rows = self._encoder.users(cells[:, -1]), cells[:, :-1]
            whole = np.isfinite(rows).all(axis=1)
            if not whole.all():
                if self._missing == "refuse":
                    raise InvalidInput(
                        "some cells are missing or infinite: fill them in by a public constant, or leave such rows out "
                        "with --missing drop"
                    )
                users, rows = users[whole], rows[whole]
            yield users, rows
            self._progress(len(cells))

    @property
    def ascending(self) -> bool:
        """Whether rows come sorted by user number."""
        return self._naming.column is None

    def check(self) -> UserSet:
        """Read everything once. Returns: the users with rows whom this round asks. Raises: InvalidInput: some row,
        number or file is unusable, so nothing may be encoded."""
        people = self._encoder.plan.rows
        everybody, asked = UserSet(people), UserSet(people)
        for users, _ in self.chunks():
            everybody.add(users)
            asked.add(users[self._encoder.asked(users)])
        if not everybody.count:
            raise InvalidInput("there are no rows to use")
        if everybody.count == 1 < people and self._naming == Naming():
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
    """A new file readable by its owner only: written under a hidden name, which decoders skip, and renamed once it is
    complete and synced."""
    path = folder / f"part-{secrets.token_hex(8)}.reports"
    temporary = folder / f".{path.name}.tmp"
    try:
        with writing(path, ". No report was written"):
            with private(temporary) as file:
                yield file, path
                flush(file)
            temporary.rename(path)
            sync(folder)
    finally:
        temporary.unlink(missing_ok=True)


def _joined(held: list[tuple[Ids, Floats]]) -> tuple[Ids, Floats]:
    """Concatenate chunks and sort them by user number."""
    users, rows = np.concatenate([u for u, _ in held]), np.concatenate([r for _, r in held])
    if (users[1:] < users[:-1]).any():
        order = np.argsort(users)
        users, rows = users[order], rows[order]
    return users, rows


def _few(names: Sequence[str]) -> str:
    return ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")
