"""The shuffler: takes users' messages and releases them without senders, in uniformly random order.

    done = shuffle("plan/", ["reports/"], "shuffled/")

It sees who sent which messages; under split-and-mix and the like these reveal everything, so it must be trusted not to
keep or tell. It checks form: that files are whole and of this plan, and that each user sends, once, as many messages as
the plan asks for, each of the form of its question. It releases the messages of all accepted users, in uniformly random
order (``cloister.collection.shuffler.release``), in files of fixed shape, all of them or none. For fewer users
than the plan's guarantee needs it releases nothing.

Guarantee (if the shuffler is honest): the release is a uniformly random permutation of the multiset of accepted
messages; who is accepted depends on what users sent as a whole, and on nothing else.

A plan is shuffled once. Given two releases of one plan, the second with one more user, anybody can tell that user's
messages apart.
"""

from __future__ import annotations

import glob
import os
import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, final

import attrs

from cloister.collection.intake.sources import Given
from cloister.collection.intake.validator import Intake
from cloister.collection.plan.canonical_json import beside, made, sync, writing
from cloister.collection.plan.plan import CollectionPlan
from cloister.collection.shuffler.intake import Senders
from cloister.collection.shuffler.release import Release, Scattered, released_apart, scattered_apart
from cloister.collection.wire.messages import ReleaseForm, records_of
from cloister.core.errors import InvalidInput, Refused
from cloister.core.randomness import NoiseRng
from cloister.rows.workers.engine import Engine, open_engine


@final
@attrs.frozen
class ShuffleResult:
    """Outcome of a shuffle. Args: plan (hash), folder, people (accepted users), messages (released), files, tally
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
            "plan": self.plan,
            "people": self.people,
            "messages": self.messages,
            "files": self.files,
            "folder": str(self.folder),
            "read": self.tally.files,
            "refused": self.tally.reasons,
        }


def shuffle(
    plan: CollectionPlan | str | os.PathLike[str],
    reports: Given,
    out: str | os.PathLike[str],
    *,
    strict: bool = False,
    progress: Callable[[int], None] | None = None,
    rng: NoiseRng | None = None,
    engine: str | Engine = "serial",
    workers: int | None = None,
    scheduler: str | None = None,
) -> ShuffleResult:
    """Shuffle users' messages into a new folder.

    If killed, it leaves no folder or the complete one; run again, it removes the remains and starts over. Memory does
    not grow with the messages: a bit per planned user, one piece of messages, and one of the ``FILES`` parts of all
    messages, which is permuted at once. The disk holds all messages twice, uncompressed.

    Args:
        plan: a plan of trust Shuffled, or its folder.
        reports: folders, files or patterns of what 'cloister encode' wrote under this plan; bytes, binary files that
            are open; or any number of these, paths first.
        out: the folder to create. Messages are scattered in its parent: nobody else may read that.
        strict: fail at the first refusal.
        progress: called with the number of messages just read or written.
        rng: for tests only. A repeatable order hides nothing.
        engine, workers, scheduler: where files are read and written, as for ``fit``; the machines of an engine are the
            shuffler's. The disk then holds all messages three times.

    Raises:
        InvalidInput: there are no such files, or the folder cannot be written or is in use.
        Refused: fewer users than the plan needs, and then nothing is released; another shuffle into this folder runs;
            or something was refused under ``strict``.
    """
    opened = plan if isinstance(plan, CollectionPlan) else CollectionPlan.read(plan)
    if opened.crowd is None:
        raise Refused("this plan has trust Local: send its reports straight to the server, without a shuffler")
    round, target, noise = opened.round(), Path(os.path.abspath(out)), NoiseRng.secret() if rng is None else rng
    told = progress or (lambda n: None)
    form, secret, name = ReleaseForm(opened.hash, round), noise.child("shuffle"), secrets.token_bytes(16)
    with open_engine(engine, workers, scheduler) as runner, _workshop(target) as folder:
        senders = Senders(reports, opened, round, strict, told, runner)
        place, work = folder / "release", folder / "scattered"
        work.mkdir()

        def release(messages: int) -> Release:
            place.mkdir()
            return Release(place, form, name, messages)

        if runner.apart:
            folders = scattered_apart(runner, senders, work, form.width, secret, told)
            _refuse_few(senders.intake, opened.crowd.min_honest_users)
            count, files = released_apart(runner, folders, work, form.width, secret, release, told)
        else:
            count, files = _in_this_process(
                senders, opened.crowd.min_honest_users, Scattered(work, form.width, secret), release, told
            )
        shutil.rmtree(work)
        _publish(place, target)
    return ShuffleResult(opened.hash, target, senders.intake.accepted, count, files, senders.intake)


def _in_this_process(
    senders: Senders, least: int, scattered: Scattered, release: Callable[[int], Release], told: Callable[[int], None]
) -> tuple[int, int]:
    """Shuffle the messages of the senders who count. Returns: the number of messages and of files."""
    try:
        for messages in senders.accepted():
            scattered.add(records_of(messages))
        _refuse_few(senders.intake, least)
        made = release(scattered.count)
        made.write_all(scattered.shuffled(), told)
    finally:
        scattered.close()
    return scattered.count, made.files


def _refuse_few(intake: Intake, least: int) -> None:
    if intake.accepted < least:
        raise Refused(
            f"{intake.accepted:,} people have sent messages that can be used, and the plan's guarantee needs "
            f"{least:,}: nothing is released{''.join(f'; {line}' for line in intake.lines())}"
        )


@contextmanager
def _workshop(target: Path) -> Iterator[Path]:
    """A new folder beside the target for this process only, removed afterwards. Remains of killed runs are removed
    first, since they nearly reveal the order of arrival."""
    _free(target)
    with ExitStack() as stack:
        with writing(target):
            stack.enter_context(made(target.parent))
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
    """A pattern of this target's working folders only; its name may hold wildcards or begin like another target's."""
    return f".{glob.escape(target.name)}.{'[0-9a-f]' * 16}.tmp"


@contextmanager
def _held(folder: Path, target: Path) -> Iterator[None]:
    """Lock a folder for as long as the block or the process runs."""
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
            f"{target} exists already. If it holds this plan's messages, all of them were released, whole: a plan is "
            f"shuffled once, since two releases would show who is in only one of them. Otherwise choose another folder"
        )


def _publish(folder: Path, target: Path) -> None:
    """Rename the finished folder into place, durably."""
    sync(folder)
    _free(target)
    if target.exists():
        target.rmdir()
    folder.rename(target)
    sync(target.parent)
