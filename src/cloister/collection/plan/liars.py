"""Bounds on the influence of malicious users on a plan's answers: public, and stated before anybody is asked.

Of n people a share s lies, with blindly assigned numbers. A question asked of a share f of the users, whose level is
answered by one in T of these, is answered by s n f / T of them on average; each adds up to ``Gain.most`` to a bucket,
and the table is scaled up by T / f. So the shares cancel: s n ``most`` people can be fabricated, whatever is asked of
whom. A vector sum moves by s n ``usual`` bounds, and with it the centre of n / k people by s k ``usual``. If numbers
can be chosen, all malicious users answer the same question: T / f times as much, until ``server.shares`` notices.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, final

import attrs

from cloister.collection.plan.plan import CollectionPlan
from cloister.core.questions import Round
from cloister.core.reports import facts_of
from cloister.run.layers.levels import clustering, levels

SHARES = (0.001, 0.01, 0.05)
"""Shares of malicious people for which the influence is reported."""


@final
@attrs.frozen
class Harm:
    """Influence of malicious users in one round of a plan, at worst over its questions and levels.

    Args:
        invented: number of people by which one liar can raise the count of a bucket.
        buckets: number of buckets of her choice that one liar can raise so much at once.
        moved: distance by which a share s of liars can move the centre of one of k equal groups, over s, in radii of
            the domain (half its diameter); None if no vectors are asked.
        chosen: factor by which liars who choose their numbers, by the question that these lead to, count more.
        unbounded: mechanisms of unknown or unbounded influence.
    """

    invented: float
    buckets: int
    moved: float | None
    chosen: float
    unbounded: tuple[str, ...]

    @classmethod
    def of(cls, rounds: Sequence[Round[Any]], k: int, radius: float) -> Harm:
        """Compute the influence in all rounds, for k centres and the domain's radius in its units."""
        counts, vectors, chosen, unbounded = [(0.0, 0)], list[float](), 1.0, list[str]()
        for part in (part for round in rounds for part in round.parts):
            gains = facts_of(part.channel).gains
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

    def breakdown_share(self, k: int) -> float | None:
        """Return the share of liars that can fabricate one of k equal groups; ``decode`` withstands less."""
        return 1 / (k * self.invented) if self.invented and not self.unbounded else None

    def as_dict(self, k: int) -> dict[str, Any]:
        """Return plain data: for each share of liars, the share of people fabricated, and how far a centre moves."""
        worst = [
            {"share": s, "invented": s * self.invented, "moved": None if self.moved is None else s * self.moved}
            for s in SHARES
        ]
        return {
            "a report counts for": self.invented,
            "in buckets": self.buckets,
            "chosen numbers": self.chosen,
            "withstood below": self.breakdown_share(k),
            "unbounded": list(self.unbounded),
            "shares": worst,
        }

    def lines(self, k: int) -> list[str]:
        """Return lines for people."""
        text = [
            f"If 1 in {1 / share:,.0f} lies, {' and '.join(effects)}."
            for share in SHARES
            if (effects := list(self._effects(share, k)))
        ]
        if self.buckets > 1 and self.invented:
            text.append(f"Each of them can name {self.buckets:,} buckets at once, and so invent that many groups.")
        if (limit := self.breakdown_share(k)) is not None:
            text.append(
                f"decode --robust withstands less than {limit:.2%} of liars: more can invent one of {k} groups."
            )
        if self.chosen > 1 and text:
            text.append(
                f"This assumes assigned user numbers: a liar who chooses hers counts up to {self.chosen:.3g} times as "
                f"much, until decode notices."
            )
        return text + [f"The influence of one liar on '{name}' is unbounded." for name in self.unbounded]

    def _effects(self, share: float, k: int) -> Iterator[str]:
        if self.invented:
            yield f"a group of {100 * share * self.invented:.2g}% of the people can be invented"
        if self.moved is not None:
            distance = f"by {share * self.moved:.2g} of the domain's radius" if share * self.moved < 2 else "anywhere"
            yield f"the centre of one of {k} equal groups moved {distance}"


def harm(plan: CollectionPlan, rounds: Sequence[Round[Any]]) -> Harm:
    """Return the influence of malicious users on a plan, whose rounds are given."""
    every = levels(plan.compose(), plan.problem)
    # in a frame vectors are in its units, however wide the columns are, or of unknown width
    domain = plan.domain if clustering(every).wrapper is None else every[0].problem.domain
    return Harm.of(rounds, plan.k, domain.diameter / 2)
