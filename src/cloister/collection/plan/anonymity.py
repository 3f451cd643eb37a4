"""What a plan of trust Shuffled rests on beside its epsilon: how many must hide each other, what a report alone costs,
what is sent."""

from __future__ import annotations

import math
from typing import Any, Self, final

import attrs

from cloister.accounting.composition import Spent
from cloister.collection.wire.columns import report_types
from cloister.core.errors import InvalidInput
from cloister.core.questions import Round
from cloister.core.shuffling import messages, min_honest_users, roles

MAX_MESSAGES, MAX_MESSAGE_BYTES = 2**16, 2**22
"""What a plan may ask a person to send."""

QUESTION_BYTES = 2
"""That say which question a message answers."""


@final
@attrs.frozen
class Crowd:
    """Public facts of a round of trust Shuffled.

    Args:
        least: people who must have reported honestly; the shuffler releases nothing of fewer.
        alone: epsilon of what one person sends, against a shuffler who is not honest or where nobody else is; infinite:
            nothing holds.
        messages: most that a person sends.
        bytes: most that her messages have, without the envelope.
    """

    min_honest_users: int
    epsilon_without_shuffler: float
    messages: int
    bytes: int

    @classmethod
    def of(cls, round: Round[Any]) -> Self:
        """Of a round. Questions that share the users cost a person the largest, any other comes on top.

        Raises:
            InvalidInput: no person can be asked to send so much.
        """
        count, size, kinds = 0, 0, report_types(round)
        for numbers in roles(round):
            parts = [(round.parts[j], kinds[j].bytes) for j in numbers]
            count += max(messages(part) for part, _ in parts)
            size += max(messages(part) * (wide + QUESTION_BYTES) for part, wide in parts)
        if count > MAX_MESSAGES or size > MAX_MESSAGE_BYTES:
            raise InvalidInput(
                f"every person would send {count:,} messages of {size:,} bytes in all; a plan asks for at most "
                f"{MAX_MESSAGES:,} and {MAX_MESSAGE_BYTES:,}: choose fewer buckets, fewer columns, or other oracles "
                f"(amplified-counts and amplified-vectors send one)"
            )
        return cls(min_honest_users(round), Spent.on(round.events).epsilon_without_shuffler, count, size)

    def lines(self) -> list[str]:
        """For people."""
        several = f"{self.messages:,} messages" if self.messages > 1 else "one message"
        return [f"A person sends {several} at most, of {self.bytes:,} bytes in all."]

    def as_dict(self) -> dict[str, Any]:
        """Plain data; None where nothing holds."""
        return {
            "least honest people": self.min_honest_users,
            "epsilon alone": self.epsilon_without_shuffler if self.epsilon_without_shuffler < math.inf else None,
            "messages per user": self.messages, "message bytes per user": self.bytes,
        }  # fmt: skip

    @classmethod
    def from_dict(cls, given: dict[str, Any]) -> Self:
        """What ``as_dict`` gave."""
        alone = given["epsilon alone"]
        names = "least honest people", "messages per user", "message bytes per user"
        few, count, size = (int(given[name]) for name in names)
        return cls(few, math.inf if alone is None else float(alone), count, size)
