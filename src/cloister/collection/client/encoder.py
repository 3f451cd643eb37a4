"""A user's side of a plan: encode her row into her report for the open round. Imports NumPy, attrs and the standard
library only.

    plan = read("plan/")
    reports = encode(plan, rows, users, state="mine.state")

Under Shuffled trust the output is messages for a shuffler, and the guarantee holds for what the shuffler releases; the
plan states what a user's messages cost her without one.

Guarantee: one user's reports of all rounds together are (epsilon, delta)-private, as the plan says, against anybody who
sees all reports, whatever answers the publisher chooses between rounds. A report depends on her row through the
randomiser alone, whose random words come from the system's entropy; she answers a round only if it costs what the
plan's schedule says, and each round once. User numbers, their ascending order, and which users are present do not
depend on the values of rows. Encoding a row twice costs twice, unless a ``state`` remembers the report: plans of
several rounds need one.
"""

from __future__ import annotations

import os
import warnings
from typing import Any, final

import attrs
import numpy as np

from cloister.collection.client.state import State
from cloister.collection.plan.plan import CollectionPlan, loud, read
from cloister.collection.plan.transcript import Transcript, transcript_of
from cloister.collection.wire.answers import Packed, layout_of
from cloister.collection.wire.batches import BatchForm, form_of
from cloister.collection.wire.messages import Messages, from_answers
from cloister.core.encoding import chunk_rows, encode_owned
from cloister.core.errors import InvalidInput, PrivacyWarning
from cloister.core.questions import Round
from cloister.core.randomness import NoiseRng
from cloister.core.trust import Shuffled
from cloister.core.types import AnyArray, Bools, Floats, Ids

BYTES = 2**24
"""Most bytes of answers that are drawn at once."""


@final
@attrs.frozen(eq=False)
class Encoded:
    """The encoded reports of one round, which may leave the user's machine.

    Args:
        plan: hash of the plan.
        head: name of the round: hash of what was published before it (for the first round, the plan's hash).
        users: (n,) ascending; the users whom this round asks anything.
        answers: (n, A) bytes, what each report says besides its user's number.
        round: the round that they answer.
    """

    plan: str
    head: str
    users: Ids
    answers: Packed = attrs.field(repr=False)
    round: Round[Any] = attrs.field(repr=False)

    @property
    def form(self) -> BatchForm:
        """The form of these reports as bytes. Raises: InvalidInput: a round beyond the 255th has none."""
        return form_of(self.head, self.round)

    def to_bytes(self) -> bytes:
        """All reports as they are sent: a single user's as one report, those of several in batches."""
        if len(self.users) == 1:
            return self.form.report(int(self.users[0]), self.answers[0].tobytes())
        return self.in_batches()

    def in_batches(self) -> bytes:
        """All reports as they stand in a file: in as few batches as hold them."""
        return b"".join(self.form.batches(self.users, self.answers))

    @property
    def reports(self) -> tuple[Any, ...]:
        """One report per question, each holding the users who were asked that question."""
        if self.round.trust is Shuffled:
            sent = self.messages
            return tuple(sent.report(j, self.round) for j in range(len(self.round.parts)))
        return layout_of(self.round).reports(self.users, self.answers)

    @property
    def messages(self) -> Messages:
        """The messages for the shuffler, under Shuffled trust."""
        return from_answers(self.users, self.answers, self.round)[0]

    def columns(self) -> dict[str, AnyArray]:
        """Named arrays: q0.users, q0.answers, ... with an entry for each user who answers that question."""
        return {
            f"q{j}.{name}": values for j, report in enumerate(self.reports) for name, values in report.columns().items()
        }


@final
class PlanEncoder:
    """Encoder for a plan's open round; prepared once, used for many rows.

    Args:
        plan: a plan from ``read`` while its first round is open; later, a transcript with the answers published since.
        noise: for tests only. Reports made with repeatable noise protect nobody.

    Raises: CloisterError: the plan does not match its own digests and costs, or cannot be answered here.
    """

    def __init__(self, plan: CollectionPlan | Transcript, *, noise: NoiseRng | None = None) -> None:
        self.transcript = transcript_of(plan)
        self.plan, self.round = self.transcript.plan, self.transcript.round()
        self._noise = NoiseRng.secret() if noise is None else noise
        self.width = layout_of(self.round).bytes

    def encode(self, rows: Any, users: Any, state: State | None = None) -> Encoded:
        """Encode rows into reports.

        Args:
            rows: (n, d) numbers in the caller's units; values outside the bounds are clipped.
            users: (n,) distinct whole numbers, 0 <= user < the plan's rows. They are public, and one number means the
                same person in every plan that a state sees.
            state: remembers reports and spending.

        Raises:
            InvalidInput: unusable rows or users.
            BudgetExceeded: some user has too little budget left. No report was made for anybody.
        """
        them = self.users(users)
        table = self._rows(rows, len(them))
        order = np.argsort(them, kind="stable")
        them, table = them[order], table[order]
        if (them[1:] == them[:-1]).any():
            raise InvalidInput("a user number stands twice: give each user one row")
        who = self.asked(them)
        them, table = them[who], table[who]
        self.check_memory(state)
        if state is None:
            return self.encoded(them, self.draw(table, them))
        if self._noise.seeded:
            raise InvalidInput("reports of repeatable noise are not remembered: they are not private. Give no state")
        state.charge(self.transcript, [them])
        return self.encoded(them, self.remembered(them, table, state))

    def asked(self, users: Ids) -> Bools:
        """Which users (n,) this round may ask: public. Under Shuffled trust all, as each draws her own questions."""
        if self.round.trust is Shuffled:
            return np.ones(len(users), bool)
        who: Bools = np.logical_or.reduce(list(layout_of(self.round).who(users)))
        return who

    def check_memory(self, state: State | None) -> None:
        """Raises: InvalidInput: a plan of several rounds needs a state that remembers each user's answered rounds and
        the published answers that they were given under."""
        if state is None and self.plan.length > 1 and not self._noise.seeded:
            raise InvalidInput(
                f"this plan has {self.plan.length} rounds: give a state that remembers the reports of each "
                f"(--state FILE)"
            )

    def encoded(self, users: Ids, answers: Packed) -> Encoded:
        """Wrap the answers of ascending users (n,), which nobody changes from here on."""
        answers = answers.view()
        answers.flags.writeable = False
        return Encoded(self.plan.hash, self.transcript.head, users, answers, self.round)

    def draw(self, rows: Floats, users: Ids) -> Packed:
        """Draw fresh answers (n, A) for rows (n, d) of ascending users (n,). Every call spends budget."""
        layout = layout_of(self.round)
        answers = layout.empty(len(users))
        step = max(1, min(chunk_rows(self.plan.dimension), BYTES // self.width))
        for start in range(0, len(users), step):
            some = slice(start, start + step)
            layout.fill(answers[some], encode_owned(self.round, rows[some], users[some], self._noise))
        return answers

    def remembered(self, users: Ids, rows: Floats, state: State) -> Packed:
        """Answers (n, A) of charged ascending users (n,): those in the state, and new ones for the others."""
        return state.fill(self.transcript, users, self.width, lambda which: self.draw(rows[which], users[which]))

    def users(self, users: Any) -> Ids:
        """User numbers (n,) as uint64. Raises: InvalidInput: they are not whole numbers of this plan."""
        given = np.asarray(users)
        if given.ndim != 1 or given.dtype.kind not in "iuf" or given.dtype.itemsize > 8:
            raise InvalidInput(f"user numbers must be a 1-d array of whole numbers, not {given.dtype} {given.shape}")
        whole = np.isfinite(given) & (given >= 0) & (given < self.plan.rows)
        if not (whole.all() and (given == np.floor(given)).all()):
            raise InvalidInput(f"user numbers must be whole numbers from 0 to {self.plan.rows - 1}: some are not")
        return given.astype(np.uint64)

    def _rows(self, rows: Any, n: int) -> Floats:
        try:
            table = np.asarray(rows, np.float64)
        except (TypeError, ValueError):
            raise InvalidInput("rows must be a table of numbers, (n, d)") from None
        if table.shape != (n, self.plan.dimension):
            raise InvalidInput(
                f"the plan takes rows of {self.plan.dimension} columns, one per user: ({n}, {self.plan.dimension}), "
                f"not {table.shape}"
            )
        if not np.isfinite(table).all():
            raise InvalidInput(
                "some cells are missing or infinite: fill them in by a public constant (who sends nothing for want of "
                "a cell tells that it is missing)"
            )
        return table


def encode(
    plan: Transcript | CollectionPlan | str | os.PathLike[str],
    rows: Any,
    users: Any,
    *,
    state: State | str | os.PathLike[str] | None = None,
    lifetime: float | None = None,
    lifetime_delta: float | None = None,
    noise: NoiseRng | None = None,
) -> Encoded:
    """Encode rows (n, d) of users (n,) into reports for a plan's open round, with the checks and warnings of
    ``cloister encode``; see ``PlanEncoder.encode``.

    Args:
        plan: a plan, a transcript, or the folder that holds them.
        state: a file that remembers reports; without it, encoding the same rows again spends again.
        lifetime, lifetime_delta: the most that a user of this state may ever spend over all plans; stored in the file,
            see ``State``.
        noise: for tests only.

    Warns:
        PrivacyWarning: each of ``cautions``. To refuse instead, before anything is drawn or charged:
            ``warnings.simplefilter("error", PrivacyWarning)``.
    """
    given = (lifetime, lifetime_delta) != (None, None)
    if given and (state is None or isinstance(state, State)):
        raise InvalidInput(
            "a lifetime needs a state that remembers what was spent: give state=FILE, or a State with its own lifetime"
        )
    kept = State(state, lifetime, lifetime_delta=lifetime_delta) if isinstance(state, (str, os.PathLike)) else state
    encoder = PlanEncoder(transcript_of(plan), noise=noise)
    encoder.check_memory(kept)
    for caution in cautions(encoder.transcript, kept):
        warnings.warn(caution, PrivacyWarning, stacklevel=2)
    return encoder.encode(rows, users, kept)


def cautions(transcript: Transcript, state: State | None) -> tuple[str, ...]:
    """Warnings to give before a plan is answered, whatever the plan says of itself: shown by ``encode`` and the command
    line."""
    found = loud(transcript.total, transcript.plan.rows)
    if state is not None or transcript.plan.length > 1:  # several rounds without a state are refused anyway
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
]
