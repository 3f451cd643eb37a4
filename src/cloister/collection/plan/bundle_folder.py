"""The bundles in a plan's folder, or apart from it: made with the plan and with every round."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from cloister.collection.plan import canonical_json
from cloister.collection.plan.bundle import Bundle, bundle_of
from cloister.collection.plan.plan import CollectionPlan
from cloister.collection.plan.transcript import RoundAnswers, Transcript
from cloister.core.errors import CloisterError, Damaged


def missing(plan: Transcript | CollectionPlan) -> str | None:
    """Why the open round has no bundle; None if it has one."""
    try:
        bundle_of(plan)
    except CloisterError as error:
        return str(error)
    return None


def write(plan: CollectionPlan, folder: str | os.PathLike[str], words: str) -> None:
    """Create a plan's folder with the bundle of its first round: all of it, or nothing (``CollectionPlan.write``)."""
    plan.write(folder, words, _files(plan))


def publish(transcript: Transcript, folder: str | os.PathLike[str], answers: RoundAnswers) -> Transcript:
    """Add the answers of the open round to a plan's folder (see ``Transcript.publish``), then the next round's bundle,
    which follows from them: if a crash leaves it out, 'cloister bundle' makes it."""
    grown = transcript.publish(folder, answers)
    with canonical_json.writing(f"the bundle of round {grown.index + 1}", ". The round before it is closed"):
        _put(Path(folder), _files(grown))
    return grown


def make(folder: str | os.PathLike[str], out: str | os.PathLike[str] | None = None) -> list[Bundle]:
    """Make the bundles of a plan's rounds up to the open one, where they are missing. Args: folder (the plan's), out
    (where to; default: beside the plan).

    Raises:
        Damaged: a file of a bundle is there and differs; nothing was written. InvalidInput: a file cannot be written.
        Refused: see ``bundle_of``.
    """
    found, place = bundles(Transcript.read(folder)), Path(folder if out is None else out)
    for bundle in found:
        for name, content in bundle.files.items():
            if not _agrees(place / name, content):
                raise Damaged(
                    f"{place / name} is not what this plan says: nothing was made. Remove it to have it made again"
                )
    with canonical_json.writing(f"bundles into {place}"), canonical_json.made(place):
        for bundle in found:
            _put(place, bundle.files)
    return found


def check(folder: str | os.PathLike[str], out: str | os.PathLike[str] | None = None) -> list[Bundle]:
    """Check the bundles of a plan's rounds up to the open one. Args: as for ``make``. Raises: InvalidInput: one is
    missing. Damaged: one differs from what the plan says."""
    transcript, place = Transcript.read(folder), folder if out is None else out
    found = [Bundle.read(place, number) for number in _numbers(transcript)]
    for bundle in found:
        bundle.check(transcript)
    return found


def bundles(transcript: Transcript) -> list[Bundle]:
    """The bundles of the rounds up to the open one."""
    return [bundle_of(transcript, number) for number in _numbers(transcript)]


def _numbers(transcript: Transcript) -> range:
    return range(1, min(transcript.index + 1, transcript.plan.length) + 1)


def _agrees(path: Path, content: bytes) -> bool:
    """Whether a file is missing, or holds this."""
    with canonical_json.reading(path):
        return not path.exists() or (path.stat().st_size == len(content) and path.read_bytes() == content)


def _files(plan: Transcript | CollectionPlan) -> dict[str, bytes]:
    """The files of the open round's bundle; none if there is no open round, or it cannot have one."""
    try:
        return bundle_of(plan).files
    except CloisterError:
        return {}


def _put(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write files that are not there yet into a folder, in this order, each whole and durably. Raises: OSError."""
    for name, content in files.items():
        target = folder / name
        if target.exists():
            continue
        temporary = canonical_json.beside(target)
        try:
            with temporary.open("xb") as file:
                file.write(content)
                canonical_json.flush(file)
            temporary.replace(target)
        finally:
            temporary.unlink(missing_ok=True)
    canonical_json.sync(folder)
