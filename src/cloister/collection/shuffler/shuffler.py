"""Shuffler: takes users' messages and releases them without senders, in uniformly random order.

    done = shuffle("plan/", ["reports/"], "shuffled/")

It sees who sent which messages; under split-and-mix and the like these reveal everything, so it must be trusted neither
to keep nor to pass them on. It checks the form: files are complete and of this plan, and each user sends, once, as many
messages as the plan asks for, each of the form of its question. It releases the messages of all accepted users in
uniformly random order (``shuffler.release``), in files of fixed shape, all of them or none. For fewer users than the
plan's guarantee needs it releases nothing.

Guarantee (if the shuffler is honest): the release is a uniformly random permutation of the multiset of accepted
messages; who is accepted depends on the users' messages only.

A plan is shuffled once: if it were released twice, the second time with one more user, anybody could find that user's
messages by comparing the two.
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

from cloister.collection.intake.sources import ReportInput
from cloister.collection.intake.validator import Intake
from cloister.collection.plan.durable_files import created_folder, sync, temporary_path, writing
from cloister.collection.plan.plan import CollectionPlan
from cloister.collection.shuffler.intake import Senders
from cloister.collection.shuffler.release import Release, Scattered, release_in_parts, scatter_in_parts
from cloister.collection.wire.messages import ReleaseForm, records_of
from cloister.core.errors import InvalidInput, Refused
from cloister.core.randomness import NoiseRng
from cloister.rows.workers.engine import Engine, open_engine


@final
@attrs.frozen
class ShuffleResult:
    """Outcome of a shuffle.

    Attributes:
        plan: hash of the plan.
        folder: folder of the release.
        people: number of accepted users.
        messages: number of released messages.
        files: number of released files.
        intake: counts of accepted and refused input.
    """

    plan: str
    folder: Path
    people: int
    messages: int
    files: int
    intake: Intake

    def as_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "plan": self.plan,
            "people": self.people,
            "messages": self.messages,
            "files": self.files,
            "folder": str(self.folder),
            "read": self.intake.files,
            "refused": self.intake.reasons,
        }


def shuffle(
    plan: CollectionPlan | str | os.PathLike[str],
    reports: ReportInput,
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

    If killed, it leaves no folder or the complete one; run again, it removes the remains and starts over. Memory holds
    one bit per planned user, one chunk of messages, and one of the ``FILES`` parts into which all messages are
    scattered. The disk holds all messages twice, uncompressed.

    Args:
        plan: a plan of trust Shuffled, or its folder.
        reports: folders, files or patterns of files that 'cloister encode' wrote under this plan; bytes, open binary
            files; or any number of these, paths first.
        out: folder to create. Messages are scattered in its parent, which nobody else may read.
        strict: fail at the first refusal.
        progress: called with the number of messages just read or written.
        rng: generator for tests only: a repeatable order hides nothing.
        engine: engine that reads and writes files, as for ``fit``; it must run on the shuffler's own machines. The disk
            then holds all messages three times.
        workers: as for ``fit``.
        scheduler: as for ``fit``.

    Raises:
        InvalidInput: there are no such files, or the folder cannot be written or is in use.
        Refused: fewer users than the plan needs, so that nothing is released; another shuffle into this folder runs; or
            something was refused under ``strict``.
    """
    opened = plan if isinstance(plan, CollectionPlan) else CollectionPlan.read(plan)
    if opened.crowd is None:
        raise Refused("this plan has trust Local: send its reports to the server, without a shuffler")
    round, target, noise = opened.round(), Path(os.path.abspath(out)), NoiseRng.secret() if rng is None else rng
    progress = progress or (lambda n: None)
    form, secret, name = ReleaseForm(opened.hash, round), noise.child("shuffle"), secrets.token_bytes(16)
    min_people = opened.crowd.min_honest_users
    with open_engine(engine, workers, scheduler) as runner, _work_folder(target) as folder:
        senders = Senders(reports, opened, round, strict, progress, runner)
        place, work = folder / "release", folder / "scattered"
        work.mkdir()

        def new_release(messages: int) -> Release:
            place.mkdir()
            return Release(place, form, name, messages)

        if runner.apart:
            count, files = _in_parts(runner, senders, min_people, work, form.width, secret, new_release, progress)
        else:
            scattered = Scattered(work, form.width, secret)
            count, files = _in_this_process(senders, min_people, scattered, new_release, progress)
        shutil.rmtree(work)
        _publish(place, target)
    return ShuffleResult(opened.hash, target, senders.intake.accepted, count, files, senders.intake)


def _in_parts(
    engine: Engine,
    senders: Senders,
    min_people: int,
    work: Path,
    width: int,
    rng: NoiseRng,
    new_release: Callable[[int], Release],
    progress: Callable[[int], None],
) -> tuple[int, int]:
    """Shuffle in parts, one per task of an engine; return the numbers of messages and files."""
    folders = scatter_in_parts(engine, senders, work, width, rng, progress)
    _refuse_few(senders.intake, min_people)
    return release_in_parts(engine, folders, work, width, rng, new_release, progress)


def _in_this_process(
    senders: Senders,
    min_people: int,
    scattered: Scattered,
    new_release: Callable[[int], Release],
    progress: Callable[[int], None],
) -> tuple[int, int]:
    """Shuffle the messages of the accepted senders; return the numbers of messages and files."""
    try:
        for messages in senders.accepted():
            scattered.add(records_of(messages))
        _refuse_few(senders.intake, min_people)
        release = new_release(scattered.count)
        release.write_all(scattered.shuffled(), progress)
    finally:
        scattered.close()
    return scattered.count, release.files


def _refuse_few(intake: Intake, min_people: int) -> None:
    if intake.accepted < min_people:
        raise Refused(
            f"{intake.accepted:,} people have sent usable messages, but the plan's guarantee needs {min_people:,}: "
            f"nothing is released{''.join(f'; {line}' for line in intake.lines())}"
        )


@contextmanager
def _work_folder(target: Path) -> Iterator[Path]:
    """Make a folder beside the target for this process only, and remove it afterwards.

    Remains of killed runs are removed first: their files hold messages nearly in their order of arrival.
    """
    _check_free(target)
    with ExitStack() as stack:
        with writing(target):
            stack.enter_context(created_folder(target.parent))
            for remains in target.parent.glob(_work_folders(target)):
                with _locked(remains, target):
                    shutil.rmtree(remains)
            folder = temporary_path(target)
            folder.mkdir(mode=0o700)
        try:
            with writing(target, ". Nothing was released"), _locked(folder, target):
                yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def _work_folders(target: Path) -> str:
    """Return a glob pattern of this target's work folders, and of no other target's."""
    return f".{glob.escape(target.name)}.{'[0-9a-f]' * 16}.tmp"


@contextmanager
def _locked(folder: Path, target: Path) -> Iterator[None]:
    """Lock a folder for as long as the block or the process runs."""
    import fcntl

    with (folder / "held").open("ab") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise Refused(f"another shuffle into {target} runs: wait for it, or end it first") from None
        yield


def _check_free(target: Path) -> None:
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise InvalidInput(
            f"{target} already exists. If it holds this plan's messages, the release is complete: a plan is shuffled "
            f"once, since two releases would show who is in only one of them. Otherwise choose another folder"
        )


def _publish(folder: Path, target: Path) -> None:
    """Rename the finished folder into place, durably."""
    sync(folder)
    _check_free(target)
    if target.exists():
        target.rmdir()
    folder.rename(target)
    sync(target.parent)
