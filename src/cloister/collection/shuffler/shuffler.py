"""The shuffler: people's messages in, the same messages out, without senders and in an order that says nothing.

    done = shuffle("plan/", ["reports/"], "shuffled/")

What it sees: who sent which messages, as they are; under split-and-mix and the like that is everything, so it must be
trusted not to keep or tell. What it checks is form: that files are whole and of this plan, that everybody sends as many
messages as the plan asks for, each of the form of its question, and sends them once. What it releases: the messages of
everybody who is accepted, in uniformly random order (``cloister.collection.shuffler.external_shuffle``), in files of
fixed shape that are all there or not there at all. Of fewer people than the plan's guarantee needs it releases nothing.

Guarantee (given that it is honest): what is released is a uniformly random permutation of the multiset of accepted
messages; which people are accepted depends on what they sent, whole, and on nothing else.

A plan is shuffled once. Whoever sees two releases of one plan, with one person more in the second, sees that person's
messages apart.
"""

from __future__ import annotations

import glob
import os
import secrets
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, final

import attrs
import numpy as np

from cloister.collection.intake.refusals import Intake
from cloister.collection.plan.canonical_json import beside, flush, sync, writing
from cloister.collection.plan.plan import CollectionPlan
from cloister.collection.shuffler.external_shuffle import Scattered
from cloister.collection.shuffler.intake import Senders
from cloister.collection.wire.columns import Packed
from cloister.collection.wire.messages import FILE_KEY, SHUFFLE_KEY, Messages, schema, to_batch, widest
from cloister.core.errors import InvalidInput, Refused
from cloister.core.questions import Round
from cloister.core.randomness import NoiseRng

GROUP, FILE = 2**17, 2**23
"""Messages of a row group, and of a file: fixed, so that they tell nothing."""

QUESTION = np.dtype("<u2")


@final
@attrs.frozen
class ShuffleResult:
    """What became of the messages. Args: plan (hash), folder, people (accepted), messages (released), files, tally
    (what was refused)."""

    plan: str
    folder: Path
    people: int
    messages: int
    files: int
    tally: Intake

    def as_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "plan": self.plan, "people": self.people, "messages": self.messages, "files": self.files,
            "folder": str(self.folder), "read": self.tally.files, "refused": self.tally.reasons,
        }  # fmt: skip


def shuffle(
    plan: CollectionPlan | str | os.PathLike[str], reports: str | Path | Sequence[str | Path],
    out: str | os.PathLike[str], *,
    strict: bool = False, progress: Callable[[int], None] | None = None, rng: NoiseRng | None = None,
) -> ShuffleResult:  # fmt: skip
    """Shuffle what people have sent into a new folder.

    Killed at any point it leaves no folder or the whole one; run again, it starts over and clears away what the killed
    run left behind. Memory does not grow with the messages: a bit per planned user, one piece of messages, and a share
    of them (``FILES``) that is put in order at once. The disk holds all messages twice, uncompressed.

    Args:
        plan: or the folder that it is in. Its trust is Shuffled.
        reports: folders, files or patterns of what 'cloister encode' wrote under this plan.
        out: the folder to make. Its parent is where messages are scattered: nobody else may read it.
        strict: fail at the first refusal.
        progress: told how many more messages were read or written.
        rng: only for tests. An order that can be repeated hides nothing.

    Raises:
        InvalidInput: there are no such files, or the folder cannot be written, or was written before.
        Refused: fewer people than the plan needs, and then nothing is released; another shuffle of this folder runs; or
            ``strict``.
    """
    opened = plan if isinstance(plan, CollectionPlan) else CollectionPlan.read(plan)
    if opened.crowd is None:
        raise Refused("this plan is of trust Local: its reports go to the server as they are, no shuffler takes them")
    round, target, noise = opened.round(), Path(os.path.abspath(out)), NoiseRng.secret() if rng is None else rng
    told = progress or (lambda n: None)
    with _workshop(target) as folder:
        senders = Senders(reports, opened, round, strict, told)
        (folder / "scattered").mkdir()
        scattered = Scattered(folder / "scattered", QUESTION.itemsize + widest(round), noise.child("shuffle"))
        try:
            for messages in senders.accepted():
                scattered.add(_records(messages))
            if senders.intake.accepted < opened.crowd.min_honest_users:
                raise Refused(
                    f"{senders.intake.accepted:,} people have sent messages that can be used, and the plan's "
                    f"guarantee needs {opened.crowd.min_honest_users:,}: nothing is "
                    f"released{''.join(f'; {line}' for line in senders.intake.lines())}"
                )
            files = _write(scattered, folder / "release", opened, round, told)
        finally:
            scattered.close()
        shutil.rmtree(folder / "scattered")
        _publish(folder / "release", target)
    return ShuffleResult(opened.hash, target, senders.intake.accepted, scattered.count, files, senders.intake)


def _records(messages: Messages) -> Packed:
    """Messages (m, 2 + widest): the question, then what is said."""
    questions = messages.questions.astype(QUESTION).view(np.uint8).reshape(-1, QUESTION.itemsize)
    return np.concatenate([questions, messages.bodies], axis=1)


def _messages(records: Packed) -> Messages:
    questions = np.ascontiguousarray(records[:, : QUESTION.itemsize]).view(QUESTION).reshape(-1).astype(np.uint16)
    return Messages(questions, records[:, QUESTION.itemsize :])


def _write(
    scattered: Scattered, folder: Path, plan: CollectionPlan, round: Round[Any], told: Callable[[int], None]
) -> int:
    """Write all messages in random order; how many files there are."""
    from cloister.collection.wire.files import writer

    folder.mkdir()
    files, name = -(-scattered.count // FILE), secrets.token_hex(16)
    groups = _cut(scattered.shuffled(), GROUP)
    for number in range(files):
        place = {SHUFFLE_KEY: name.encode(), FILE_KEY: f"{number}/{files}".encode()}
        shape = schema(round, plan.hash, senders=False)
        shape = shape.with_metadata({**shape.metadata, **place})
        with (folder / f"part-{number:06}.parquet").open("xb") as file:
            with writer(file, "parquet", shape) as out:
                for _ in range(-(-min(FILE, scattered.count - number * FILE) // GROUP)):
                    group = next(groups)
                    out.write_batch(to_batch(_messages(group), round, shape), row_group_size=GROUP)
                    told(len(group))
            flush(file)
    return files


def _cut(pieces: Iterable[Packed], size: int) -> Iterator[Packed]:
    """The same records in pieces of one size, the last one perhaps shorter."""
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


@contextmanager
def _workshop(target: Path) -> Iterator[Path]:
    """A new folder beside the target, which this process alone works in and which is gone afterwards. What killed runs
    have left is cleared away first: the order in which messages came in can nearly be read from it.
    """
    _free(target)
    with writing(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        for left in target.parent.glob(_workshops(target)):
            with _held(left, target):
                shutil.rmtree(left)
        folder = beside(target)
        folder.mkdir(mode=0o700)
    try:
        with writing(target, ". Nothing was released"), _held(folder, target):
            yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _workshops(target: Path) -> str:
    """A pattern of this target's folders alone: a name may hold what patterns read as something else, or begin like
    another one."""
    return f".{glob.escape(target.name)}.{'[0-9a-f]' * 16}.tmp"


@contextmanager
def _held(folder: Path, target: Path) -> Iterator[None]:
    """Hold a folder, as long as the process lives."""
    import fcntl

    with (folder / "held").open("ab") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise Refused(f"another shuffle into {target} runs: wait for it, or end it first") from None
        yield


def _free(target: Path) -> None:
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise InvalidInput(
            f"{target} is there already. If it holds this plan's messages, they were released, whole: a plan is "
            f"shuffled once, since two releases would show who is in one of them only. Otherwise choose another folder"
        )


def _publish(folder: Path, target: Path) -> None:
    """Everything at once, on the disk."""
    sync(folder)
    _free(target)
    if target.exists():
        target.rmdir()
    folder.rename(target)
    sync(target.parent)
