"""Intake of users' messages, read once, sender by sender."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, final

import attrs
import numpy as np

from cloister.collection.intake.sources import FileRange, ReportInput, Stream
from cloister.collection.intake.validator import MESSAGES, Intake, Origin, ReportValidator, SentFiles, isolate_refused
from cloister.collection.plan.costs import union_length
from cloister.collection.plan.plan import CollectionPlan
from cloister.collection.wire.answers import Packed, layout_of
from cloister.collection.wire.messages import Messages, from_answers
from cloister.collection.wire.user_set import UserSet
from cloister.core.questions import Round
from cloister.core.shuffling import in_messages, messages as each, roles
from cloister.core.types import Bools, Ids, Ints
from cloister.rows.workers.engine import Engine

BYTES = 2**24
"""Bytes of answers unpacked at once."""


@final
class Senders(SentFiles):
    """A plan's messages, with those of each sender together.

    A user counts once, for the first complete set of messages that the plan asks of her.
    """

    kind = MESSAGES

    def __init__(
        self,
        reports: ReportInput,
        plan: CollectionPlan,
        round: Round[Any],
        strict: bool,
        progress: Callable[[int], None],
        engine: Engine | None = None,
    ) -> None:
        super().__init__(reports, plan.hash, plan.rows, strict, progress, engine=engine)
        self.validator = SenderValidator(self.intake, round, plan.hash, plan.rows)

    @property
    def files(self) -> list[str]:
        """Paths of the files."""
        return self._sources.files

    def accepted(self) -> Iterator[Messages]:
        """Yield the messages of all users who count, a bounded number at a time.

        Raises: InvalidInput: a file changes while it is read. Refused: something was refused under ``strict``.
        """
        counted_users = UserSet(self._users)
        for sent, origin in self.validator.pieces(self._sources.in_order()):
            self._progress(len(sent))
            yield from self.validator.accepted(sent, origin, counted_users)


@final
class SenderValidator(ReportValidator):
    """Validator of the senders of a round; ``users`` is the planned number of users."""

    def __init__(self, intake: Intake, round: Round[Any], head: str, users: int) -> None:
        super().__init__(intake, round, head)
        self.users = users
        self._compulsory = [list(numbers) for numbers in roles(round) if _is_compulsory(round, numbers)]

    def pieces(self, sources: Iterable[FileRange | Stream]) -> Iterator[tuple[Sent, str]]:
        """Yield messages in pieces that split no sender, with the file of each."""
        step = max(1, BYTES // layout_of(self.round).bytes)
        for source in sources:
            for parsed in self.parse(source):
                for start in range(0, len(parsed.users), step):
                    rows = slice(start, start + step)
                    yield Sent.of(parsed.users[rows], parsed.answers[rows], self.round), source.name

    def accepted(self, sent: Sent, origin: Origin, counted_users: UserSet | None) -> Iterator[Messages]:
        """Yield the messages of the senders who count, see ``first_per_user``."""
        senders = np.arange(len(sent.users))
        senders = self.filter_rows(senders, sent.users < self.users, "out of range", origin)
        senders = self.filter_rows(senders, self._as_asked(sent)[senders], "not as asked", origin)
        senders = senders[sent.nonempty[senders]]  # a user whom the draw asks nothing is not refused, but hides nobody

        def possible(senders: Ints) -> Iterator[tuple[Ints, Messages]]:
            senders = self.filter_rows(senders, self._possible(sent, senders), "impossible", origin)
            if len(senders):
                yield senders, sent.messages.take(sent.rows(senders))

        yield from self.first_per_user(counted_users, sent.users, senders, possible, origin)

    def _as_asked(self, sent: Sent) -> Bools:
        """Return which senders sent well-formed messages only, and answered each compulsory drawing.

        Their number is right then: an answer has room for one question of each drawing, and for all of its messages.
        """
        count, questions = len(sent.users), len(self.round.parts)
        # malformed messages are counted under a question number that does not exist
        numbers = np.where(sent.good, sent.messages.questions, questions).astype(np.int64)
        answered = np.zeros((count, questions + 1), bool)
        answered[sent.of_message, numbers] = True
        good: Bools = ~answered[:, questions]
        for drawing in self._compulsory:
            good &= answered[:, drawing].any(axis=1)
        return good

    def _possible(self, sent: Sent, senders: Ints) -> Bools:
        """Return which senders (n,) could have sent their messages, in questions that need complete sets.

        There one impossible message spoils those of others; all other impossible messages are refused by the server.
        """
        good = np.ones(len(sent.users), bool)
        mask, messages = sent.rows(senders), sent.messages
        for j, part in enumerate(self.round.parts):
            if hasattr(in_messages(part.channel), "whole"):
                positions = np.flatnonzero(mask & (messages.questions == j)).reshape(-1, each(part))
                good[sent.of_message[positions[:, 0]]] &= self._complete(j, messages, positions)
        return good[senders]

    def _complete(self, j: int, messages: Messages, positions: Ints) -> Bools:
        """Return which senders' messages to question j, at positions (n, each), are a complete set."""
        channel: Any = self.round.parts[j].channel

        def read(part: Ints) -> Any:
            return channel.whole(messages.take(part.ravel()).report(j, self.round))

        # unreadable messages must not affect those of others
        parts = isolate_refused(positions, read)
        return np.concatenate([np.zeros(1, bool) if good is None else good for _, good in parts])


@final
@attrs.frozen(eq=False)
class Sent:
    """Messages of some senders.

    Args:
        messages: m messages, those of each sender together.
        good: (m,) mask of the well-formed messages.
        users: (p,) senders, including those of no message.
        of_message: (m,) position of each message's sender.
    """

    messages: Messages
    good: Bools
    users: Ids
    of_message: Ints

    @classmethod
    def of(cls, users: Ids, answers: Packed, round: Round[Any]) -> Sent:
        """Return the messages in the answers (p, A) of users (p,)."""
        messages, good, owners = from_answers(users, answers, round)
        return cls(messages, good, users, owners)

    def __len__(self) -> int:
        return len(self.messages)

    @property
    def nonempty(self) -> Bools:
        """Mask (p,) of the senders of at least one message."""
        mask = np.zeros(len(self.users), bool)
        mask[self.of_message] = True
        return mask

    def rows(self, senders: Ints | Bools) -> Bools:
        """Return the mask (m,) of the messages of these senders."""
        mask = np.zeros(len(self.users), bool)
        mask[senders] = True
        return mask[self.of_message]

    def select(self, mask: Bools) -> Sent:
        """Return the messages of a mask (p,) of the senders."""
        rows = self.rows(mask)
        return Sent(
            self.messages.take(rows), self.good[rows], self.users[mask], (np.cumsum(mask) - 1)[self.of_message[rows]]
        )


def _is_compulsory(round: Round[Any], numbers: tuple[int, ...]) -> bool:
    """Return True if every user is asked one of these questions."""
    shares = [share for share in (round.parts[j].user_share for j in numbers) if share is not None]
    return len(shares) < len(numbers) or union_length(shares) >= 1.0
