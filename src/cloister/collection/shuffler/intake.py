"""Intake of users' messages, read once, sender by sender: who counts, and what is refused."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, final

import attrs
import numpy as np

from cloister.collection.intake.sources import Given, Stream, Stretch
from cloister.collection.intake.validator import MESSAGES, Intake, Origin, ReportValidator, SentFiles, isolated
from cloister.collection.plan.costs import covered
from cloister.collection.plan.plan import CollectionPlan
from cloister.collection.wire.answers import Packed, layout_of
from cloister.collection.wire.messages import Messages, from_answers
from cloister.collection.wire.user_set import UserSet
from cloister.core.questions import Round
from cloister.core.shuffling import in_messages, messages as each, roles
from cloister.core.types import Bools, Ids, Ints
from cloister.rows.workers.engine import Engine

BYTES = 2**24
"""Bytes of answers that are unpacked at once."""


@final
class Senders(SentFiles):
    """A plan's messages, in which each sender's messages stand together.

    A user counts once: for the first complete set of messages that the plan asks of her. Args: round (the plan's); the
    others as for ``SentFiles``.
    """

    kind = MESSAGES

    def __init__(
        self,
        given: Given,
        plan: CollectionPlan,
        round: Round[Any],
        strict: bool,
        progress: Callable[[int], None],
        engine: Engine | None = None,
    ) -> None:
        super().__init__(given, plan.hash, plan.rows, strict, progress, engine=engine)
        self.validator = SenderSieve(self.intake, round, plan.hash, plan.rows)

    @property
    def files(self) -> list[str]:
        """The files that are read."""
        return self._sources.files

    def accepted(self) -> Iterator[Messages]:
        """Yield the messages of all users who count, a bounded number at a time. Raises: InvalidInput: a file changes
        while it is read. Refused: something was refused under ``strict``."""
        seen = UserSet(self._users)
        for sent, origin in self.validator.pieces(self._sources.opened()):
            self._progress(len(sent))
            yield from self.validator.counted(sent, origin, seen)


@final
class SenderSieve(ReportValidator):
    """Who counts among the senders of a round. Args: as for ``ReportValidator``; users (planned number)."""

    def __init__(self, intake: Intake, round: Round[Any], head: str, users: int) -> None:
        super().__init__(intake, round, head)
        self.users = users
        self._everybody = [list(numbers) for numbers in roles(round) if _everybody(round, numbers)]

    def pieces(self, some: Iterable[Stretch | Stream]) -> Iterator[tuple[Sent, str]]:
        """What was sent, in pieces that split no sender, and the file of each."""
        step = max(1, BYTES // layout_of(self.round).bytes)
        for where in some:
            for found in self.parsed(where):
                for start in range(0, len(found.users), step):
                    rows = slice(start, start + step)
                    yield Sent.of(found.users[rows], found.answers[rows], self.round), where.name

    def counted(self, sent: Sent, origin: Origin, seen: UserSet | None) -> Iterator[Messages]:
        """Yield the messages of the senders who count. Args: seen (numbers that count already; None: no number of these
        senders stands anywhere else)."""
        left = np.arange(len(sent.users))
        left = self.kept(left, sent.users < self.users, "out of range", origin)
        left = self.kept(left, self._as_asked(sent)[left], "not as asked", origin)
        left = left[sent.said[left]]  # whom the draw asks nothing is refused nothing, and hides nobody

        def possible(who: Ints) -> Iterator[tuple[Ints, Messages]]:
            who = self.kept(who, self._possible(sent, who), "impossible", origin)
            if len(who):
                yield who, sent.messages.of(sent.rows(who))

        yield from self.once(seen, sent.users, left, possible, origin)

    def _as_asked(self, sent: Sent) -> Bools:
        """Which senders sent nothing that has no form, and an answer wherever everybody gives one: who answers nothing
        at all is refused, unless the draw may ask nobody. (An answer has room for one question of each drawing, and for
        all of its messages.)"""
        count, questions = len(sent.users), len(self.round.parts)
        # malformed messages are counted under a question number that does not exist
        which = np.where(sent.good, sent.messages.questions, questions).astype(np.int64)
        found = np.zeros((count, questions + 1), bool)
        found[sent.of_message, which] = True
        fine: Bools = ~found[:, questions]
        for numbers in self._everybody:
            fine &= found[:, numbers].any(axis=1)
        return fine

    def _possible(self, sent: Sent, who: Ints) -> Bools:
        """Which of the given senders (n,) could have sent their messages, in questions that need whole sets: there one
        impossible message spoils those of others. All other impossible messages are refused by the server."""
        good = np.ones(len(sent.users), bool)
        theirs, messages = sent.rows(who), sent.messages
        for j, part in enumerate(self.round.parts):
            if hasattr(in_messages(part.channel), "whole"):
                mine = np.flatnonzero(theirs & (messages.questions == j)).reshape(-1, each(part))
                asked = sent.of_message[mine[:, 0]]
                good[asked] &= self._whole(j, messages, mine)
        return good[who]

    def _whole(self, j: int, messages: Messages, mine: Ints) -> Bools:
        """Which senders' messages to question j, at the positions (n, each), are a whole set. Unreadable ones are
        isolated by division, so that they do not affect others."""
        channel: Any = self.round.parts[j].channel

        def read(some: Ints) -> Any:
            return channel.whole(messages.of(some.ravel()).report(j, self.round))

        return np.concatenate([np.zeros(1, bool) if good is None else good for _, good in isolated(mine, read)])


@final
@attrs.frozen(eq=False)
class Sent:
    """What some senders sent.

    Args: messages (m), those of each sender together; good ((m,), which have the form of one); users (p,), of the
    senders, also of those who sent no message; of_message ((m,), the position of each message's sender).
    """

    messages: Messages
    good: Bools
    users: Ids
    of_message: Ints

    @classmethod
    def of(cls, users: Ids, answers: Packed, round: Round[Any]) -> Sent:
        """What the answers (p, A) of users (p,) say."""
        messages, good, owners = from_answers(users, answers, round)
        return cls(messages, good, users, owners)

    def __len__(self) -> int:
        return len(self.messages)

    @property
    def said(self) -> Bools:
        """Which senders (p,) sent any message."""
        found = np.zeros(len(self.users), bool)
        found[self.of_message] = True
        return found

    def rows(self, who: Ints | Bools) -> Bools:
        """Mask (m,) of the messages of these senders."""
        there = np.zeros(len(self.users), bool)
        there[who] = True
        return there[self.of_message]

    def some(self, who: Bools) -> Sent:
        """What these senders sent, given a mask (p,)."""
        rows = self.rows(who)
        return Sent(
            self.messages.of(rows), self.good[rows], self.users[who], (np.cumsum(who) - 1)[self.of_message[rows]]
        )


def _everybody(round: Round[Any], numbers: tuple[int, ...]) -> bool:
    """Whether every user is asked one of these questions."""
    shares = [share for share in (round.parts[j].user_share for j in numbers) if share is not None]
    return len(shares) < len(numbers) or covered(shares) >= 1.0
