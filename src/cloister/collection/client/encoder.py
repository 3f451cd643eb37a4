"""A person's side of a plan: her row to her report of the open round. Imports NumPy, attrs and the standard library
only.

    plan = read("plan/")
    reports = encode(plan, rows, users, state="mine.state")

Under Shuffled trust what leaves is messages, for a shuffler, and this holds for what it releases; the plan says what a
person's messages cost her by themselves.

Guarantee: each user's reports of all rounds together are (epsilon, delta)-private, as the plan says, against whoever
sees all reports, whatever answers he publishes between the rounds: a report depends on her row through the randomiser
alone, whose secret words come from the system's entropy; she answers a round only if it costs what the plan's schedule
says, and each round once. Users, their order (ascending) and which of them are there do not depend on rows' values.
Encoding a row twice costs twice, unless a state remembers (``state``): plans of several rounds need one.
"""

from __future__ import annotations

import os
import warnings
from typing import Any, final

import attrs
import numpy as np

from cloister.collection.client.records import Records, record_width, to_messages, to_records, to_reports
from cloister.collection.client.state import State
from cloister.collection.plan.plan import CollectionPlan, loud, read
from cloister.collection.plan.transcript import Transcript, transcript_of
from cloister.collection.wire.messages import Messages
from cloister.collection.wire.reports import asked
from cloister.core.encoding import chunk_rows, encode_owned
from cloister.core.errors import InvalidInput, PrivacyWarning
from cloister.core.questions import Round
from cloister.core.randomness import NoiseRng
from cloister.core.trust import Shuffled
from cloister.core.types import AnyArray, Bools, Floats, Ids

BYTES = 2**24
"""Of records that are drawn at once."""


@final
@attrs.frozen(eq=False)
class Encoded:
    """What may leave.

    Args:
        plan: hash of the plan.
        head: name of the round: hash of what was published before it. The plan's in the first round.
        users: (n,) ascending: those who are asked anything in this round.
        records: (n, width) bytes, a report each.
        round: what they answer.
    """

    plan: str
    head: str
    users: Ids
    records: Records = attrs.field(repr=False)
    round: Round[Any] = attrs.field(repr=False)

    @property
    def reports(self) -> tuple[Any, ...]:
        """One per question, of those users whom it was asked of."""
        if self.round.trust is Shuffled:
            return tuple(self.messages.report(j, self.round) for j in range(len(self.round.parts)))
        return to_reports(self.records, self.users, self.round)

    @property
    def messages(self) -> Messages:
        """What they send to the shuffler, under Shuffled trust."""
        return to_messages(self.records, self.users, self.round)

    def columns(self) -> dict[str, AnyArray]:
        """Named arrays: q0.users, q0.answers, ... with an entry for each user who answers that question."""
        return {
            f"q{j}.{name}": values for j, report in enumerate(self.reports) for name, values in report.columns().items()
        }


@final
class PlanEncoder:
    """A plan's open round, worked out once for many rows.

    Args:
        plan: from ``read``, if its first round is open; or with the answers that were published since.
        noise: only for tests. Reports of repeatable noise protect nobody.

    Raises:
        CloisterError: this plan is not what it says, or cannot be answered here.
    """

    def __init__(self, plan: CollectionPlan | Transcript, *, noise: NoiseRng | None = None) -> None:
        self.transcript = transcript_of(plan)
        self.plan, self.round = self.transcript.plan, self.transcript.round()
        self._noise = NoiseRng.secret() if noise is None else noise
        self.width = record_width(self.round)

    def encode(self, rows: Any, users: Any, state: State | None = None) -> Encoded:
        """Rows to reports.

        Args:
            rows: (n, d) numbers in the caller's units; those outside the bounds are clipped.
            users: (n,) whole numbers, 0 <= user < the plan's rows, each once. They are public and name the same person
                in every plan that a state sees.
            state: where her reports and her spending are remembered.

        Raises:
            InvalidInput: rows or users that cannot be used.
            BudgetExceeded: some user has too little left. No report was made of anybody.
        """
        them = self.users(users)
        table = self._rows(rows, len(them))
        order = np.argsort(them, kind="stable")
        them, table = them[order], table[order]
        if (them[1:] == them[:-1]).any():
            raise InvalidInput("a user number stands twice: every user reports once")
        who = self.asked(them)
        them, table = them[who], table[who]
        self.check_memory(state)
        if state is None:
            return self.encoded(them, self.draw(table, them))
        if self._noise.seeded:
            raise InvalidInput("reports of repeatable noise are not remembered: nobody may take them for private ones")
        state.charge(self.transcript, [them])
        return self.encoded(them, self.remembered(them, table, state))

    def asked(self, users: Ids) -> Bools:
        """Who of the users (n,) is asked anything in this round: public. Under Shuffled trust everybody may be, and
        draws it herself."""
        if self.round.trust is Shuffled:
            return np.ones(len(users), bool)
        who: Bools = np.logical_or.reduce(asked(self.round, users))
        return who

    def check_memory(self, state: State | None) -> None:
        """Raises: InvalidInput where nothing would remember which rounds a user has answered, and under which
        answers."""
        if state is None and self.plan.length > 1 and not self._noise.seeded:
            raise InvalidInput(
                f"this plan has {self.plan.length} rounds: give a state that remembers what was answered in each "
                f"(--state FILE)"
            )

    def encoded(self, users: Ids, records: Records) -> Encoded:
        """Records of ascending users (n,) as what may leave."""
        return Encoded(self.plan.hash, self.transcript.head, users, records, self.round)

    def draw(self, rows: Floats, users: Ids) -> Records:
        """Fresh records (n, width) for finite rows (n, d) of ascending users (n,): every call spends."""
        records = np.empty((len(users), self.width), np.uint8)
        step = max(1, min(chunk_rows(self.plan.dimension), BYTES // self.width))
        for start in range(0, len(users), step):
            some = slice(start, start + step)
            answers = encode_owned(self.round, rows[some], users[some], self._noise)
            records[some] = to_records(answers, len(users[some]), self.round)
        return records

    def remembered(self, users: Ids, rows: Floats, state: State) -> Records:
        """Records (n, width) of charged users (n,), ascending: the state's, and fresh ones for users without."""
        return state.fill(self.transcript, users, self.width, lambda which: self.draw(rows[which], users[which]))

    def users(self, users: Any) -> Ids:
        """User numbers (n,) as they are on the wire. Raises: InvalidInput: not whole numbers of this plan."""
        given = np.asarray(users)
        if given.ndim != 1 or given.dtype.kind not in "iuf" or given.dtype.itemsize > 8:
            raise InvalidInput(f"user numbers are a line of whole numbers, not {given.dtype} of shape {given.shape}")
        whole = np.isfinite(given) & (given >= 0) & (given < self.plan.rows)
        if not (whole.all() and (given == np.floor(given)).all()):
            raise InvalidInput(f"user numbers are whole numbers from 0 to {self.plan.rows - 1}: some are not")
        return given.astype(np.uint64)

    def _rows(self, rows: Any, n: int) -> Floats:
        try:
            table = np.asarray(rows, np.float64)
        except (TypeError, ValueError):
            raise InvalidInput("rows are a table of numbers") from None
        if table.shape != (n, self.plan.dimension):
            raise InvalidInput(
                f"the plan takes rows of {self.plan.dimension} columns, one per user: ({n}, {self.plan.dimension}), "
                f"not {table.shape}"
            )
        if not np.isfinite(table).all():
            raise InvalidInput(
                "some cells are missing or infinite: fill them in, or leave such rows and their users out"
            )
        return table


def encode(
    plan: Transcript | CollectionPlan | str | os.PathLike[str], rows: Any, users: Any, *,
    state: State | str | os.PathLike[str] | None = None, lifetime: float | None = None,
    lifetime_delta: float | None = None,
    noise: NoiseRng | None = None,
) -> Encoded:  # fmt: skip
    """Rows (n, d) of users (n,) to reports of a plan's open round: see ``PlanEncoder.encode``. Warns and refuses as
    ``cloister encode`` does.

    Args:
        plan: or the folder that it is in.
        state: a file that remembers; without it, encoding the same rows again spends again.
        lifetime, lifetime_delta: the most that a user of this state may ever spend, over all plans: the file keeps it,
            see ``State``.
        noise: only for tests.

    Warns:
        PrivacyWarning: what ``cautions`` has to say. Whoever wants none of it answered makes it an error:
            ``warnings.simplefilter("error", PrivacyWarning)``. Then nothing is drawn or paid.
    """
    given = (lifetime, lifetime_delta) != (None, None)
    if given and (state is None or isinstance(state, State)):
        raise InvalidInput(
            "a lifetime needs a state that remembers what was spent: give state=FILE, or a State that has it"
        )
    kept = State(state, lifetime, lifetime_delta=lifetime_delta) if isinstance(state, (str, os.PathLike)) else state
    encoder = PlanEncoder(transcript_of(plan), noise=noise)
    encoder.check_memory(kept)
    for caution in cautions(encoder.transcript, kept):
        warnings.warn(caution, PrivacyWarning, stacklevel=2)
    return encoder.encode(rows, users, kept)


def cautions(transcript: Transcript, state: State | None) -> tuple[str, ...]:
    """What whoever answers a plan should know first, whatever the plan says of itself: the command line and ``encode``
    both say it."""
    found = loud(transcript.total, transcript.plan.rows)
    if state is not None or transcript.plan.length > 1:  # several rounds are refused without a state
        return found
    forgotten = (
        "no state: nothing remembers these reports. Encoding the same rows again, under this plan or another, spends "
        "again"
    )
    return (*found, forgotten)


__all__ = [
    "CollectionPlan",
    "Encoded",
    "PlanEncoder",
    "PrivacyWarning",
    "State",
    "Transcript",
    "cautions",
    "encode",
    "read",
    "transcript_of",
]  # fmt: skip
