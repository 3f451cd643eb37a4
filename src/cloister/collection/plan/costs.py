"""The privacy and bytes that each round of a plan costs a user: public, and fixed before the first round.

A schedule does not depend on answers. So a user knows the total cost of all rounds before she sends anything, and in
each round she compares what she is asked with the schedule.

The public facts of a Shuffled plan beside its epsilon: how many users must hide each other, what a report costs
without a shuffler, and how much is sent.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Self, final

import attrs

from cloister.accounting.composition import Spent
from cloister.collection.wire.answers import NUMBER, layout_of, report_types
from cloister.collection.wire.batches import PREFIX
from cloister.core.budget import Event, Share
from cloister.core.errors import InvalidInput
from cloister.core.questions import Round
from cloister.core.randomness import PublicRng
from cloister.core.shuffling import messages, min_honest_users, roles
from cloister.core.trust import Shuffled

MAX_MESSAGES, MAX_MESSAGE_BYTES = 2**16, 2**22
"""Most messages and bytes that a plan may ask of a user."""


@final
@attrs.frozen
class Crowd:
    """Public facts of a round of trust Shuffled.

    Args:
        min_honest_users: users who must have reported honestly; the shuffler releases nothing for fewer.
        epsilon_without_shuffler: epsilon of one user's messages if the shuffler is dishonest or nobody else reports;
            infinite: no guarantee.
        messages: most messages of a user.
        bytes: most bytes of a user's messages, without the envelope.
    """

    min_honest_users: int
    epsilon_without_shuffler: float
    messages: int
    bytes: int

    @classmethod
    def of(cls, round: Round[Any]) -> Self:
        """The facts of a round. Of questions that split the users between them the largest counts; others add up.
        Raises: InvalidInput: a user would have to send too much."""
        count, size, kinds = 0, 0, report_types(round)
        for numbers in roles(round):
            parts = [(round.parts[j], kinds[j].bytes) for j in numbers]
            count += max(messages(part) for part, _ in parts)
            size += max(messages(part) * (wide + NUMBER.itemsize) for part, wide in parts)
        if count > MAX_MESSAGES or size > MAX_MESSAGE_BYTES:
            raise InvalidInput(
                f"every person would send {count:,} messages of {size:,} bytes in all; a plan asks for at most "
                f"{MAX_MESSAGES:,} and {MAX_MESSAGE_BYTES:,}: choose fewer buckets, fewer columns, or other oracles "
                f"(amplified-counts and amplified-vectors send one)"
            )
        return cls(min_honest_users(round), Spent.on(round.events).epsilon_without_shuffler, count, size)

    def lines(self) -> list[str]:
        """The facts for people, as text lines."""
        several = f"{self.messages:,} messages" if self.messages > 1 else "one message"
        return [f"A person sends {several} at most, of {self.bytes:,} bytes in all."]

    def as_dict(self) -> dict[str, Any]:
        """Plain data; None for an infinite epsilon."""
        return {
            "least honest people": self.min_honest_users,
            "epsilon alone": self.epsilon_without_shuffler if self.epsilon_without_shuffler < math.inf else None,
            "messages per user": self.messages,
            "message bytes per user": self.bytes,
        }

    @classmethod
    def from_dict(cls, given: dict[str, Any]) -> Self:
        """The inverse of ``as_dict``."""
        alone = given["epsilon alone"]
        names = "least honest people", "messages per user", "message bytes per user"
        few, count, size = (int(given[name]) for name in names)
        return cls(few, math.inf if alone is None else float(alone), count, size)


USER_BYTES = 8.0


@final
@attrs.frozen
class Size:
    """Mean bytes of one user's report. Args: answers, stamps (which question it answers), user (her number)."""

    answers: float
    stamps: float
    user: float = USER_BYTES

    @classmethod
    def of(cls, round: Round[Any]) -> Size:
        """The mean size for a round; users who are not asked send nothing. Under Local trust the one-dimensional
        columns say which question is answered; under Shuffled trust, two bytes and the private number do."""
        answers, stamps, mixed = 0.0, 0.0, round.trust is Shuffled
        for part, kind in zip(round.parts, report_types(round), strict=True):
            share = messages(part) * part.fraction
            says = [
                c.bytes for c in kind.columns if (c.name not in ("users", "question") if mixed else c.width is not None)
            ]
            answers += share * sum(says)
            stamps += share * (kind.bytes - sum(says) + NUMBER.itemsize * mixed)
        return cls(answers, stamps, USER_BYTES * asked_share(round))

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> Size:
        return cls(float(given["answers"]), float(given["stamps"]), float(given["user number"]))

    @property
    def total(self) -> float:
        return self.answers + self.stamps + self.user

    def plus(self, other: Size) -> Size:
        return Size(self.answers + other.answers, self.stamps + other.stamps, self.user + other.user)

    def as_dict(self) -> dict[str, float]:
        return {"answers": self.answers, "stamps": self.stamps, "user number": self.user, "total": self.total}


@final
@attrs.frozen
class Step:
    """One round of a schedule.

    Args:
        events: privacy cost for the users asked, as plain data, in the order of the questions.
        asked: share of the users who are asked anything.
        size: size of a report if all earlier answers are zero; real answers can change it.
    """

    events: tuple[Mapping[str, Any], ...]
    asked: float
    size: Size

    @classmethod
    def of(cls, round: Round[Any]) -> Step:
        return cls(tuple(_plain(event) for event in round.events), asked_share(round), Size.of(round))

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> Step:
        """The inverse of ``as_dict``. Raises: ValueError, TypeError, KeyError."""
        events, asked = tuple(dict(e) for e in given["events"]), float(given["asked"])
        if not 0 < asked <= 1 or not all(isinstance(e["mechanism"], str) for e in events):
            raise ValueError("a step asks some of the users, by mechanisms that have names")
        return cls(events, asked, Size.from_dict(given["bytes"]))

    def as_dict(self) -> dict[str, Any]:
        return {"events": [dict(e) for e in self.events], "asked": self.asked, "bytes": self.size.as_dict()}

    def fits(self, round: Round[Any]) -> bool:
        """Whether a round has the planned privacy cost and asks the planned share of the users."""
        return self.events == tuple(_plain(event) for event in round.events) and self.asked == asked_share(round)


def sent_bytes(round: Round[Any]) -> int:
    """Bytes of every report of a round as it is sent, alone: stamp, round and user number, and an answer, which is as
    long for all (``wire.batches``)."""
    return PREFIX + int(USER_BYTES) + layout_of(round).bytes


def asked_share(round: Round[Any]) -> float:
    """Expected share (over random keys) of the users who are asked anything in a round."""
    shares = dict[PublicRng, list[Share]]()
    for part in round.parts:
        if part.user_share is None:
            return 1.0
        shares.setdefault(part.user_share.rng, []).append(part.user_share)
    missing = 1.0
    for group in shares.values():
        missing *= 1 - covered(group)
    return 1 - missing


def covered(shares: Sequence[Share]) -> float:
    """Length of the union of intervals."""
    total, end = 0.0, 0.0
    for share in sorted(shares, key=lambda s: s.low):
        total, end = total + max(0.0, share.high - max(end, share.low)), max(end, share.high)
    return min(1.0, total)


def _plain(event: Event) -> dict[str, Any]:
    spent, among = event.spent, event.spent.user_share
    users = None if among is None else {"key": among.rng.key.hex(), "from": among.low, "to": among.high}
    return {
        "mechanism": event.mechanism,
        "measure": spent.measure,
        "amount": spent.amount,
        "delta": event.delta,
        "users": users,
    }
