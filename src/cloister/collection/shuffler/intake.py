"""Intake of users' messages, read once, sender by sender: who counts, and what is refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, final

import attrs
import numpy as np

from cloister.collection.intake.refusals import MESSAGES, Intake
from cloister.collection.intake.sent import SentFiles, Sieve, isolated
from cloister.collection.intake.sources import Given, Stream, Stretch
from cloister.collection.plan.costs import covered
from cloister.collection.plan.plan import CollectionPlan
from cloister.collection.wire.answers import layout_of
from cloister.collection.wire.messages import Messages, from_answers
from cloister.collection.wire.user_set import UserSet
from cloister.core.capabilities import ChecksWholeReports
from cloister.core.questions import Round
from cloister.core.shuffling import messages as each, roles
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
        self.sieve = SenderSieve(self.intake, round, plan.hash, plan.rows)

    @property
    def files(self) -> list[str]:
        """The files that are read."""
        return self._sources.files

    def accepted(self) -> Iterator[Messages]:
        """Yield the messages of all users who count, a bounded number at a time. Raises: InvalidInput: a file changes
        while it is read. Refused: something was refused under ``strict``."""
        seen = UserSet(self._users)
        for where in self._sources.opened():
            for sent in self.sieve.whole(where):
                self._progress(len(sent))
                yield from self.sieve.counted(sent, where.name, seen)


@final
class SenderSieve(Sieve):
    """Who counts among the senders of a round. Args: as for ``Sieve``; users (planned number)."""

    def __init__(self, intake: Intake, round: Round[Any], head: str, users: int) -> None:
        super().__init__(intake, round, head)
        self.users = users
        self._everybody = [list(numbers) for numbers in roles(round) if _everybody(round, numbers)]

    def afresh(self) -> SenderSieve:
        """A sieve of the same round that has counted nothing yet, and refuses without failing."""
        nothing = Intake(self.intake.kind, questions=[0] * len(self.intake.questions))
        return SenderSieve(nothing, self.round, self.head, self.users)

    def numbers(self, where: Stretch) -> Iterator[tuple[Ids, Bools]]:
        """The senders of what ``whole`` yields, and which of them the plan has."""
        for sent in self.whole(where):
            yield sent.numbers, sent.numbers < self.users

    def whole(self, where: Stretch | Stream) -> Iterator[Sent]:
        """What was sent in a file or stream, in pieces that split no sender."""
        step = max(1, BYTES // layout_of(self.round).bytes)
        for found in self.parsed(where):
            for start in range(0, len(found.users), step):
                users = found.users[start : start + step]
                yield Sent.of(*from_answers(users, found.answers[start : start + step], self.round))

    def counted(self, sent: Sent, path: str, seen: UserSet | None) -> Iterator[Messages]:
        """Yield the messages of the senders who count. Args: seen (numbers that count already; None: no number of these
        senders stands anywhere else)."""
        left = np.arange(len(sent.numbers))
        left = self.kept(left, sent.numbers < self.users, "out of range", path)
        left = self.kept(left, self._as_asked(sent)[left], "not as asked", path)

        def possible(who: Ints) -> Iterator[tuple[Ints, Messages]]:
            who = self.kept(who, self._possible(sent, who), "impossible", path)
            if len(who):
                yield who, sent.messages.of(sent.rows(who))

        if seen is not None:
            yield from self.once(seen, sent.numbers, left, possible, path)
            return
        for who, messages in possible(left) if len(left) else ():
            self.intake.accepted += len(who)
            yield messages

    def _as_asked(self, sent: Sent) -> Bools:
        """Which senders sent nothing that has no form, and an answer wherever everybody gives one. (An answer has room
        for one question of each drawing, and for all of its messages.)"""
        count, questions = len(sent.numbers), len(self.round.parts)
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
        good = np.ones(len(sent.numbers), bool)
        theirs, messages = sent.rows(who), sent.messages
        for j, part in enumerate(self.round.parts):
            if isinstance(part.channel, ChecksWholeReports):
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

    Args: messages (m), those of each sender together; good ((m,), which have the form of one); numbers (p,), of the
    senders; of_message ((m,), the position of each message's sender).
    """

    messages: Messages
    good: Bools
    numbers: Ids
    of_message: Ints

    @classmethod
    def of(cls, messages: Messages, good: Bools, owners: Ints) -> Sent:
        """Args: owners ((m,) ascending: where two differ, another report begins)."""
        assert messages.senders is not None
        starts = np.concatenate([[True], owners[1:] != owners[:-1]])[: len(owners)]
        return cls(messages, good, messages.senders[starts], np.cumsum(starts) - 1)

    def __len__(self) -> int:
        return len(self.messages)

    def rows(self, who: Ints | Bools) -> Bools:
        """Mask (m,) of the messages of these senders."""
        there = np.zeros(len(self.numbers), bool)
        there[who] = True
        return there[self.of_message]

    def some(self, who: Bools) -> Sent:
        """What these senders sent, given a mask (p,)."""
        rows = self.rows(who)
        return Sent(
            self.messages.of(rows), self.good[rows], self.numbers[who], (np.cumsum(who) - 1)[self.of_message[rows]]
        )


def _everybody(round: Round[Any], numbers: tuple[int, ...]) -> bool:
    """Whether every user is asked one of these questions."""
    shares = [share for share in (round.parts[j].user_share for j in numbers) if share is not None]
    return len(shares) < len(numbers) or covered(shares) >= 1.0
