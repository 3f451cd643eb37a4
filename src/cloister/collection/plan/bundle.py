"""Client bundle of a round: all that a device needs to answer it without Python. All public.

``bundle-1.json`` is beside the plan, with its arrays in ``bundle-1.bin``; when a round is closed, ``bundle-2.json`` and
so on. A bundle follows from the plan and the published answers, to the byte, so that it can be made at any time, and
checked by whoever can read the plan. ``docs/reference/format.md`` explains its fields, and how a device uses them.

The JSON is one line: keys sorted, no spaces, ASCII, a line break at the end. Its SHA-256 is the bundle's name; it holds
that of the arrays.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, final

import attrs

from cloister.accounting import PrivacyTarget, Spent
from cloister.accounting.accountant import ROUNDING
from cloister.collection.plan import canonical_json
from cloister.collection.plan.costs import asked_share
from cloister.collection.plan.plan import CollectionPlan
from cloister.collection.plan.promise import promise
from cloister.collection.plan.transcript import Transcript, transcript_of
from cloister.collection.wire.answers import layout_of
from cloister.core.buckets import BundleArrays, describe_part, hex_key
from cloister.core.budget import Event, Share
from cloister.core.errors import Damaged, Refused
from cloister.core.plain_data import parsed
from cloister.core.questions import OpenedQuestion, Round
from cloister.core.shuffling import messages

FORMAT = 1
MAX_JSON_BYTES, MAX_ARRAY_BYTES = 2**26, 2**30
"""Maximum sizes of a bundle's files."""

UNIT = 2**53
"""Unit in which a share [from, to) of the users is given."""


@final
@attrs.frozen(eq=False)
class Bundle:
    """Bundle of one round: the contents of its JSON file and of its binary file of arrays."""

    content: bytes = attrs.field(repr=False)
    arrays: bytes = attrs.field(repr=False)

    @property
    def sha256(self) -> str:
        """Name of the bundle, in hex."""
        return hashlib.sha256(self.content).hexdigest()

    @property
    def round(self) -> int:
        """Number of the round, from 1."""
        return canonical_json.whole_number(self.as_dict()["round"])

    @property
    def files(self) -> dict[str, bytes]:
        """Contents of the files, by name; the JSON is last, since it names the other."""
        name = f"bundle-{self.round}"
        return {f"{name}.bin": self.arrays, f"{name}.json": self.content}

    def as_dict(self) -> dict[str, Any]:
        """Return the parsed JSON."""
        facts: dict[str, Any] = parsed(self.content)
        return facts

    @classmethod
    def read(cls, folder: str | os.PathLike[str], number: int) -> Bundle:
        """Read the bundle of a round, from 1.

        Raises:
            InvalidInput: there is none.
            Damaged: cloister does not write it so, or its two files do not belong together.
        """
        again = "is no bundle of cloister, or it is damaged: make it again (cloister bundle)"
        place = Path(folder) / f"bundle-{number}.bin"
        arrays = canonical_json.read(place, "bundle", MAX_ARRAY_BYTES, bytes, again)
        place = place.with_suffix(".json")
        return canonical_json.read(place, "bundle", MAX_JSON_BYTES, lambda text: _read(text, arrays, number), again)

    def check(self, plan: Transcript | CollectionPlan | str | os.PathLike[str]) -> None:
        """Check that the bundle follows from the plan, to the byte. Raises: Damaged. Refused: see ``bundle_of``."""
        expected, facts = bundle_of(plan, self.round), self.as_dict()
        if (expected.content, expected.arrays) == (self.content, self.arrays):
            return
        expected_facts = expected.as_dict()
        names = sorted(name for name in {*facts, *expected_facts} if facts.get(name) != expected_facts.get(name))
        raise Damaged(
            f"bundle-{self.round}.json does not follow from this plan, in: {', '.join(names)}. Make it again "
            f"('cloister bundle'), and let nobody answer this one"
        )


def bundle_of(plan: Transcript | CollectionPlan | str | os.PathLike[str], number: int | None = None) -> Bundle:
    """Return the bundle of a round, by its number from 1, or of the open one.

    Raises:
        Refused: there is no such round yet; the round differs from the published one; one of the plan's components
            cannot be described to devices without Python; or devices would refuse the bundle (``check_addable``).
    """
    transcript = transcript_of(plan)
    if transcript.plan.crowd is None:
        check_addable(transcript.plan.total, (event for round in transcript.plan.rounds() for event in round.events))
    if number is not None:
        if not 1 <= number <= min(transcript.index + 1, transcript.plan.length):
            raise Refused(f"round {number} is not open yet, or does not exist: the open one is {transcript.index + 1}")
        transcript = attrs.evolve(transcript, closed=transcript.closed[: number - 1])
    arrays = BundleArrays()
    facts = {**_of_plan(transcript), **_of_round(transcript.round(), transcript.plan, arrays)}
    content = bytes(arrays.content)
    facts["arrays"] = {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    text = json.dumps(facts, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return Bundle(text.encode() + b"\n", content)


def check_addable(total: PrivacyTarget, events: Iterable[Event]) -> None:
    """Raise Refused if devices would refuse these events: they exceed the plan's cost, or have no pure epsilon.

    Under Local trust a device trusts no accountant: it adds up the epsilons and deltas of the questions that it
    answers, over all rounds, and refuses a sum above the plan's cost.
    """
    spent = Spent.on(events)
    if spent.needs_delta:
        raise Refused(
            "no bundle can be made of this plan: some of its noise has no pure epsilon, and devices add those up"
        )
    if spent.pure > total.epsilon * ROUNDING or spent.delta > total.delta * ROUNDING:
        raise Refused(
            f"no bundle can be made of this plan: the questions that one person answers add up to epsilon = "
            f"{spent.pure:.6g} and delta = {spent.delta:.6g}, above the plan's {total.epsilon:.6g} and "
            f"{total.delta:.6g}. The accountant can show less than the sum, a device only adds"
        )


def _read(text: bytes, arrays: bytes, number: int) -> Bundle:
    bundle = Bundle(text, arrays)
    facts = bundle.as_dict()
    canonical_json.check_format(facts["bundle"], FORMAT)
    if bundle.round != number:
        raise Refused(f"it is the bundle of round {bundle.round}")
    if facts["arrays"] != {"bytes": len(arrays), "sha256": hashlib.sha256(arrays).hexdigest()}:
        raise Refused(f"bundle-{number}.bin beside it belongs to another one, or was changed")
    return bundle


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
        "domain": describe_part(round.domain, arrays),
        "bucketings": bucketings,
        "questions": [_question(part, plan, body.bytes, bucketings, arrays) for part, body in bodies],
        "drawings": [{"questions": list(slot.questions), "bytes": slot.bytes} for slot in layout.slots],
        "answer_bytes": layout.bytes,
    }


def _question(
    part: OpenedQuestion, plan: CollectionPlan, body_bytes: int, bucketings: list[Any], arrays: BundleArrays
) -> dict[str, Any]:
    """Describe a question, and add its bucketing to the list unless it is there."""
    buckets = describe_part(part.cells, arrays)
    if buckets not in bucketings:
        bucketings.append(buckets)
    events = part.channel.events
    spent, local = Spent.on(events), plan.crowd is None
    epsilon = spent.pure if local else spent.epsilon(plan.total.delta)
    return {
        "bucketing": bucketings.index(buckets),
        "vectors": None if part.vectors is None else describe_part(part.vectors, arrays),
        "share": None if part.user_share is None else _share(part.user_share),
        "channel": describe_part(part.channel, arrays),
        "messages": messages(part),
        "body_bytes": body_bytes,
        "epsilon": epsilon,
        "delta": spent.delta,
        "alone": epsilon if local else _alone(spent),
    }


def _alone(spent: Spent) -> float | None:
    """Return the epsilon of an answer without a shuffler, or None if there is no guarantee."""
    return spent.epsilon_without_shuffler if math.isfinite(spent.epsilon_without_shuffler) else None


def _share(share: Share) -> dict[str, Any]:
    """Describe a share in whole numbers: a product with a power of two is exact."""
    return {"key": hex_key(share.rng), "from": math.ceil(share.low * UNIT), "to": math.ceil(share.high * UNIT)}
