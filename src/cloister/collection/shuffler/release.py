"""The files that a shuffler releases: of fixed shape, so that they reveal nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, final

import attrs
import numpy as np

from cloister.collection.plan.canonical_json import flush
from cloister.collection.wire.columns import Packed
from cloister.collection.wire.messages import FILE_KEY, SHUFFLE_KEY, Messages, schema, to_batch
from cloister.core.questions import Round

GROUP, FILE = 2**17, 2**23
"""Messages per row group and per file."""

QUESTION = np.dtype("<u2")


@final
@attrs.frozen
class Release:
    """Files of shuffled messages. Args: folder, round, plan (hash), name (of the shuffle), messages (in all files)."""

    folder: Path
    round: Round[Any]
    plan: str
    name: str
    messages: int

    @property
    def files(self) -> int:
        """How many there are."""
        return -(-self.messages // FILE)

    def span(self, number: int) -> tuple[int, int]:
        """First position of a file's messages among all, and the first after them."""
        return number * FILE, min((number + 1) * FILE, self.messages)

    def path(self, number: int) -> Path:
        """Where a file belongs."""
        return self.folder / f"part-{number:06}.parquet"

    def write_all(self, records: Iterable[Packed], told: Callable[[int], None]) -> None:
        """Write all files. Args: records (all, in order), told (called with the number of messages just written)."""
        groups = cut(records, GROUP)
        for number in range(self.files):
            self.write(self.path(number), number, islice(groups, FILE // GROUP), told)

    def write(
        self, path: Path, number: int, records: Iterable[Packed], told: Callable[[int], None] = lambda n: None
    ) -> int:
        """Write one of the files into a new one. Args: records (all of this file, in order). Returns: how many."""
        from cloister.collection.wire.files import writer

        place = {SHUFFLE_KEY: self.name.encode(), FILE_KEY: f"{number}/{self.files}".encode()}
        shape, count = schema(self.round, self.plan, senders=False), 0
        shape = shape.with_metadata({**shape.metadata, **place})
        with path.open("xb") as file:
            with writer(file, "parquet", shape) as out:
                for group in cut(records, GROUP):
                    out.write_batch(to_batch(messages_of(group), self.round, shape), row_group_size=GROUP)
                    count += len(group)
                    told(len(group))
            flush(file)
        return count


def records_of(messages: Messages) -> Packed:
    """Messages as bytes (m, 2 + widest): the number of the question, then the body."""
    questions = messages.questions.astype(QUESTION).view(np.uint8).reshape(-1, QUESTION.itemsize)
    return np.concatenate([questions, messages.bodies], axis=1)


def messages_of(records: Packed) -> Messages:
    """The inverse of ``records_of``, without senders."""
    questions = np.ascontiguousarray(records[:, : QUESTION.itemsize]).view(QUESTION).reshape(-1).astype(np.uint16)
    return Messages(questions, records[:, QUESTION.itemsize :])


def cut(pieces: Iterable[Packed], size: int) -> Iterator[Packed]:
    """Yield the same records in pieces of one size, the last one perhaps shorter."""
    held, count = list[Packed](), 0
    for piece in pieces:
        held.append(piece)
        count += len(piece)
        if count >= size:
            whole = np.concatenate(held)
            for start in range(0, count - size + 1, size):
                yield whole[start : start + size]
            held = [whole[count - count % size :]]
            count %= size
    if count:
        yield np.concatenate(held)
