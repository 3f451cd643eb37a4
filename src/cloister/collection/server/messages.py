"""People whose messages a shuffler released: files of them, without senders, are all that the server has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, final

import numpy as np

from cloister.collection.server.reports import SPLIT, Intake
from cloister.collection.wire.messages import Messages, from_batch, schema, shuffle_of
from cloister.collection.wire.reports import plan_of
from cloister.core.encoding import Progress, absorb, keep_memory
from cloister.core.errors import InvalidInput, MissingExtra, Refused
from cloister.core.questions import Round
from cloister.core.randomness import NoiseRng
from cloister.core.shuffling import messages as each
from cloister.core.shuffling import roles
from cloister.core.types import Ints

if TYPE_CHECKING:
    from cloister.collection.wire.files import Path

WORDS = {
    "not as asked": "messages that answer no question, or more than one",
    "impossible": "messages with an answer that no encoder of this plan sends",
}


@final
class Released:
    """Shuffled messages in files, added up as they are read.

    Memory: what the oracles' summaries take and a bounded number of messages.

    Guarantee: files count only if all those of one shuffle are there, each once and readable to its end. A message counts only if an
    encoder of this round could have sent it; nobody can tell any more who sent it or whether she sent two, which was the shuffler's to
    see. Summaries are exact integers: the result does not depend on the order.

    Args:
        paths: folders, files or patterns.
        plan: hash of the plan, as files bear it.
        users: how many are planned.
        strict: fail at the first refusal.
        progress: told how many more messages were looked at.
        earlier: names of rounds before, of which there are none.

    Attributes:
        intake: what the last ``gather`` met. ``accepted`` counts people, by how many messages each sends.

    Raises:
        InvalidInput: there are no such files. MissingExtra: pyarrow is not installed.
    """

    def __init__(
        self, paths: Path | Sequence[Path], plan: str, users: int, strict: bool = False, progress: Progress | None = None,
        earlier: Sequence[str] = (),
    ) -> None:  # fmt: skip
        try:
            from cloister.collection.wire.files import listed
        except ImportError as error:
            raise MissingExtra("pyarrow", "files", "reading messages") from error
        self._files, self._others = listed(paths)
        self._plan, self._users, self._strict = plan, users, strict
        self._progress = progress or (lambda n: None)
        self.intake = Intake()

    @property
    def people(self) -> int | None:
        """Who were accepted by the last ``gather``."""
        return self.intake.accepted or None

    def gather(self, round: Round[Any], rng: NoiseRng) -> tuple[Any, ...]:
        """Draws nothing.

        Raises:
            InvalidInput: files are missing, too many, damaged, or of another plan; or no message can be used.
            Refused: something was refused, and ``strict`` does not allow that.
        """
        from cloister.collection.wire.files import Unusable, batches

        keep_memory()
        self.intake = Intake(questions=[0] * len(round.parts), files=len(self._files), others=self._others)
        _whole(self._files, self._plan)
        totals = list(absorb(round, tuple(_nothing().report(j, round) for j in range(len(round.parts)))))
        for path in self._files:
            try:
                for batch in batches(path, schema(round, self._plan, senders=False)):
                    messages = self._sound(batch, round, path)
                    for j in range(len(round.parts)):
                        for summary in self._absorbed(
                            round, messages, np.flatnonzero(messages.questions == j), j, path
                        ):
                            totals[j] = totals[j].merge(summary)
                    self._progress(batch.num_rows)
            except Unusable as error:
                raise InvalidInput(f"'{path}' is {_UNUSABLE[error.reason]}: get the shuffler's files again") from None
        self.intake.accepted = _people(round, self.intake.questions)
        if not self.intake.accepted:
            raise InvalidInput("; ".join(["no message can be used", *self.intake.lines()]))
        return tuple(totals)

    def _sound(self, batch: Any, round: Round[Any], path: str) -> Messages:
        messages, good = from_batch(batch, round)
        if not good.all():
            self._refuse("not as asked", int((~good).sum()), path)
            messages = messages.of(good)
        return messages

    def _absorbed(self, round: Round[Any], messages: Messages, rows: Ints, j: int, path: str) -> list[Any]:
        """Summaries of these messages, divided until what no encoder sends is alone."""
        if not len(rows):
            return []
        try:
            summary = round.parts[j].channel.absorb(messages.of(rows).report(j, round))
        except Refused:
            if len(rows) == 1:
                self._refuse("impossible", 1, path)
                return []
            return [
                one for some in np.array_split(rows, SPLIT) for one in self._absorbed(round, messages, some, j, path)
            ]
        self.intake.questions[j] += len(rows)
        return [summary]

    def _refuse(self, reason: str, count: int, path: str) -> None:
        self.intake.refused[reason] += count
        self.intake.first.setdefault(reason, path)
        if self._strict:
            raise Refused(f"'{path}' has {WORDS[reason]}")


_UNUSABLE = {
    "another plan": "of another plan",
    "no reports": "no file of shuffled messages of this form",
    "damaged": "damaged or cut short",
}


def _whole(files: Sequence[str], plan: str) -> None:
    """Raises: InvalidInput unless these are the files of one shuffle of a plan's messages, each once."""
    found = dict[int, str]()
    name = count = None
    for path in files:
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
    except Exception:  # a foreign decoder: whatever it raises, the file cannot be read
        raise InvalidInput(f"'{path}' is {_UNUSABLE['damaged']}: get the shuffler's files again") from None


def _nothing() -> Messages:
    return Messages(np.empty(0, np.uint16), np.empty((0, 0), np.uint8))


def _people(round: Round[Any], messages: Sequence[int]) -> int:
    """How many people have sent these: each has one of the roles of a group of questions."""
    return max(sum(messages[j] // each(round.parts[j]) for j in numbers) for numbers in roles(round))
