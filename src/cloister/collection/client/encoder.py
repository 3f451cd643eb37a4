"""Encoder: turns a user's row into her report for a plan's open round.

    plan = read("plan/")
    reports = encode(plan, rows, users, state="mine.state")

Under Shuffled trust the output is messages for a shuffler, and the guarantee holds for the shuffler's release; the plan
states what a user's messages cost her without one.

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
from cloister.collection.plan.plan import CollectionPlan, read
from cloister.collection.plan.promise import weakness_warnings
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
"""Maximum bytes of answers drawn at once."""


@final
@attrs.frozen(eq=False)
class Encoded:
    """Encoded reports of one round, which may leave the user's machine.

    Attributes:
        plan: hash of the plan.
        head: name of the round: hash of everything published before it (for the first round, the plan's hash).
        users: (n,) ascending; the users whom this round asks anything.
        answers: (n, A) bytes, the reports without their users' numbers.
        round: the round that they answer.
    """

    plan: str
    head: str
    users: Ids
    answers: Packed = attrs.field(repr=False)
    round: Round[Any] = attrs.field(repr=False)

    @property
    def form(self) -> BatchForm:
        """Binary form of the reports. Raises: InvalidInput: the round is beyond the 255th."""
        return form_of(self.head, self.round)

    def to_bytes(self) -> bytes:
        """Return the reports as they are sent: a single one, or those of several users in batches."""
        if len(self.users) == 1:
            return self.form.report(int(self.users[0]), self.answers[0].tobytes())
        return self.to_batches()

    def to_batches(self) -> bytes:
        """Return the reports as in a file, in as few batches as possible."""
        return b"".join(self.form.batches(self.users, self.answers))

    @property
    def reports(self) -> tuple[Any, ...]:
        """Reports, one per question, each of the users who were asked that question."""
        if self.round.trust is Shuffled:
            messages = self.messages
            return tuple(messages.report(j, self.round) for j in range(len(self.round.parts)))
        return layout_of(self.round).reports(self.users, self.answers)

    @property
    def messages(self) -> Messages:
        """Messages for the shuffler, under Shuffled trust."""
        return from_answers(self.users, self.answers, self.round)[0]

    def columns(self) -> dict[str, AnyArray]:
        """Return arrays by name: q0.users, q0.answers, ... with an entry for each user who answers that question."""
        return {
            f"q{j}.{name}": values for j, report in enumerate(self.reports) for name, values in report.columns().items()
        }


@final
class PlanEncoder:
    """Encoder for a plan's open round; prepared once, used for many rows.

    Args:
        plan: a plan from ``read`` while its first round is open; later, a transcript with the answers published since.
        noise: generator for tests only: reports made with repeatable noise protect nobody.

    Raises: CloisterError: the plan does not match its own digests and costs, or cannot be answered on this machine.
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
            state: state that remembers reports and spending.

        Raises:
            InvalidInput: unusable rows or users.
            BudgetExceeded: some user has too little budget left. No report was made for anybody.
        """
        ids = self.users(users)
        table = self._rows(rows, len(ids))
        order = np.argsort(ids, kind="stable")
        ids, table = ids[order], table[order]
        if (ids[1:] == ids[:-1]).any():
            raise InvalidInput("a user number occurs twice: give each user one row")
        mask = self.is_asked(ids)
        ids, table = ids[mask], table[mask]
        self.check_state(state)
        if state is None:
            return self.wrap(ids, self.draw(table, ids))
        if self._noise.seeded:
            raise InvalidInput("reports of repeatable noise are not private, so they are not remembered: give no state")
        state.charge(self.transcript, [ids])
        return self.wrap(ids, self.recall_or_draw(ids, table, state))

    def is_asked(self, users: Ids) -> Bools:
        """Return which users (n,) this round may ask: public. Under Shuffled trust all: each draws her questions."""
        if self.round.trust is Shuffled:
            return np.ones(len(users), bool)
        mask: Bools = np.logical_or.reduce(list(layout_of(self.round).asked_masks(users)))
        return mask

    def check_state(self, state: State | None) -> None:
        """Raise InvalidInput if a plan of several rounds has no state."""
        # it remembers each user's answered rounds, and under which published answers they were answered
        if state is None and self.plan.length > 1 and not self._noise.seeded:
            raise InvalidInput(
                f"this plan has {self.plan.length} rounds: give a state that remembers their reports (--state FILE)"
            )

    def wrap(self, users: Ids, answers: Packed) -> Encoded:
        """Wrap the answers of ascending users (n,), read-only from here on."""
        answers = answers.view()
        answers.flags.writeable = False
        return Encoded(self.plan.hash, self.transcript.head, users, answers, self.round)

    def draw(self, rows: Floats, users: Ids) -> Packed:
        """Draw fresh answers (n, A) for rows (n, d) of ascending users (n,). Every call spends budget."""
        layout = layout_of(self.round)
        answers = layout.empty(len(users))
        step = max(1, min(chunk_rows(self.plan.dimension), BYTES // self.width))
        for start in range(0, len(users), step):
            piece = slice(start, start + step)
            layout.fill(answers[piece], encode_owned(self.round, rows[piece], users[piece], self._noise))
        return answers

    def recall_or_draw(self, users: Ids, rows: Floats, state: State) -> Packed:
        """Return answers (n, A) of charged ascending users (n,): those in the state, and new ones for the others."""
        return state.fill(self.transcript, users, self.width, lambda which: self.draw(rows[which], users[which]))

    def users(self, users: Any) -> Ids:
        """Return user numbers (n,) as uint64. Raises: InvalidInput: they are not whole numbers of this plan."""
        numbers = np.asarray(users)
        if numbers.ndim != 1 or numbers.dtype.kind not in "iuf" or numbers.dtype.itemsize > 8:
            raise InvalidInput(
                f"user numbers must be a 1-d array of whole numbers, not {numbers.dtype} {numbers.shape}"
            )
        within = np.isfinite(numbers) & (numbers >= 0) & (numbers < self.plan.rows)
        if not (within.all() and (numbers == np.floor(numbers)).all()):
            raise InvalidInput(f"user numbers must be whole numbers from 0 to {self.plan.rows - 1}: some are not")
        return numbers.astype(np.uint64)

    def _rows(self, rows: Any, n: int) -> Floats:
        try:
            table = np.asarray(rows, np.float64)
        except (TypeError, ValueError):
            raise InvalidInput("rows must be a table of numbers, (n, d)") from None
        if table.shape != (n, self.plan.dimension):
            raise InvalidInput(
                f"the plan takes a row of {self.plan.dimension} columns per user, ({n}, {self.plan.dimension}), not "
                f"{table.shape}"
            )
        if not np.isfinite(table).all():
            raise InvalidInput(
                "some cells are missing or infinite: fill them with a public constant (sending no report would reveal "
                "that a cell is missing)"
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
    """Encode rows into reports for a plan's open round, with the checks and warnings of ``cloister encode``.

    Args:
        plan: a plan, a transcript, or the folder that holds them.
        rows: (n, d), as for ``PlanEncoder.encode``.
        users: (n,), as for ``PlanEncoder.encode``.
        state: file that remembers reports; without it, encoding the same rows again spends again.
        lifetime: maximum epsilon that a user of this state may ever spend over all plans, see ``State``.
        lifetime_delta: the same for delta.
        noise: generator for tests only.

    Warns:
        PrivacyWarning: each of ``privacy_warnings``. To refuse instead, before anything is drawn or charged:
            ``warnings.simplefilter("error", PrivacyWarning)``.
    """
    has_lifetime = (lifetime, lifetime_delta) != (None, None)
    if has_lifetime and (state is None or isinstance(state, State)):
        raise InvalidInput("a lifetime needs a state: give state=FILE, or a State with its own lifetime")
    store = State(state, lifetime, lifetime_delta=lifetime_delta) if isinstance(state, (str, os.PathLike)) else state
    encoder = PlanEncoder(transcript_of(plan), noise=noise)
    encoder.check_state(store)
    for warning in privacy_warnings(encoder.transcript, store):
        warnings.warn(warning, PrivacyWarning, stacklevel=2)
    return encoder.encode(rows, users, store)


def privacy_warnings(transcript: Transcript, state: State | None) -> tuple[str, ...]:
    """Return the warnings to give before a plan is answered, whatever the plan says of itself."""
    texts = weakness_warnings(transcript.total, transcript.plan.rows)
    if state is not None or transcript.plan.length > 1:  # several rounds without a state are refused anyway
        return texts
    return (*texts, "no state remembers these reports: encoding the same rows again, under any plan, spends again")


__all__ = [
    "CollectionPlan",
    "Encoded",
    "PlanEncoder",
    "PrivacyWarning",
    "State",
    "Transcript",
    "encode",
    "privacy_warnings",
    "read",
    "transcript_of",
]
