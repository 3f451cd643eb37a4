"""The client bundle of a round: all that a device needs to answer it without Python, worked out. All public.

``bundle-1.json`` stands beside the plan, with the arrays that it names in ``bundle-1.bin``; when a round is closed,
``bundle-2.json`` and so on. A bundle adds nothing to a plan: everything in it follows from the plan and the published
answers, so that it can be made at any time, and checked by whoever can read the plan: to the byte. What its
fields mean, and what a device does with them: ``docs/reference/format.md``.

The JSON is one line: keys sorted, no spaces, ASCII, a line break at the end. Its SHA-256 is the bundle's name; it holds
that of the arrays.

What answering a plan costs a person, in words: for the plan's page and for every device that answers it.

The bundles in a plan's folder, or apart from it: made with the plan and with every round.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, final

import attrs

from cloister.accounting.accountant import ROUNDING
from cloister.accounting.composition import Spent
from cloister.accounting.privacy_target import PrivacyTarget
from cloister.collection.plan import canonical_json
from cloister.collection.plan.costs import asked_share
from cloister.collection.plan.plan import CollectionPlan
from cloister.collection.plan.transcript import RoundAnswers, Transcript, transcript_of
from cloister.collection.wire.answers import layout_of
from cloister.core.buckets import BundleArrays, described, key
from cloister.core.budget import Event, Share
from cloister.core.errors import CloisterError, Damaged, Refused
from cloister.core.plain_data import parsed
from cloister.core.questions import OpenedQuestion, Round
from cloister.core.shuffling import messages


def promise(plan: CollectionPlan, rounds: Sequence[Round[Any]]) -> list[str]:
    """The promise to a person, as lines. Args: rounds (all of them, as ``plan.rounds()`` has them)."""
    privacy = plan.statement(rounds)
    sent = [] if plan.crowd is None else plan.crowd.lines()
    return [*privacy.text().splitlines(), *sent, *_cost(plan, rounds).splitlines()]


def _cost(plan: CollectionPlan, rounds: Sequence[Round[Any]]) -> str:
    """What answering costs a user, in one round, all rounds and over several plans."""
    summed = "the sum of their epsilons" + (" and of their deltas" if plan.total.delta else "")
    if plan.length == 1:
        return f"A person answers once. Two answers under one plan, or one under each of two plans, cost her {summed}."
    spent = Spent.on(event for round in rounds for event in round.events)
    own = f", of which mechanisms take {spent.delta:.4g} themselves" if spent.delta else ""
    return (
        f"All {plan.length} rounds together cost a person who answers each of them epsilon = "
        f"{spent.epsilon(plan.total.delta):.6g} at delta = {plan.total.delta:.6g}{own}, as the accountant adds them "
        f"up.\nA person answers each round once, if it costs what this plan says. Two answers in one round, or "
        f"answers under two plans, cost her {summed}."
    )


FORMAT = 1
MAX_JSON_BYTES, MAX_ARRAY_BYTES = 2**26, 2**30
"""Largest files of a bundle that are read."""

UNIT = 2**53
"""A share of the users is [from, to) of so many."""


@final
@attrs.frozen(eq=False)
class Bundle:
    """The bundle of one round. Args: content (its JSON, as in the file), arrays (the binary file)."""

    content: bytes = attrs.field(repr=False)
    arrays: bytes = attrs.field(repr=False)

    @property
    def sha256(self) -> str:
        """Its name, in hex."""
        return hashlib.sha256(self.content).hexdigest()

    @property
    def round(self) -> int:
        """The number of its round, from 1."""
        return canonical_json.whole(self.as_dict()["round"])

    @property
    def files(self) -> dict[str, bytes]:
        """Names and contents of its files. The JSON is last: it names the other."""
        name = f"bundle-{self.round}"
        return {f"{name}.bin": self.arrays, f"{name}.json": self.content}

    def as_dict(self) -> dict[str, Any]:
        """What its JSON holds."""
        found: dict[str, Any] = parsed(self.content)
        return found

    @classmethod
    def read(cls, folder: str | os.PathLike[str], number: int) -> Bundle:
        """The bundle of a round, from 1. Raises: InvalidInput: there is none. Damaged: it is not what cloister
        writes, or its two files do not belong together."""
        again = "is no bundle of cloister, or it is damaged: make it again (cloister bundle)"
        place = Path(folder) / f"bundle-{number}.bin"
        arrays = canonical_json.read(place, "bundle", MAX_ARRAY_BYTES, bytes, again)
        place = place.with_suffix(".json")
        return canonical_json.read(place, "bundle", MAX_JSON_BYTES, lambda text: _read(text, arrays, number), again)

    def check(self, plan: Transcript | CollectionPlan | str | os.PathLike[str]) -> None:
        """Raises: Damaged: it differs from what the plan says, in any byte. Refused: see ``bundle_of``."""
        right, found = bundle_of(plan, self.round), self.as_dict()
        if (right.content, right.arrays) == (self.content, self.arrays):
            return
        wanted = right.as_dict()
        names = sorted(name for name in {*found, *wanted} if found.get(name) != wanted.get(name))
        raise Damaged(
            f"bundle-{self.round}.json is not what this plan says, in: {', '.join(names)}. Make it again (cloister "
            f"bundle), and let nobody answer this one"
        )


def bundle_of(plan: Transcript | CollectionPlan | str | os.PathLike[str], number: int | None = None) -> Bundle:
    """The bundle of a round. Args: number (of the round, from 1; None: the open one).

    Raises:
        Refused: there is no such round yet; the round is not what was published; one of the plan's components cannot
            be described to devices that run no Python; or devices would refuse the bundle (``addable``).
    """
    transcript = transcript_of(plan)
    if transcript.plan.crowd is None:
        addable(transcript.plan.total, (event for round in transcript.plan.rounds() for event in round.events))
    if number is not None:
        if not 1 <= number <= min(transcript.index + 1, transcript.plan.length):
            raise Refused(f"round {number} is not asked yet, or never: the open one is {transcript.index + 1}")
        transcript = attrs.evolve(transcript, closed=transcript.closed[: number - 1])
    arrays = BundleArrays()
    facts = {**_of_plan(transcript), **_of_round(transcript.round(), transcript.plan, arrays)}
    content = bytes(arrays.content)
    facts["arrays"] = {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    text = json.dumps(facts, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return Bundle(text.encode() + b"\n", content)


def addable(total: PrivacyTarget, events: Iterable[Event]) -> None:
    """Under Local trust a device trusts no accountant: it adds up the epsilons and deltas of the questions that it
    answers, over all rounds, and refuses what comes to more than the plan says it costs.

    Raises: Refused: these events add up to more, or have noise that no sum of epsilons covers.
    """
    spent = Spent.on(events)
    if spent.needs_delta:
        raise Refused(
            "no bundle can be made of this plan: some of its noise has no epsilon of its own, and devices add those up"
        )
    if spent.pure > total.epsilon * ROUNDING or spent.delta > total.delta * ROUNDING:
        raise Refused(
            f"no bundle can be made of this plan: the questions that one person answers add up to epsilon = "
            f"{spent.pure:.6g} and delta = {spent.delta:.6g}, above the plan's {total.epsilon:.6g} and "
            f"{total.delta:.6g}. The accountant can show less than the sum, a device only adds"
        )


def _read(text: bytes, arrays: bytes, number: int) -> Bundle:
    found = Bundle(text, arrays)
    facts = found.as_dict()
    canonical_json.check_format(facts["bundle"], FORMAT)
    if found.round != number:
        raise Refused(f"it is the bundle of round {found.round}")
    if facts["arrays"] != {"bytes": len(arrays), "sha256": hashlib.sha256(arrays).hexdigest()}:
        raise Refused(f"bundle-{number}.bin beside it is another one, or was changed")
    return found


def _of_plan(transcript: Transcript) -> dict[str, Any]:
    plan = transcript.plan
    return {
        "bundle": FORMAT,
        "plan": plan.hash,
        "head": transcript.head,
        "round": transcript.index + 1,
        "rounds": plan.length,
        "trust": plan.trust,
        "method": plan.method["name"],
        "k": plan.k,
        "users": plan.rows,
        "dimension": plan.dimension,
        "columns": None if plan.columns is None else list(plan.columns),
        "epsilon": plan.total.epsilon,
        "delta": plan.total.delta,
        "lifetime": None,
        "words": promise(plan, plan.rounds()),
        "warnings": list(plan.warnings),
    }


def _of_round(round: Round[Any], plan: CollectionPlan, arrays: BundleArrays) -> dict[str, Any]:
    layout, bucketings = layout_of(round), list[Any]()
    bodies = zip(round.parts, layout.bodies, strict=True)
    return {
        "asked": asked_share(round),
        "domain": described(round.domain, arrays),
        "bucketings": bucketings,
        "questions": [_question(part, plan, body.bytes, bucketings, arrays) for part, body in bodies],
        "drawings": [{"questions": list(slot.questions), "bytes": slot.bytes} for slot in layout.slots],
        "answer_bytes": layout.bytes,
    }


def _question(
    part: OpenedQuestion, plan: CollectionPlan, body_bytes: int, bucketings: list[Any], arrays: BundleArrays
) -> dict[str, Any]:
    """Adds its bucketing to the list, unless it is there."""
    buckets = described(part.cells, arrays)
    if buckets not in bucketings:
        bucketings.append(buckets)
    events = part.channel.events
    spent, local = Spent.on(events), plan.crowd is None
    epsilon = spent.pure if local else spent.epsilon(plan.total.delta)
    return {
        "bucketing": bucketings.index(buckets),
        "vectors": None if part.vectors is None else described(part.vectors, arrays),
        "share": None if part.user_share is None else _share(part.user_share),
        "channel": described(part.channel, arrays),
        "messages": messages(part),
        "body_bytes": body_bytes,
        "epsilon": epsilon,
        "delta": spent.delta,
        "alone": epsilon if local else _alone(spent),
    }


def _alone(spent: Spent) -> float | None:
    """The epsilon of an answer that no shuffler mixes; None if nothing holds then."""
    return spent.epsilon_without_shuffler if math.isfinite(spent.epsilon_without_shuffler) else None


def _share(share: Share) -> dict[str, Any]:
    """In whole numbers: a product with a power of two is exact."""
    return {"key": key(share.rng), "from": math.ceil(share.low * UNIT), "to": math.ceil(share.high * UNIT)}


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
        if not (folder / name).exists():
            with canonical_json.appearing(folder / name) as file:
                file.write(content)
