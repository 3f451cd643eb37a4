"""Bundles in a plan's folder, or apart from it: made with the plan and with every round."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from cloister.collection.plan.bundle import Bundle, bundle_of
from cloister.collection.plan.durable_files import atomic_file, created_folder, reading, writing
from cloister.collection.plan.plan import CollectionPlan
from cloister.collection.plan.transcript import RoundAnswers, Transcript
from cloister.core.errors import CloisterError, Damaged


def missing_bundle_reason(plan: Transcript | CollectionPlan) -> str | None:
    """Return why the open round cannot have a bundle, or None if it can."""
    try:
        bundle_of(plan)
    except CloisterError as error:
        return str(error)
    return None


def write(plan: CollectionPlan, folder: str | os.PathLike[str], words: str) -> None:
    """Create a plan's folder with the bundle of its first round, whole or not at all (``CollectionPlan.write``)."""
    plan.write(folder, words, _files(plan))


def publish(transcript: Transcript, folder: str | os.PathLike[str], answers: RoundAnswers) -> Transcript:
    """Add the answers of the open round to a plan's folder (see ``Transcript.publish``), then the next round's bundle.

    The bundle follows from the answers: if a crash leaves it out, 'cloister bundle' makes it.
    """
    extended = transcript.publish(folder, answers)
    with writing(f"the bundle of round {extended.index + 1}", ". The round before it is closed"):
        _put(Path(folder), _files(extended))
    return extended


def make(folder: str | os.PathLike[str], out: str | os.PathLike[str] | None = None) -> list[Bundle]:
    """Make the missing bundles of a plan's rounds up to the open one, in the plan's folder or in ``out``.

    Raises:
        Damaged: a file of a bundle exists and differs; nothing was written.
        InvalidInput: a file cannot be written.
        Refused: see ``bundle_of``.
    """
    made, place = bundles(Transcript.read(folder)), Path(folder if out is None else out)
    for bundle in made:
        for name, content in bundle.files.items():
            if not _agrees(place / name, content):
                raise Damaged(
                    f"{place / name} does not follow from this plan: nothing was made. Remove it to have it made again"
                )
    with writing(f"bundles into {place}"), created_folder(place):
        for bundle in made:
            _put(place, bundle.files)
    return made


def check(folder: str | os.PathLike[str], out: str | os.PathLike[str] | None = None) -> list[Bundle]:
    """Check the bundles of a plan's rounds up to the open one, in the plan's folder or in ``out``.

    Raises: InvalidInput: one is missing. Damaged: one does not follow from the plan.
    """
    transcript, place = Transcript.read(folder), folder if out is None else out
    checked = [Bundle.read(place, number) for number in _numbers(transcript)]
    for bundle in checked:
        bundle.check(transcript)
    return checked


def bundles(transcript: Transcript) -> list[Bundle]:
    """Return the bundles of the rounds up to the open one."""
    return [bundle_of(transcript, number) for number in _numbers(transcript)]


def _numbers(transcript: Transcript) -> range:
    return range(1, min(transcript.index + 1, transcript.plan.length) + 1)


def _agrees(path: Path, content: bytes) -> bool:
    """Return True if a file is missing, or has this content."""
    with reading(path):
        return not path.exists() or (path.stat().st_size == len(content) and path.read_bytes() == content)


def _files(plan: Transcript | CollectionPlan) -> dict[str, bytes]:
    """Return the files of the open round's bundle; none if there is no open round, or it cannot have a bundle."""
    try:
        return bundle_of(plan).files
    except CloisterError:
        return {}


def _put(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write missing files into a folder, in this order, each whole and durably. Raises: OSError."""
    for name, content in files.items():
        if not (folder / name).exists():
            with atomic_file(folder / name) as file:
                file.write(content)
