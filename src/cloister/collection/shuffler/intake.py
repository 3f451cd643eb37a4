"""Intake of users' messages, read once, sender by sender: who counts, and what is refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, final

import attrs
import numpy as np

from cloister.collection.intake.refusals import MESSAGES
from cloister.collection.intake.sent import SentFiles, Sieve, isolated
from cloister.collection.intake.sources import Given, Stream, Stretch
from cloister.collection.plan.costs import covered
from cloister.collection.plan.plan import CollectionPlan
from cloister.collection.wire.answers import layout_of
from cloister.collection.wire.listing import is_bytes
from cloister.collection.wire.messages import Messages, from_answers, from_batch, schema
from cloister.collection.wire.user_set import UserSet
from cloister.core.capabilities import ChecksWholeReports
from cloister.core.questions import Round
from cloister.core.shuffling import messages as each, roles
from cloister.core.types import Bools, Ids, Ints

BYTES = 2**24
"""Bytes of answers that are unpacked at once."""


@final
class Senders(SentFiles):
    """Files of a plan's messages, in which each sender's messages stand together.

    A user counts once: for the first complete set of messages that the plan asks of her. Args: round (the plan's); the
    others as for ``SentFiles``.
    """

    kind = MESSAGES

    def __init__(
        self, given: Given, plan: CollectionPlan, round: Round[Any], strict: bool,
        progress: Callable[[int], None],
    ) -> None:  # fmt: skip
        super().__init__(given, plan.hash, plan.rows, strict, progress)
        self._round, self._sieve = round, Sieve(self.intake, round, plan.hash)
        self._asked = [(numbers, _everybody(round, numbers)) for numbers in roles(round)]
        self._most = sum(max(each(round.parts[j]) for j in numbers) for numbers, _ in self._asked)
        self._seen = UserSet(plan.rows)

    def accepted(self) -> Iterator[Messages]:
        """Yield the messages of all users who count, a bounded number at a time. Raises: InvalidInput: a file changes
        while it is read. Refused: something was refused under ``strict``."""
        for where in self._sources.opened():
            files = isinstance(where, Stretch) and not is_bytes(where.name)
            for messages, good, people in self._whole_senders(where.name) if files else self._answers(where):
                yield from self._counted(messages, good, people, where.name)

    def _answers(self, where: Stretch | Stream) -> Iterator[tuple[Messages, Bools, People]]:
        """Yield messages that were sent as bytes, with which of them have the form of one, and their senders."""
        for found in self._sieve.parsed(where):
            step = max(1, BYTES // layout_of(self._round).bytes)
            for start in range(0, len(found.users), step):
                users = found.users[start : start + step]
                messages, good, owners = from_answers(users, found.answers[start : start + step], self._round)
                self._progress(len(messages))
                yield messages, good, People.of(messages, owners)

    def _whole_senders(self, path: str) -> Iterator[tuple[Messages, Bools, People]]:
        """Yield the messages of a Parquet or Arrow file in pieces that split no sender, with which of them have the
        form of a message, and their senders."""
        held, goods = list[Messages](), list[Bools]()
        for batch in self._sieve.batches(path, schema(self._round, self._head, senders=True)):
            messages, good = from_batch(batch, self._round)
            self._progress(len(messages))
            if not len(messages):
                continue
            last = int(np.flatnonzero(_starts(messages))[-1])
            if held and last == 0 and _senders(held[-1])[-1] == _senders(messages)[0]:
                if sum(map(len, held)) <= self._most:  # a sender of too many is refused whatever the rest holds
                    held.append(messages)
                    goods.append(good)
                continue
            before, after = slice(0, last), slice(last, None)
            yield _of_senders(Messages.joined([*held, messages.of(before)]), np.concatenate([*goods, good[before]]))
            held, goods = [messages.of(after)], [good[after]]
        if held:
            yield _of_senders(Messages.joined(held), np.concatenate(goods))

    def _counted(self, messages: Messages, good: Bools, people: People, path: str) -> Iterator[Messages]:
        """Yield the messages of the senders who count, given complete senders."""
        if not len(messages):
            return
        left = np.arange(len(people.numbers))
        left = self._sieve.kept(left, people.numbers < self._users, "out of range", path)
        left = self._sieve.kept(left, self._as_asked(messages, good, people)[left], "not as asked", path)

        def possible(who: Ints) -> Iterator[tuple[Ints, Messages]]:
            who = self._sieve.kept(who, self._possible(messages, people, who), "impossible", path)
            if len(who):
                yield who, messages.of(people.rows(who))

        yield from self._sieve.once(self._seen, people.numbers, left, possible, path)

    def _as_asked(self, messages: Messages, good: Bools, people: People) -> Bools:
        """Which senders sent the messages of exactly one role in every group of questions that asks everybody, at most
        one in other groups, and nothing else."""
        count, questions = len(people.numbers), len(self._round.parts)
        # malformed messages are counted under a question number that does not exist
        which = np.where(good, messages.questions, questions).astype(np.int64)
        sent = np.bincount(people.of_message * (questions + 1) + which, minlength=count * (questions + 1))
        sent = sent.reshape(count, questions + 1)
        fine = sent[:, questions] == 0
        for numbers, everybody in self._asked:
            mine = sent[:, list(numbers)]
            full = mine == np.array([each(self._round.parts[j]) for j in numbers])
            nothing = mine.sum(axis=1) == 0
            fine &= (((mine > 0).sum(axis=1) == 1) & full.any(axis=1)) | (nothing & (not everybody))
        answered: Bools = fine
        return answered

    def _possible(self, messages: Messages, people: People, who: Ints) -> Bools:
        """Which of the given senders (n,) could have sent their messages, in questions that need whole sets: there one
        impossible message spoils those of others. All other impossible messages are refused by the server."""
        good = np.ones(len(people.numbers), bool)
        theirs = people.rows(who)
        for j, part in enumerate(self._round.parts):
            if isinstance(part.channel, ChecksWholeReports):
                mine = np.flatnonzero(theirs & (messages.questions == j)).reshape(-1, each(part))
                asked = people.of_message[mine[:, 0]]
                good[asked] &= self._whole(j, messages, mine)
        return good[who]

    def _whole(self, j: int, messages: Messages, mine: Ints) -> Bools:
        """Which senders' messages to question j, at the positions (n, each), are a whole set. Unreadable ones are
        isolated by division, so that they do not affect others."""
        channel: Any = self._round.parts[j].channel

        def read(some: Ints) -> Any:
            return channel.whole(messages.of(some.ravel()).report(j, self._round))

        return np.concatenate([np.zeros(1, bool) if good is None else good for _, good in isolated(mine, read)])


@final
@attrs.frozen(eq=False)
class People:
    """The senders of some messages. Args: numbers (p,), of_message (m,): the position of each message's sender."""

    numbers: Ids
    of_message: Ints

    @classmethod
    def of(cls, messages: Messages, owners: Ints | None = None) -> People:
        """Args: owners ((m,) ascending: where two differ, another report begins. Default: the senders)."""
        starts = _starts(messages, owners)
        return cls(_senders(messages)[starts], np.cumsum(starts) - 1)

    def rows(self, who: Ints) -> Bools:
        """Mask (m,) of the messages of these senders."""
        there = np.zeros(len(self.numbers), bool)
        there[who] = True
        return there[self.of_message]


def _senders(messages: Messages) -> Ids:
    assert messages.senders is not None
    return messages.senders


def _of_senders(messages: Messages, good: Bools) -> tuple[Messages, Bools, People]:
    return messages, good, People.of(messages)


def _starts(messages: Messages, owners: Ints | None = None) -> Bools:
    """Mask (m,): which messages are the first of their sender, or owner."""
    of = _senders(messages) if owners is None else owners
    return np.concatenate([[True], of[1:] != of[:-1]])[: len(of)]


def _everybody(round: Round[Any], numbers: tuple[int, ...]) -> bool:
    """Whether every user is asked one of these questions."""
    shares = [share for share in (round.parts[j].user_share for j in numbers) if share is not None]
    return len(shares) < len(numbers) or covered(shares) >= 1.0
