"""What one report can add to an answer, whoever sends it."""

from __future__ import annotations

from typing import final

import attrs


@final
@attrs.frozen
class Gain:
    """What one report that is possible, but not honest, does to the values of one level.

    An honest report adds one row to one bucket on average. That of a liar adds up to ``most``, since estimators divide
    by how much noise leaves of the truth. Rows of a count; for sums, lengths of a vector in norm bounds.

    Args:
        most: that any report adds to a bucket.
        least: that any report takes off a bucket. For sums as ``most``, in the opposite direction.
        usual: that a liar adds to a bucket, and in a direction, of her choice, if numbers are given out blindly: the
            mean over the public coins of a number.
        buckets: so many of her choice get it at once, whatever her number is.
        bound: what one is worth: 1 row, or the norm bound of a vector in the caller's units.
        factor: of how many users a report that answers this level stands for one (levels that share the users).
    """

    most: float
    least: float
    usual: float
    buckets: int
    bound: float = 1.0
    factor: float = 1.0

    @property
    def chance(self) -> float:
        """q: that a report supports a bucket its user is not in. Of counts: least = q / (p - q), and most = (1 - q) /
        (p - q)."""
        return self.least / (self.most + self.least)
