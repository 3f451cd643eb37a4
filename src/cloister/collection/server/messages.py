"""Population of users whose messages a shuffler released, read from its files, which name no sender."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, BinaryIO, final

import attrs
import numpy as np

from cloister.collection.intake.sources import changed_message
from cloister.collection.intake.validator import SHUFFLED, Intake, ReportValidator, SentFiles, isolate_refused
from cloister.collection.wire.answers import Packed
from cloister.collection.wire.messages import (
    Messages,
    ReleasedFile,
    ReleaseForm,
    Unusable,
    messages_of,
    well_formed,
    widest,
)
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
    counts only if an encoder of this round could have sent it. The shuffler must have checked that no user sent two:
    senders are unknown here, and the number of users follows from that of messages. Summaries are exact integers, so
    the order of messages does not matter.
    """

    kind = SHUFFLED

    def gather(self, round: Round[Any], rng: NoiseRng) -> tuple[Any, ...]:
        """Sum the messages of the round; draws no randomness.

        Raises:
            InvalidInput: files are missing, too many, damaged, or of another plan; or no message can be used.
            Refused: something was refused under ``strict``.
        """
        self.intake, files = self._new_intake(len(round.parts)), self._sources.files
        if not self._sources.only_files:
            raise InvalidInput(f"streams and bytes are {_UNUSABLE['no messages']}")
        if self._engine.elsewhere:
            files = [os.path.abspath(path) for path in files]
        places = _check_complete(files, ReleaseForm(self._head, round))
        count = MessageCounter(round, self._head, places, None if self._engine.apart else self._progress)
        totals = count.empty_summaries()
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
class MessageCounter:
    """Task that sums the messages of a file.

    Args:
        round: the round.
        head: the round's name.
        places: head of each file when it was first read.
        progress: called with the number of messages just read.
    """

    round: Round[Any]
    head: str
    places: Mapping[str, ReleasedFile]
    progress: Progress | None = None

    def empty_summaries(self) -> tuple[Any, ...]:
        """Return summaries of no message."""
        nobody = Messages(np.empty(0, np.uint16), np.empty((0, widest(self.round)), np.uint8))
        return absorb(self.round, tuple(nobody.report(j, self.round) for j in range(len(self.round.parts))))

    def __call__(self, path: str) -> tuple[tuple[Any, ...], Intake, int]:
        """Return the summaries of a file's messages, its counts, and the number of messages read.

        Raises: InvalidInput: it is damaged, or no file of this round.
        """
        keep_memory()
        validator = ReportValidator(Intake(SHUFFLED, questions=[0] * len(self.round.parts)), self.round, self.head)
        totals, read = list(self.empty_summaries()), 0
        try:
            for records in self._batches(path):
                messages = messages_of(records)
                rows = validator.filter_rows(
                    np.arange(len(messages)), well_formed(messages, self.round), "not as asked", path
                )
                for j in range(len(totals)):
                    for summary in self._absorbed(
                        validator.intake, messages, rows[messages.questions[rows] == j], j, path
                    ):
                        totals[j] = totals[j].merge(summary)
                read += len(messages)
                if self.progress is not None:
                    self.progress(len(messages))
        except Unusable as error:
            raise InvalidInput(f"'{path}' is {_UNUSABLE[error.reason]}") from None
        return tuple(totals), validator.intake, read

    def _batches(self, path: str) -> Iterator[Packed]:
        form = ReleaseForm(self.head, self.round)
        with _opened(path) as file:
            if form.place(file) != self.places[path]:
                raise InvalidInput(changed_message(path))
            file.seek(0)
            yield from form.batches(file)

    def _absorbed(self, intake: Intake, messages: Messages, rows: Ints, j: int, path: str) -> Iterator[Any]:
        """Yield summaries of these messages to question j, and refuse the impossible ones."""

        def read(part: Ints) -> Any:
            return self.round.parts[j].channel.absorb(messages.take(part).report(j, self.round))

        for part, summary in isolate_refused(rows, read) if len(rows) else ():
            if summary is None:
                intake.refuse("impossible", 1, path)
            else:
                intake.questions[j] += len(part)
                yield summary


_UNUSABLE = {
    "another plan": "of another plan",
    "no messages": "no file of shuffled messages: give the files that 'cloister shuffle' released",
    "damaged": "damaged or cut short: get the shuffler's files again",
    "unshuffled": "not shuffled: run 'cloister shuffle' on it, on the shuffler's machine, and give what it releases",
}


def _check_complete(files: Sequence[str], form: ReleaseForm) -> Mapping[str, ReleasedFile]:
    """Return the heads of the files. Raises: InvalidInput: they are not all the files of one shuffle, each once."""
    places, paths, first = dict[str, ReleasedFile](), dict[int, str](), None
    for path in files:
        place = _place(path, form)
        first = first or place
        if (place.shuffle, place.files) != (first.shuffle, first.files):
            raise InvalidInput(
                f"'{path}' and '{files[0]}' are of different shuffles, and a person could be in both: give the files "
                f"of one"
            )
        if place.number in paths:
            raise InvalidInput(f"'{path}' and '{paths[place.number]}' are the same file: give each file once")
        places[path], paths[place.number] = place, path
    if first is not None and len(paths) != first.files:
        raise InvalidInput(f"{first.files - len(paths)} of the {first.files} files of the shuffle are missing")
    return places


def _place(path: str, form: ReleaseForm) -> ReleasedFile:
    try:
        with _opened(path) as file:
            return form.place(file)
    except Unusable as error:
        raise InvalidInput(f"'{path}' is {_UNUSABLE[error.reason]}") from None


def _opened(path: str) -> BinaryIO:
    try:
        return open(path, "rb")
    except OSError:
        raise InvalidInput(changed_message(path)) from None


def _people(round: Round[Any], messages: Sequence[int]) -> int:
    """Return the number of users who sent these messages: of each drawing, a user answers at most one question."""
    return max(sum(messages[j] // each(round.parts[j]) for j in numbers) for numbers in roles(round))
