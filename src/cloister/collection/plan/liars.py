"""What people who lie can do to the answers of a plan: public, and said before anybody is asked.

Of n people a share s lies, under numbers that were given out blindly. A question asked of a share f of the users, whose
level is answered by one in T of these, is answered by s n f / T of them on average; each adds up to ``Gain.most`` to a
bucket, and the table is scaled up by T / f. So the shares cancel: s n ``most`` people who do not exist, whatever is
asked of whom. A vector sum moves by s n ``usual`` bounds, and with it the centre of n / k people by s k ``usual``. If
numbers can be chosen, all liars answer the one question: T / f times as much, until ``core.shares`` notices.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, final

import attrs

from cloister.core.capabilities import BoundsLiars
from cloister.core.questions import Round

SHARES = (0.001, 0.01, 0.05)
"""Of the people, who lie: what is said of each."""


@final
@attrs.frozen
class Harm:
    """What liars can do in one round of a plan, at worst over its questions and levels.

    Args:
        invented: people, for each liar, by whom the count of one bucket can be raised.
        buckets: of one liar's choice, that are raised so much at once.
        moved: of k groups of equal size, by how much the centre of one can be moved, in radii of the domain (half its
            diameter), for each liar among as many people as there are; None if no vectors are asked.
        chosen: times as much, by liars who choose their numbers by the question that these lead to.
        unbounded: mechanisms of which nothing is known, or one message of which can say anything.
    """

    invented: float
    buckets: int
    moved: float | None
    chosen: float
    unbounded: tuple[str, ...]

    @classmethod
    def of(cls, rounds: Sequence[Round[Any]], k: int, radius: float) -> Harm:
        """Args: rounds (all of them), k (centres), radius (of the domain, in its units)."""
        counts, vectors, chosen, unbounded = [(0.0, 0)], list[float](), 1.0, list[str]()
        for part in (part for round in rounds for part in round.parts):
            gains = part.channel.gains if isinstance(part.channel, BoundsLiars) else ()
            if not gains:
                unbounded += [event.mechanism for event in part.channel.events]
            for gain in gains:
                chosen = max(chosen, gain.factor / part.fraction)
                if part.vectors is None:
                    counts.append((gain.most, gain.buckets))
                else:
                    vectors.append(k * gain.usual * gain.bound / radius)
        invented, buckets = max(counts)
        return cls(invented, buckets, max(vectors, default=None), chosen, tuple(dict.fromkeys(unbounded)))

    def withstood(self, k: int) -> float | None:
        """The share of liars from which on they can invent one of k equal groups: ``decode`` withstands less."""
        return 1 / (k * self.invented) if self.invented and not self.unbounded else None

    def as_dict(self, k: int) -> dict[str, Any]:
        """Plain data: for each share of liars, the share of people that can be invented, and how far a centre moves."""
        worst = [
            {"share": s, "invented": s * self.invented, "moved": None if self.moved is None else s * self.moved}
            for s in SHARES
        ]
        return {
            "a report counts for": self.invented, "in buckets": self.buckets, "chosen numbers": self.chosen,
            "withstood below": self.withstood(k), "unbounded": list(self.unbounded), "shares": worst,
        }  # fmt: skip

    def lines(self, k: int) -> list[str]:
        """For people."""
        found = [
            f"If 1 in {1 / share:,.0f} lies, {' and '.join(did)}."
            for share in SHARES
            if (did := list(self._done(share, k)))
        ]
        if self.buckets > 1 and self.invented:
            found.append(f"Each of them can name {self.buckets:,} buckets at once: so many such groups.")
        if (most := self.withstood(k)) is not None:
            found.append(
                f"decode --robust withstands less than {most:.2%} of liars: more can invent one of {k} groups."
            )
        if self.chosen > 1 and found:
            found.append(
                f"That is of numbers that were given out; a liar who chooses hers counts for up to {self.chosen:.3g} "
                f"times as much, until decode notices."
            )
        return found + [f"What one liar can do to '{name}' is not bounded." for name in self.unbounded]

    def _done(self, share: float, k: int) -> Iterator[str]:
        if self.invented:
            yield f"a group of {100 * share * self.invented:.2g}% of the people can be invented"
        if self.moved is not None:
            far = f"by {share * self.moved:.2g} of the domain's radius" if share * self.moved < 2 else "anywhere"
            yield f"the centre of one of {k} equal groups moved {far}"
