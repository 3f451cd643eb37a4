"""Public facts of a Shuffled plan beside its epsilon: the crowd needed, the cost without a shuffler, and sizes."""

from __future__ import annotations

import math
from typing import Any, Self, final

import attrs

from cloister.accounting import Spent
from cloister.collection.wire.answers import NUMBER, report_types
from cloister.core.errors import InvalidInput
from cloister.core.questions import Round
from cloister.core.shuffling import messages, min_honest_users, roles

MAX_MESSAGES, MAX_MESSAGE_BYTES = 2**16, 2**22
"""Maximum number of messages, and of bytes, that a plan may ask of a user."""


@final
@attrs.frozen
class Crowd:
    """Public facts of a round of trust Shuffled.

    Args:
        min_honest_users: users who must have reported honestly; the shuffler releases nothing for fewer.
        epsilon_without_shuffler: epsilon of one user's messages if the shuffler is dishonest or nobody else reports;
            infinite: no guarantee.
        messages: maximum number of a user's messages.
        bytes: maximum bytes of a user's messages, without the envelope.
    """

    min_honest_users: int
    epsilon_without_shuffler: float
    messages: int
    bytes: int

    @classmethod
    def of(cls, round: Round[Any]) -> Self:
        """Return the facts of a round. Raises: InvalidInput: a user would have to send too much."""
        count, size, kinds = 0, 0, report_types(round)
        for numbers in roles(round):  # a user answers one question of each drawing
            parts = [(round.parts[j], kinds[j].bytes) for j in numbers]
            count += max(messages(part) for part, _ in parts)
            size += max(messages(part) * (wide + NUMBER.itemsize) for part, wide in parts)
        if count > MAX_MESSAGES or size > MAX_MESSAGE_BYTES:
            raise InvalidInput(
                f"every person would send {count:,} messages of {size:,} bytes in all, but a plan asks for at most "
                f"{MAX_MESSAGES:,} and {MAX_MESSAGE_BYTES:,}: choose fewer buckets, fewer columns, or other oracles "
                f"(amplified-counts and amplified-vectors send one)"
            )
        return cls(min_honest_users(round), Spent.on(round.events).epsilon_without_shuffler, count, size)

    def lines(self) -> list[str]:
        """Return the facts as lines for people."""
        several = f"{self.messages:,} messages" if self.messages > 1 else "one message"
        return [f"A person sends {several} at most, of {self.bytes:,} bytes in all."]

    def as_dict(self) -> dict[str, Any]:
        """Return plain data, with None for an infinite epsilon."""
        return {
            "least honest people": self.min_honest_users,
            "epsilon alone": self.epsilon_without_shuffler if self.epsilon_without_shuffler < math.inf else None,
            "messages per user": self.messages,
            "message bytes per user": self.bytes,
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """Invert ``as_dict``."""
        alone = data["epsilon alone"]
        names = "least honest people", "messages per user", "message bytes per user"
        min_users, count, size = (int(data[name]) for name in names)
        return cls(min_users, math.inf if alone is None else float(alone), count, size)
