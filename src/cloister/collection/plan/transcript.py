"""Transcript: a published plan and the answers of its closed rounds, in a folder that only grows. All public.

Beside ``plan.json`` there is ``round-1.json``, ``round-2.json``, ... for each closed round: the method's lookups and
their results, the digest of the next round, and the hash of the previous file (for the first round, of the plan). So
the hash of the last file, the *head*, identifies everything that was published and names the open round: reports carry
it.

A file appears whole or not at all, and only once: it is hard-linked to its name, which fails if the name is taken.
Readers refuse a gap, a broken chain and any byte that differs from the canonical text.

A publisher can lie: publish other answers than those reported, or show different users different ones. Users do not
trust answers: they compare heads with those they saw before, rounds with digests, and costs with the plan's schedule
(``state``, ``CollectionPlan.round``). So lies can only spoil the result.
"""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, final

import attrs
import numpy as np

from cloister.accounting import PrivacyTarget
from cloister.collection.plan import canonical_json
from cloister.collection.plan.durable_files import atomic_file
from cloister.collection.plan.plan import CollectionPlan
from cloister.core.errors import Damaged, InvalidInput, Refused, cause
from cloister.core.plain_data import parsed
from cloister.core.questions import Round
from cloister.core.record import Lookup, Record
from cloister.core.types import AnyArray

FORMAT = 1
MAX_ROUND_BYTES = 2**28
"""Maximum size of a file of answers."""

_NAME = re.compile(r"round-([1-9][0-9]*)\.json")


@final
@attrs.frozen(kw_only=True, eq=False)
class RoundAnswers:
    """Published answers of one closed round.

    Args:
        plan: hash of the plan.
        round: index of the round, from 0.
        previous: hash of the previous answers, or of the plan.
        digest: digest of this round.
        following: digest of the next round; None after the last.
        lookups: every lookup that the method made before it asked the next round, in order.
        reports: counts of accepted and refused reports, from ``Intake.as_dict``.
    """

    plan: str
    round: int
    previous: str
    digest: str
    following: str | None
    lookups: tuple[Lookup, ...] = attrs.field(repr=False)
    reports: Mapping[str, Any] = attrs.field(repr=False)

    @property
    def hash(self) -> str:
        """SHA-256 of everything else, in hex."""
        return canonical_json.hash_of(self._facts())

    @property
    def content(self) -> str:
        """Text of the file; canonical, so that equal answers have equal bytes."""
        return canonical_json.pretty_json(canonical_json.with_hash(self._facts()))

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> RoundAnswers:
        canonical_json.check_hash(data, FORMAT)
        following = data["next"]
        if not canonical_json.whole_number(data["reports"]["accepted"]) >= 0:
            raise ValueError("the number of accepted reports is negative")
        return cls(
            plan=canonical_json.as_text(data["plan"]),
            round=canonical_json.whole_number(data["round"]) - 1,
            previous=canonical_json.as_text(data["previous"]),
            digest=canonical_json.as_text(data["digest"]),
            following=None if following is None else canonical_json.as_text(following),
            lookups=tuple(_look(one) for one in data["looks"]),
            reports=dict(data["reports"]),
        )

    def _facts(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "plan": self.plan,
            "round": self.round + 1,
            "previous": self.previous,
            "digest": self.digest,
            "next": self.following,
            "reports": dict(self.reports),
            "looks": [_plain(lookup) for lookup in self.lookups],
        }


@final
@attrs.frozen(eq=False)
class Transcript:
    """Plan and its published answers: those of the closed rounds, in order."""

    plan: CollectionPlan
    closed: tuple[RoundAnswers, ...] = ()

    @property
    def heads(self) -> tuple[str, ...]:
        """Names of the rounds up to the open one (or of the end): the hash of everything published before each."""
        return (self.plan.hash, *(answers.hash for answers in self.closed))

    @property
    def head(self) -> str:
        """Name of the open round, which its reports carry; for the first round, the plan's hash."""
        return self.heads[-1]

    @property
    def index(self) -> int:
        """Index of the open round, from 0."""
        return len(self.closed)

    @property
    def done(self) -> bool:
        """Whether all rounds are closed."""
        return self.index == self.plan.length

    @property
    def hash(self) -> str:
        """Hash of the plan, under which all its rounds are charged."""
        return self.plan.hash

    @property
    def total(self) -> PrivacyTarget:
        """Cost (epsilon, delta) of all rounds together for a user."""
        return self.plan.total

    def record(self) -> Record:
        """Return the closed rounds and the open one, for replay by a session."""
        digests = [self.plan.digest, *(a.following for a in self.closed if a.following is not None)]
        return Record(digests, self.index, [lookup for answers in self.closed for lookup in answers.lookups])

    def round(self) -> Round[Any]:
        """Derive the open round from the plan and the published answers.

        Raises: Refused: there is none, or the round or its cost differs from the published one.
        """
        if self.done:
            raise Refused(f"all {self.plan.length} rounds of this plan are closed: no reports are needed any more")
        return self.plan.round(self.record())

    @classmethod
    def read(cls, folder: str | os.PathLike[str]) -> Transcript:
        """Read a plan's folder. Raises: InvalidInput: there is no plan. Damaged: a file is not as it was published."""
        transcript = cls(CollectionPlan.read(folder))
        place, count = Path(folder), len(_numbers(Path(folder)))
        if _numbers(place) != set(range(1, count + 1)):
            raise Damaged(
                f"{place} lacks the answers of a round before the last: get it again from whoever published it"
            )
        for number in range(1, count + 1):
            transcript = transcript.extended(_read(place / name(number)))
        return transcript

    def extended(self, answers: RoundAnswers) -> Transcript:
        """Return the transcript extended by the answers of the open round.

        Raises: Damaged: they belong to another round or plan, or follow other answers.
        """
        a, opened = answers, self.record().digests
        last = self.index + 1 == self.plan.length
        if self.done or (a.plan, a.round, a.previous) != (self.plan.hash, self.index, self.head):
            raise Damaged(f"the answers of round {a.round + 1} do not belong to this plan and the rounds before")
        if a.digest != opened[self.index] or (a.following is None) != last:
            raise Damaged(f"the answers of round {a.round + 1} belong to another round than the published one")
        return attrs.evolve(self, closed=(*self.closed, answers))

    def publish(self, folder: str | os.PathLike[str], answers: RoundAnswers) -> Transcript:
        """Add the answers of the open round to the folder: whole, durably, and once, even if several servers try.

        Returns:
            The new transcript, also if another server has just published the same answers.

        Raises:
            Refused: other answers of this round are already published.
            InvalidInput: the folder cannot be written.
        """
        target = Path(folder) / name(answers.round + 1)
        extended = self.extended(answers)
        try:
            with atomic_file(target, os.link) as file:
                file.write(answers.content.encode() + b"\n")
        except FileExistsError:
            if _read(target).hash != answers.hash:
                raise Refused(
                    f"round {answers.round + 1} has been closed with other reports: yours were not counted"
                ) from None
        except OSError as error:
            raise InvalidInput(f"cannot write {target}: {cause(error)}. Nothing was published") from error
        return extended


def name(number: int) -> str:
    """Return the file name of the answers of round ``number``, from 1."""
    return f"round-{number}.json"


def _numbers(folder: Path) -> set[int]:
    return {int(match[1]) for path in os.listdir(folder) if (match := _NAME.fullmatch(path))}


def _read(path: Path) -> RoundAnswers:
    again = "holds no answers of cloister, or it is damaged: get it again"
    return canonical_json.read(path, "round", MAX_ROUND_BYTES, _answers, again)


def _answers(content: bytes) -> RoundAnswers:
    answers = RoundAnswers.from_dict(parsed(content))
    if content != answers.content.encode() + b"\n":
        raise Refused("its text is not canonical")
    return answers


def _plain(lookup: Lookup) -> dict[str, Any]:
    return {
        "round": lookup.round + 1,
        "question": lookup.question + 1,
        "level": lookup.level,
        "error": lookup.error,
        "shape": list(lookup.values.shape),
        "ids": _packed(lookup.ids, "<i8"),
        "values": _packed(lookup.values, "<f8"),
    }


def _look(data: Mapping[str, Any]) -> Lookup:
    shape = tuple(canonical_json.whole_number(n) for n in data["shape"])
    ids, values = _unpacked(data["ids"], "<i8"), _unpacked(data["values"], "<f8").reshape(shape)
    if len(shape) not in (1, 2) or len(ids) != shape[0] or not isinstance(data["error"], bool):
        raise ValueError("a lookup has ids (m,) and values (m,) or (m, d)")
    at = (
        canonical_json.whole_number(data["round"]) - 1,
        canonical_json.whole_number(data["question"]) - 1,
        canonical_json.whole_number(data["level"]),
    )
    return Lookup(*at, data["error"], ids, values)


def _packed(array: AnyArray, dtype: str) -> str:
    """Return the exact bits in base64: decimal text would be twice as long, and readers may round it."""
    return base64.b64encode(np.ascontiguousarray(array, dtype).tobytes()).decode()


def _unpacked(text: Any, dtype: str) -> AnyArray:
    data = base64.b64decode(canonical_json.as_text(text), validate=True)
    return np.frombuffer(data, dtype).astype(dtype[1:])


def transcript_of(plan: Transcript | CollectionPlan | str | os.PathLike[str]) -> Transcript:
    """Return the transcript of a plan, read from its folder, or without answers for a ``CollectionPlan``."""
    if isinstance(plan, Transcript):
        return plan
    return Transcript(plan) if isinstance(plan, CollectionPlan) else Transcript.read(plan)
