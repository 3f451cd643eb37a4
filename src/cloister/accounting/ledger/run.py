"""A run in a ledger: its journal, the process that may write it, and the fingerprints of its rows.

Fingerprints in the ledger show whether a resumed run has the rows that it began with. The ledger alone reveals nothing
about the rows: the fingerprints are keyed by the run's id and ``LEDGER.key``, which only its owner can read and nobody
needs elsewhere. A ledger that was copied without the key still counts what was spent; it can no longer compare rows,
and asks.
"""

from __future__ import annotations

import secrets
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import attrs

from cloister.accounting.composition import Spent
from cloister.accounting.ledger.counter import replace
from cloister.accounting.ledger.database import NOW, transaction
from cloister.accounting.ledger.privacy_filter import Cost
from cloister.accounting.ledger.sqlite import OWNER
from cloister.core.budget import Event
from cloister.core.errors import CloisterError, Damaged, InvalidInput, Refused, cause
from cloister.core.fingerprints import ENGINE, HOW_HASHED, OPTION, SIZE, Fingerprinter, subkey
from cloister.core.keyfiles import check_own
from cloister.core.record import Lookup, Record

if TYPE_CHECKING:
    from numpy.typing import NDArray


@final
@attrs.frozen
class Run:
    """Reserved run, held by the process that took it last. It is the session's journal.

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

        Raises:
            Refused: it was opened with another digest, or an earlier round was not opened.
        """
        with self._writing() as db:
            digests = [
                row[0] for row in db.execute("select digest from rounds where run = ? order by number", [self.id])
            ]
            if index in range(len(digests)):
                if digests[index] != digest:
                    raise Refused(f"round {index} of run {self.id} was opened as {digests[index]}, now it is {digest}")
            elif index != len(digests):
                raise Refused(
                    f"round {index} of run {self.id} cannot be opened: only {len(digests)} rounds were opened before it"
                )
            else:
                db.execute("insert into rounds (run, number, digest) values (?, ?, ?)", [self.id, index, digest])

    def close_round(self, index: int) -> None:
        """Journal that the answers of round ``index`` have arrived.

        Raises:
            Refused: it was never opened.
        """
        with self._writing() as db:
            self._check_opened(db, index)
            db.execute("update rounds set closed = 1 where run = ? and number = ?", [self.id, index])

    def write(self, lookup: Lookup) -> None:
        """Journal values that are about to be released: a resumed run gets them bit for bit.

        Raises:
            Refused: the lookup's round was never opened.
            InvalidInput: there is not one row of values per id.
        """
        if lookup.ids.ndim != 1 or lookup.values.ndim not in (1, 2) or len(lookup.values) != len(lookup.ids):
            raise InvalidInput(
                f"a lookup has ids (m,) and values (m,) or (m, d), not {lookup.ids.shape} and {lookup.values.shape}"
            )
        place = [lookup.round, lookup.question, lookup.level, int(lookup.error)]
        shape = " ".join(map(str, lookup.values.shape))
        entry = [_bytes(lookup.ids, "<i8"), shape, _bytes(lookup.values, "<f8")]
        with self._writing() as db:
            self._check_opened(db, lookup.round)
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

        Raises:
            InvalidInput: rounds were opened, and the events are empty.
        """
        paid = None if events is None else tuple(events)
        with self._writing() as db:
            opened = db.execute("select count(*) from rounds where run = ?", [self.id]).fetchone()[0]
            if paid == () and opened:
                raise InvalidInput(
                    f"run {self.id} has opened {opened} rounds: finish it with the events of all of them"
                )
            cost = Cost(*db.execute("select epsilon, delta, rho from runs where id = ?", [self.id]).fetchone())
            if paid is not None:
                cost = cost.actual(Spent.on(paid))
            mark_done(db, self.id, cost)
            if result is not None:
                db.execute("insert into results values (?, ?)", [self.id, result])

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """Open a writing transaction, for the run's owner only."""
        with transaction(self._path, "writing") as db:
            owner, state = db.execute("select owner, state from runs where id = ?", [self.id]).fetchone() or ("", "")
            if owner != self._owner:
                raise Refused(f"run {self.id} was resumed by another process: this one may release nothing more")
            if state != "open":
                raise Refused(f"run {self.id} is finished: start a new run")
            yield db

    def _check_opened(self, db: sqlite3.Connection, index: int) -> None:
        if not db.execute("select 1 from rounds where run = ? and number = ?", [self.id, index]).fetchone():
            raise Refused(f"round {index} of run {self.id} was never opened: open_round comes first")


def mark_done(db: sqlite3.Connection, run: str, cost: Cost) -> None:
    """Write that a run is done, and its cost."""
    figures = [*attrs.astuple(cost), run]
    db.execute(
        f"update runs set state = 'done', finished = {NOW}, epsilon = ?, delta = ?, rho = ? where id = ?", figures
    )


def record_of(db: sqlite3.Connection, run: str) -> Record:
    """Return a run's whole journal.

    Raises:
        Damaged: the bytes of an entry do not fit its shape.
    """
    rounds = db.execute("select digest, closed from rounds where run = ? order by number", [run]).fetchall()
    closed = max((i + 1 for i, (_, done) in enumerate(rounds) if done), default=0)
    rows = db.execute(
        "select round, question, level, error, ids, shape, answers from looks where run = ? order by number", [run]
    )
    return Record([digest for digest, _ in rounds], closed, [_lookup(run, *row) for row in rows])


def _lookup(
    run: str, round: int, question: int, level: int, error: int, ids: bytes, shape: str, answers: bytes
) -> Lookup:
    try:
        values = _array(answers, "<f8").reshape([int(n) for n in shape.split()])
        keys = _array(ids, "<i8")
    except (ValueError, TypeError):
        raise Damaged(
            f"run {run} has a lookup whose bytes do not fit its shape: restore a backup of the ledger"
        ) from None
    return Lookup(round, question, level, bool(error), keys, values)


def _bytes(array: NDArray[Any], dtype: str) -> bytes:
    return array.astype(dtype, casting="equiv", copy=False).tobytes()


def _array(data: bytes, dtype: str) -> NDArray[Any]:
    import numpy as np

    return np.frombuffer(data, dtype).astype(dtype[1:])


SAME_ROWS = "if they are the same rows, resume with --same-rows (same_rows=True); with other rows start a new run"


def row_fingerprints(ledger: Path, run: str, rows: Fingerprinter | None) -> Mapping[str, bytes] | None:
    """Return the fingerprints of a run's rows. It may read them: call it outside transactions."""
    return None if rows is None else rows(subkey(_secret(ledger), run))


def store_fingerprints(db: sqlite3.Connection, run: str, fingerprints: Mapping[str, bytes] | None) -> None:
    """Store these fingerprints, if there are any, in place of earlier ones."""
    if fingerprints is None:
        return
    db.execute("delete from marks where run = ?", [run])
    db.executemany(
        "insert into marks values (?, ?, ?)", [(run, name, fingerprint) for name, fingerprint in fingerprints.items()]
    )


def check_options(db: sqlite3.Connection, run: str, fingerprints: Mapping[str, bytes] | None) -> None:
    """Check that rows are read with the options of the run's reservation, where both state them.

    Nobody can vouch for rows that are read differently: a file that was copied is still in one encoding.

    Raises:
        Refused: some option differs.
    """
    stored, current = _option_fingerprints(_stored_fingerprints(db, run)), _option_fingerprints(fingerprints or {})
    differ = [name for name in {**current, **stored} if stored.get(name) != current.get(name)]
    if stored and current and differ:
        raise Refused(
            f"run {run} read its rows with other options: {', '.join(differ)} differ. Rows that are read differently "
            f"would be counted twice: repeat its options, or start a new run"
        )


def check_rows(db: sqlite3.Connection, run: str, fingerprints: Mapping[str, bytes] | None) -> None:
    """Check that the fingerprints are those that the run was reserved with.

    Raises:
        Refused: they differ, or there is nothing to compare.
    """
    stored = _stored_fingerprints(db, run)
    if not stored or not fingerprints:
        raise Refused(f"nobody can tell whether run {run} began with these rows: {SAME_ROWS}")
    hashed = [name for name in fingerprints if name.startswith(HOW_HASHED) and name not in stored]
    if any(name.replace(HOW_HASHED, ENGINE) in stored for name in hashed):
        raise Refused(
            f"run {run} began under an earlier version of cloister, whose hashes of rows in a database were weaker: "
            f"nobody can tell whether these are its rows: {SAME_ROWS}"
        )
    differ = [name for name in {**fingerprints, **stored} if stored.get(name) != fingerprints.get(name)]
    if differ:
        raise Refused(
            f"run {run} began with other rows, or they have moved: {', '.join(differ)} differ. Rows that changed "
            f"would be counted twice: {SAME_ROWS}"
        )


def _option_fingerprints(fingerprints: Mapping[str, bytes]) -> dict[str, bytes]:
    return {name: fingerprint for name, fingerprint in fingerprints.items() if name.startswith(OPTION)}


def _stored_fingerprints(db: sqlite3.Connection, run: str) -> dict[str, bytes]:
    """Return the fingerprints that the run was reserved with."""
    return {
        str(name): bytes(fingerprint)
        for name, fingerprint in db.execute("select what, digest from marks where run = ?", [run])
    }


def _secret(ledger: Path) -> bytes:
    """Return the ledger's key, made when first needed. The ledger's write lock lets one process at a time make it."""
    path = ledger.with_name(f"{ledger.name}.key")
    with transaction(ledger, "writing"):
        try:
            secret = b""
            if path.exists():
                check_own(path, group=bool(ledger.stat().st_mode & 0o060))
                secret = path.read_bytes()
            if len(secret) != SIZE:
                secret = secrets.token_bytes(SIZE)
                replace(path, secret, OWNER)
            return secret
        except OSError as error:
            raise CloisterError(f"cannot use {path}, the ledger's key: {cause(error)}") from error
