"""Schedule of a plan: the privacy and bytes that each round costs a user, public and fixed before the first round.

A schedule does not depend on answers. So a user knows the total cost of all rounds before she sends anything, and in
each round she compares its questions with the schedule.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, final

import attrs

from cloister.collection.wire.answers import NUMBER, layout_of, report_types
from cloister.collection.wire.batches import PREFIX
from cloister.core.budget import Event, Share
from cloister.core.questions import Round
from cloister.core.randomness import PublicRng
from cloister.core.shuffling import messages
from cloister.core.trust import Shuffled

USER_BYTES = 8.0


@final
@attrs.frozen
class Size:
    """Mean bytes of one user's report: of answers, of stamps (the question answered) and of her number."""

    answers: float
    stamps: float
    user: float = USER_BYTES

    @classmethod
    def of(cls, round: Round[Any]) -> Size:
        """Return the mean size for a round; users who are not asked send nothing.

        Under Local trust the one-dimensional columns tell which question is answered; under Shuffled trust, two bytes
        and the private number do.
        """
        answers, stamps, shuffled = 0.0, 0.0, round.trust is Shuffled
        for part, kind in zip(round.parts, report_types(round), strict=True):
            share = messages(part) * part.fraction
            answer = sum(
                column.bytes
                for column in kind.columns
                if (column.name not in ("users", "question") if shuffled else column.width is not None)
            )
            answers += share * answer
            stamps += share * (kind.bytes - answer + NUMBER.itemsize * shuffled)
        return cls(answers, stamps, USER_BYTES * asked_share(round))

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Size:
        return cls(float(data["answers"]), float(data["stamps"]), float(data["user number"]))

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
    """Step of a schedule: one round.

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
    def from_dict(cls, data: Mapping[str, Any]) -> Step:
        """Invert ``as_dict``. Raises: ValueError, TypeError, KeyError."""
        events, share = tuple(dict(e) for e in data["events"]), float(data["asked"])
        if not 0 < share <= 1 or not all(isinstance(e["mechanism"], str) for e in events):
            raise ValueError("a step asks a share of the users above 0, by named mechanisms")
        return cls(events, share, Size.from_dict(data["bytes"]))

    def as_dict(self) -> dict[str, Any]:
        return {"events": [dict(e) for e in self.events], "asked": self.asked, "bytes": self.size.as_dict()}

    def matches(self, round: Round[Any]) -> bool:
        """Return True if a round has the planned privacy cost and asks the planned share of the users."""
        return self.events == tuple(_plain(event) for event in round.events) and self.asked == asked_share(round)


def sent_bytes(round: Round[Any]) -> int:
    """Return the bytes of a single report of a round: stamp, round, user number and answer (``wire.batches``)."""
    return PREFIX + int(USER_BYTES) + layout_of(round).bytes


def asked_share(round: Round[Any]) -> float:
    """Return the expected share (over random keys) of the users who are asked anything in a round."""
    shares = dict[PublicRng, list[Share]]()
    for part in round.parts:
        if part.user_share is None:
            return 1.0
        shares.setdefault(part.user_share.rng, []).append(part.user_share)
    missing = 1.0
    for group in shares.values():
        missing *= 1 - union_length(group)
    return 1 - missing


def union_length(shares: Sequence[Share]) -> float:
    """Return the length of the union of intervals."""
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
