"""One run in a ledger: what it has released so far, and which process may release more."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import attrs

from cloister.accounting.composition import Spent
from cloister.accounting.ledger.database import NOW, transaction
from cloister.accounting.ledger.privacy_filter import Cost
from cloister.core.budget import Event
from cloister.core.errors import Damaged, InvalidInput, Refused
from cloister.core.record import Lookup, Record

if TYPE_CHECKING:
    from numpy.typing import NDArray


@final
@attrs.frozen
class Run:
    """A reserved run, held by the process that took it last. It is the session's journal.

    Every method returns only after its entry would survive a crash, and raises ``Refused`` once another process has
    resumed the run or the run is finished: values that an older process computed but did not write are never released.

    Args:
        id: for ``Ledger.resume``.
        dataset: the data set whose lifetime budget pays.
        seed: the run's public seed.
        record: the journal as it was when this process took the run; writing to the run does not change it.
    """

    id: str
    dataset: str
    seed: bytes = attrs.field(repr=False)
    record: Record = attrs.field(repr=False)
    _path: Path = attrs.field(repr=False)
    _owner: str = attrs.field(repr=False)

    def open_round(self, index: int, digest: str) -> None:
        """Journal that round ``index`` is about to be asked. Repeating it with the same digest changes nothing.

        Raises: Refused: it was opened with another digest, or an earlier round was not opened.
        """
        with self._held() as db:
            known = [row[0] for row in db.execute("select digest from rounds where run = ? order by number", [self.id])]
            if index in range(len(known)):
                if known[index] != digest:
                    raise Refused(f"round {index} of run {self.id} was opened as {known[index]}, now it is {digest}")
            elif index != len(known):
                raise Refused(
                    f"round {index} of run {self.id} cannot be opened: {len(known)} rounds were opened before"
                )
            else:
                db.execute("insert into rounds (run, number, digest) values (?, ?, ?)", [self.id, index, digest])

    def close_round(self, index: int) -> None:
        """Journal that the answers of round ``index`` are in. Raises: Refused: it was never opened."""
        with self._held() as db:
            self._opened(db, index)
            db.execute("update rounds set closed = 1 where run = ? and number = ?", [self.id, index])

    def write(self, lookup: Lookup) -> None:
        """Journal values that are about to be released: a resumed run is given them bit for bit.

        Raises: Refused: the look's round was never opened. InvalidInput: not one row of values per id.
        """
        if lookup.ids.ndim != 1 or lookup.values.ndim not in (1, 2) or len(lookup.values) != len(lookup.ids):
            raise InvalidInput(
                f"a look has ids (m,) and values (m,) or (m, d), not {lookup.ids.shape} and {lookup.values.shape}"
            )
        place = [lookup.round, lookup.question, lookup.level, int(lookup.error)]
        shape = " ".join(map(str, lookup.values.shape))
        entry = [_bytes(lookup.ids, "<i8"), shape, _bytes(lookup.values, "<f8")]
        with self._held() as db:
            self._opened(db, lookup.round)
            number = "(select coalesce(max(number) + 1, 0) from looks where run = ?)"
            db.execute(
                f"insert into looks values (?, {number}, ?, ?, ?, ?, ?, ?, ?)", [self.id, self.id, *place, *entry]
            )

    def finish(self, events: Iterable[Event] | None = None, result: str | None = None) -> None:
        """End the run normally: nothing more is asked, and what it did not spend returns to the data set.

        Args:
            events: of every round that was asked, by this process or those it resumed (``Session.released``). Without
                them, everything reserved stays spent.
            result: what the run released, kept so that it can be printed again (``Ledger.result``).

        Raises: InvalidInput: rounds were opened, and the events are empty.
        """
        paid = None if events is None else tuple(events)
        with self._held() as db:
            opened = db.execute("select count(*) from rounds where run = ?", [self.id]).fetchone()[0]
            if paid == () and opened:
                raise InvalidInput(
                    f"run {self.id} has opened {opened} rounds: finish it with the events of all of them"
                )
            cost = Cost(*db.execute("select epsilon, delta, rho from runs where id = ?", [self.id]).fetchone())
            if paid is not None:
                cost = cost.less(Spent.on(paid))
            db.execute(
                f"update runs set state = 'done', finished = {NOW}, epsilon = ?, delta = ?, rho = ? where id = ?",
                [cost.epsilon, cost.delta, cost.rho, self.id],
            )
            if result is not None:
                db.execute("insert into results values (?, ?)", [self.id, result])

    @contextmanager
    def _held(self) -> Iterator[sqlite3.Connection]:
        """A writing transaction, for the run's owner only."""
        with transaction(self._path, "writing") as db:
            owner, state = db.execute("select owner, state from runs where id = ?", [self.id]).fetchone() or ("", "")
            if owner != self._owner:
                raise Refused(f"run {self.id} was resumed by another process: this one may release nothing more")
            if state != "open":
                raise Refused(f"run {self.id} is finished: start a new run")
            yield db

    def _opened(self, db: sqlite3.Connection, index: int) -> None:
        if not db.execute("select 1 from rounds where run = ? and number = ?", [self.id, index]).fetchone():
            raise Refused(f"round {index} of run {self.id} was never opened: open_round comes first")


def recorded(db: sqlite3.Connection, run: str) -> Record:
    """A run's whole journal. Raises: Damaged: an entry whose bytes do not fit its shape."""
    rounds = db.execute("select digest, closed from rounds where run = ? order by number", [run]).fetchall()
    closed = max((i + 1 for i, (_, done) in enumerate(rounds) if done), default=0)
    rows = db.execute(
        "select round, question, level, error, ids, shape, answers from looks where run = ? order by number", [run]
    )
    return Record([digest for digest, _ in rounds], closed, [_look(run, *row) for row in rows])


def _look(
    run: str, round: int, question: int, level: int, error: int, ids: bytes, shape: str, answers: bytes
) -> Lookup:
    try:
        values = _array(answers, "<f8").reshape([int(n) for n in shape.split()])
        keys = _array(ids, "<i8")
    except (ValueError, TypeError):
        raise Damaged(
            f"run {run} has a look whose bytes do not fit its shape: restore a backup of the ledger"
        ) from None
    return Lookup(round, question, level, bool(error), keys, values)


def _bytes(array: NDArray[Any], dtype: str) -> bytes:
    return array.astype(dtype, casting="equiv", copy=False).tobytes()


def _array(data: bytes, dtype: str) -> NDArray[Any]:
    import numpy as np

    return np.frombuffer(data, dtype).astype(dtype[1:])
