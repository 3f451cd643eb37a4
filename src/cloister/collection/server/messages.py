"""A population of users whose messages a shuffler released, read from its files, which name no sender."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any, final

import attrs
import numpy as np

from cloister.collection.intake.refusals import SHUFFLED, Intake
from cloister.collection.intake.sent import SentFiles, Sieve, isolated
from cloister.collection.wire.columns import plan_of
from cloister.collection.wire.listing import Unusable, is_bytes
from cloister.collection.wire.messages import Messages, from_batch, schema, shuffle_of, widest
from cloister.core.encoding import Progress, absorb, keep_memory, merge_summaries
from cloister.core.errors import InvalidInput
from cloister.core.questions import Round
from cloister.core.randomness import NoiseRng
from cloister.core.shuffling import messages as each, roles
from cloister.core.types import Ints


@final
class ShuffledMessages(SentFiles):
    """Shuffled messages in files, summed as they are read.

    Memory: the oracles' summaries and a bounded number of messages.

    Guarantee: files count only if all those of one shuffle are there, each once and readable to its end. A message
    counts only if an encoder of this round could have sent it. Whether one user sent two was for the shuffler to check:
    senders are unknown here, and users are counted by the number of messages that each sends. Summaries are exact
    integers, so the order of messages does not matter.
    """

    kind = SHUFFLED

    def gather(self, round: Round[Any], rng: NoiseRng) -> tuple[Any, ...]:
        """Sum the messages of the round; draws no randomness.

        Raises: InvalidInput: files are missing, too many, damaged, or of another plan; or no message can be used.
            Refused: something was refused under ``strict``.
        """
        self.intake, files = self._nothing(len(round.parts)), self._sources.files
        if not self._sources.only_files:
            raise InvalidInput(
                f"streams and bytes are {_UNUSABLE['no reports']}: give what 'cloister shuffle' released"
            )
        _whole(files, self._head)
        if self._engine.elsewhere:
            files = [os.path.abspath(path) for path in files]
        count = MessageCount(round, self._head, None if self._engine.apart else self._progress)
        totals = count.nothing()
        for summaries, intake, read in self._engine.run(count, files):
            self.intake.add(intake, files)
            totals = merge_summaries(totals, summaries)
            if self._engine.apart:
                self._progress(read)
        self.intake.accepted = _people(round, self.intake.questions)
        if not self.intake.accepted:
            raise InvalidInput("; ".join(["no message can be used", *self.intake.lines()]))
        return totals


@final
@attrs.frozen
class MessageCount:
    """Sums the messages of a file. Args: round, head (its name), told (called with the number of messages read)."""

    round: Round[Any]
    head: str
    told: Progress | None = None

    def nothing(self) -> tuple[Any, ...]:
        """Summaries of no message."""
        nobody = Messages(np.empty(0, np.uint16), np.empty((0, widest(self.round)), np.uint8))
        return absorb(self.round, tuple(nobody.report(j, self.round) for j in range(len(self.round.parts))))

    def __call__(self, path: str) -> tuple[tuple[Any, ...], Intake, int]:
        """Summaries of a file's messages, what was accepted and refused, and how many messages were read. Raises:
        InvalidInput: it is damaged, or no file of this round."""
        from cloister.collection.wire.files import batches

        keep_memory()
        sieve = Sieve(Intake(SHUFFLED, questions=[0] * len(self.round.parts)), self.round, self.head)
        totals, read = list(self.nothing()), 0
        try:
            for batch in batches(path, schema(self.round, self.head, senders=False)):
                messages, good = from_batch(batch, self.round)
                rows = sieve.kept(np.arange(len(messages)), good, "not as asked", path)
                for j in range(len(totals)):
                    for summary in self._absorbed(sieve.intake, messages, rows[messages.questions[rows] == j], j, path):
                        totals[j] = totals[j].merge(summary)
                read += len(messages)
                if self.told is not None:
                    self.told(len(messages))
        except Unusable as error:
            raise InvalidInput(f"'{path}' is {_UNUSABLE[error.reason]}: get the shuffler's files again") from None
        return tuple(totals), sieve.intake, read

    def _absorbed(self, intake: Intake, messages: Messages, rows: Ints, j: int, path: str) -> Iterator[Any]:
        """Yield summaries of these messages to question j, without the impossible ones."""

        def read(some: Ints) -> Any:
            return self.round.parts[j].channel.absorb(messages.of(some).report(j, self.round))

        for some, summary in isolated(rows, read) if len(rows) else ():
            if summary is None:
                intake.refuse("impossible", 1, path)
            else:
                intake.questions[j] += len(some)
                yield summary


_UNUSABLE = {
    "another plan": "of another plan",
    "no reports": "no file of shuffled messages of this form",
    "damaged": "damaged or cut short",
}


def _whole(files: Sequence[str], plan: str) -> None:
    """Raises: InvalidInput unless these are all the files of one shuffle of the plan's messages, each once."""
    found = dict[int, str]()
    name = count = None
    for path in files:
        if is_bytes(path):
            raise InvalidInput(
                f"'{path}' holds messages as devices send them: run 'cloister shuffle' on them first, on the "
                f"shuffler's machine, and give what it releases"
            )
        metadata = _metadata(path)
        place = shuffle_of(metadata.metadata or {})
        if place is None or plan_of(metadata) is None:
            raise InvalidInput(f"'{path}' is {_UNUSABLE['no reports']}: give what 'cloister shuffle' released")
        if plan_of(metadata) != plan:
            raise InvalidInput(f"'{path}' is {_UNUSABLE['another plan']}")
        if (name, count) not in ((None, None), (place[0], place[2])):
            raise InvalidInput(
                f"'{path}' and '{files[0]}' are of different shuffles: a person could be in both. Give the files of one"
            )
        name, number, count = place
        if number in found:
            raise InvalidInput(f"'{path}' and '{found[number]}' are one file twice: its messages would be doubled")
        found[number] = path
    if count is not None and len(found) != count:
        raise InvalidInput(f"these are {len(found)} of the {count} files of the shuffle: the others are missing")


def _metadata(path: str) -> Any:
    import pyarrow.parquet

    try:
        return pyarrow.parquet.read_schema(path)
    except Exception:  # a foreign decoder may raise anything: the file cannot be read
        raise InvalidInput(f"'{path}' is {_UNUSABLE['damaged']}: get the shuffler's files again") from None


def _people(round: Round[Any], messages: Sequence[int]) -> int:
    """Number of users who sent these messages: in each group of questions, every user sends those of one role."""
    return max(sum(messages[j] // each(round.parts[j]) for j in numbers) for numbers in roles(round))
