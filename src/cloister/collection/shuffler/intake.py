"""People's messages, read once, person by person: whose count, and what is refused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, final

import attrs
import numpy as np

from cloister.collection.plan.costs import covered
from cloister.collection.plan.plan import PublishedPlan
from cloister.collection.wire.messages import Messages, from_batch, schema
from cloister.collection.wire.user_set import TRIES, Roll, first_of
from cloister.core.capabilities import Sorting
from cloister.core.errors import MissingExtra, Refused
from cloister.core.questions import Round
from cloister.core.shuffling import messages as each
from cloister.core.shuffling import roles
from cloister.core.types import Bools, Ids, Ints

SPLIT = 4
"""Into how many parts people are divided, one of whom has sent what cannot be read."""

REASONS = {
    "another plan": "files that answer another plan",
    "no messages": "files that hold no messages of this form",
    "damaged": "files that are damaged or cut short",
    "out of range": "people whose numbers the plan does not have",
    "not as asked": "people who sent too few messages, too many, or such as answer no question",
    "impossible": "people with a message that no encoder of this plan sends",
    "duplicate": "people who have sent messages already",
}
"""Why something is refused, and what it then is."""


@final
@attrs.define
class Tally:
    """What was refused. Args: refused (files or people per reason), first (the file where each was met first), files, others (files in
    the folders that have another extension)."""

    refused: Counter[str] = attrs.field(factory=Counter)
    first: dict[str, str] = attrs.field(factory=dict)
    files: int = 0
    others: int = 0

    def as_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {"read": self.files, "refused": {reason: self.refused[reason] for reason in REASONS}}

    def lines(self) -> list[str]:
        """One line per reason, for people."""
        found = [
            f"refused {self.refused[r]:,} {words} (the first: '{self.first[r]}')"
            for r, words in REASONS.items()
            if self.refused[r]
        ]
        return found + ([f"left alone {self.others:,} files of another kind"] if self.others else [])


@final
class Senders:
    """Files of messages of a plan, whose senders stand together.

    A file counts only if it can be read to its end. A person counts once: the first time that she has sent what the plan asks for, files
    being read in the order of their names. What was refused does not use her number up, unless it was sent ``TRIES`` times at once.

    Args:
        paths: folders, files or patterns.
        round: of the plan.
        strict: fail at the first refusal.
        progress: told how many more messages were looked at.

    Attributes:
        tally: what was refused so far.
        people: how many were accepted so far.

    Raises:
        InvalidInput: there are no such files. MissingExtra: pyarrow is not installed.
    """

    def __init__(
        self, paths: str | Path | Sequence[str | Path], plan: PublishedPlan, round: Round[Any], strict: bool,
        progress: Callable[[int], None],
    ) -> None:  # fmt: skip
        try:
            from cloister.collection.wire.files import listed
        except ImportError as error:
            raise MissingExtra("pyarrow", "files", "reading messages") from error
        self._files, others = listed(paths)
        self._round, self._strict, self._progress = round, strict, progress
        self._schema = schema(round, plan.hash, senders=True)
        self._asked = [(numbers, _everybody(round, numbers)) for numbers in roles(round)]
        self._most = sum(max(each(round.parts[j]) for j in numbers) for numbers, _ in self._asked)
        self._seen = Roll(plan.rows)
        self.tally = Tally(files=len(self._files), others=others)

    @property
    def people(self) -> int:
        return self._seen.count

    def accepted(self) -> Iterator[Messages]:
        """The messages of everybody who counts, a bounded number at a time.

        Raises:
            InvalidInput: a file changes while it is read. Refused: something was refused, and ``strict`` does not allow that.
        """
        from cloister.collection.wire.files import Unusable

        for path in self._files:
            try:
                for messages, good in self._whole_senders(path):
                    yield from self._counted(messages, good, path)
            except Unusable as error:
                self._refuse("no messages" if error.reason == "no reports" else error.reason, 1, path)

    def _whole_senders(self, path: str) -> Iterator[tuple[Messages, Bools]]:
        """A file's messages, in pieces that part no sender from her messages, and which of them could be messages."""
        from cloister.collection.wire.files import batches

        held, goods = list[Messages](), list[Bools]()
        for batch in batches(path, self._schema):
            messages, good = from_batch(batch, self._round)
            self._progress(len(messages))
            if not len(messages):
                continue
            last = _last_start(messages)
            if held and last == 0 and _sender(held[-1], -1) == _sender(messages, 0):
                if (
                    sum(map(len, held)) <= self._most
                ):  # of somebody who has sent too many already, the rest says nothing more
                    held.append(messages)
                    goods.append(good)
                continue
            before, after = slice(0, last), slice(last, None)
            yield Messages.joined([*held, messages.of(before)]), np.concatenate([*goods, good[before]])
            held, goods = [messages.of(after)], [good[after]]
        if held:
            yield Messages.joined(held), np.concatenate(goods)

    def _counted(self, messages: Messages, good: Bools, path: str) -> Iterator[Messages]:
        """The messages of those who count, among whole senders."""
        if not len(messages):
            return
        people = _People.of(messages)
        left = np.arange(len(people.numbers))
        left = self._kept(left, people.numbers < self._seen.size, "out of range", path)
        left = self._kept(left, self._as_asked(messages, good, people)[left], "not as asked", path)
        for _ in range(TRIES):
            if not len(left):
                break
            left = self._kept(left, ~self._seen.has(people.numbers[left]), "duplicate", path)
            first = first_of(people.numbers[left])
            now, left = left[first], left[~first]
            now = self._kept(now, self._possible(messages, people, now), "impossible", path)
            if len(now):
                self._seen.add(people.numbers[now])
                yield messages.of(people.rows(now))
        left = self._kept(
            left, ~self._seen.has(people.numbers[left]), "duplicate", path
        )  # of more than there are tries
        self._kept(left, np.zeros(len(left), bool), "impossible", path)

    def _as_asked(self, messages: Messages, good: Bools, people: _People) -> Bools:
        """Who has sent one of her roles' messages for every group of questions, and nothing else."""
        count, questions = len(people.numbers), len(self._round.parts)
        # what is no message counts for a question that nobody has
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

    def _possible(self, messages: Messages, people: _People, who: Ints) -> Bools:
        """Which of those people (n,), who sent as many messages as asked, could have sent them, where one could spoil the others'.

        An impossible message that means something by itself is refused by the server.
        """
        good = np.ones(len(people.numbers), bool)
        theirs = people.rows(who)
        for j, part in enumerate(self._round.parts):
            if isinstance(part.channel, Sorting):
                mine = np.flatnonzero(theirs & (messages.questions == j)).reshape(-1, each(part))
                asked = people.of_message[mine[:, 0]]
                good[asked] &= self._whole(j, messages, mine)
        return good[who]

    def _whole(self, j: int, messages: Messages, mine: Ints) -> Bools:
        """Which people's messages to question j, at the positions (n, each), are a whole set. Divided until what cannot even be read
        together with others' is alone: nobody's nonsense stops the others."""
        channel: Any = self._round.parts[j].channel
        try:
            good: Bools = channel.whole(messages.of(mine.ravel()).report(j, self._round))
        except Refused:
            if len(mine) == 1:
                return np.zeros(1, bool)
            parts = np.array_split(mine, min(SPLIT, len(mine)))
            return np.concatenate([self._whole(j, messages, part) for part in parts])
        return good

    def _kept(self, who: Ints, good: Bools, reason: str, path: str) -> Ints:
        if not good.all():
            self._refuse(reason, int((~good).sum()), path)
        return who[good]

    def _refuse(self, reason: str, count: int, path: str) -> None:
        self.tally.refused[reason] += count
        self.tally.first.setdefault(reason, path)
        if self._strict:
            raise Refused(f"'{path}': refused {REASONS[reason]}")


@final
@attrs.frozen(eq=False)
class _People:
    """Who has sent a piece of messages. Args: numbers (p,), starts (p + 1,) first message of each, of_message (m,) whose each one is."""

    numbers: Ids
    starts: Ints
    of_message: Ints

    @classmethod
    def of(cls, messages: Messages) -> _People:
        senders = messages.senders
        assert senders is not None
        changes = senders[1:] != senders[:-1]
        starts = np.concatenate([[0], np.flatnonzero(changes) + 1, [len(senders)]])
        return cls(senders[starts[:-1]], starts, np.concatenate([[0], np.cumsum(changes)]).astype(np.int64))

    def rows(self, who: Ints) -> Bools:
        """Which messages (m,) are of these people."""
        there = np.zeros(len(self.numbers), bool)
        there[who] = True
        return there[self.of_message]


def _sender(messages: Messages, at: int) -> int:
    assert messages.senders is not None
    return int(messages.senders[at])


def _last_start(messages: Messages) -> int:
    """Where the messages of the last sender begin."""
    senders = messages.senders
    assert senders is not None
    changes = np.flatnonzero(senders[1:] != senders[:-1])
    return int(changes[-1]) + 1 if len(changes) else 0


def _everybody(round: Round[Any], numbers: tuple[int, ...]) -> bool:
    """Whether everybody is asked one of these questions."""
    shares = [share for share in (round.parts[j].among for j in numbers) if share is not None]
    return len(shares) < len(numbers) or covered(shares) >= 1.0
