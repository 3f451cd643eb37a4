"""Split-and-mix: counts and vector sums with a trusted curator's noise, from users who trust a shuffler only.

Every user adds to each *slot* (a coordinate of a place) her number, 0 in places that she is not in, and her share of
the noise; splits it into m shares, uniform but for their sum modulo 2^w; and sends each share with its slot. The server
adds up.

Guarantee (Shuffled; replace one row, or have none): of ``people`` users, at least ``min_honest_users`` = ceil(honest *
people) draw their noise and shares correctly and keep them secret; the others may do and reveal anything. Then whoever
sees all shuffled messages learns what mu-GDP (or zCDP) noise on the sums allows, but for delta:

* *Sensitivity, jointly over all places, levels and coordinates.* Replacing a row takes its vector x out of one place of
  each level and puts x' into one. In the same place the change is x' - x, of norm at most 2 C, C the bound in lattice
  integers; in two places sqrt(|x|^2 + |x'|^2) <= sqrt(2) C. So 2 C sqrt(levels) for sums. A count changes by sqrt(2)
  per level, or by 2 if the level is hashed, since two buckets of one place may have opposite signs there. Vectors are
  integers before anything is drawn.
* *Noise.* Each user draws N_Z(0, s^2) on every slot, s >= 22. h = ``min_honest_users`` of them together are within a
  factor e^(+-tau), tau = 10 sum_{k<h} exp(-2 pi^2 s^2 k / (k + 1)) < e^-4000, of N_Z(0, h s^2) (Kairouz, Liu, Steinke
  2021, the theorem on sums of discrete Gaussians), whose sigma = sensitivity / mu is at least 2^20 (numbers are scaled
  up by a power of two): ``cloister.accounting.composition`` pays for the rest. A sum modulo 2^w is post-processing of
  the sum. If all users are honest, the variance is 1 / honest times what the guarantee needs.
* *Secrecy.* Given what each honest user adds, the messages of a slot reveal nothing but the sum, up to a statistical
  distance of 2^-nu; 2^-nu times the number of slots is within t, the largest distance that the budget's delta pays for.
  ``secrecy`` has the proof, m, and the reason why deltas add here.

If the shuffler is not honest nothing holds: a user's own shares add up to her number and little noise.

Messages per user: slots * m, m about 2 + (2 nu + w) / (log2 n + 1.4): 8 to 14. That is a lot: ``buckets`` hashes large
spaces to fewer places (``hashed_buckets``), and ``most_messages`` limits them. All users answer: with a share of the
users the noise would not shrink.

Corrections to the paper (Algorithms 9-11, Theorem 35): vectors are integers of norm C, and so is sigma; the sum is of
the quantised vector, modulo 2^w, and centred; one joint bound in place of one per bucket; every user adds noise, not
the first one only.

Source: Chang, Ghazi, Kumar, Manurangsi 2021, appendix C; Ishai, Kushilevitz, Ostrovsky, Sahai 2006; Balle, Bell,
Gascon, Nissim 2020; Kairouz, Liu, Steinke 2021 (the distributed discrete Gaussian).
"""

from __future__ import annotations

import math
from typing import ClassVar

from cloister.core.reproducible_math import more_bits
from cloister.plugin import (
    UP,
    Bound,
    Budget,
    InvalidInput,
    Measure,
    QuestionContext,
    Shuffled,
    Space,
    component,
    enough_bits,
    option,
)
from cloister.plugins.oracles.shuffled.hashed_buckets import SMALL, Layout, default_places
from cloister.plugins.oracles.shuffled.mixing import MAX_BITS, MixingChannel
from cloister.plugins.oracles.shuffled.secrecy import MIN_USERS, enough_shares, max_distance


def sensitivity_of(hashed: tuple[bool, ...], bound: Bound | None) -> float:
    """Return the L2 sensitivity of all numbers to one replaced row.

    Args:
        hashed: per level.
        bound: of vectors; None for counts.
    """
    return math.sqrt(sum(4 if bound or level else 2 for level in hashed)) * (bound.l2 if bound else 1)


@component
class SplitAndMix:
    """Counts or vector sums from all users' shuffled shares, with a trusted curator's noise."""

    trust = Shuffled
    measure: ClassVar[Measure] = "gaussian"
    uses_delta = True
    asks_all_users = True
    honest: float = option(
        default=0.9,
        low=0.01,
        high=1.0,
        help="smallest share of the planned users who draw their noise and keep their shares secret",
    )
    buckets: int | None = option(
        default=None,
        low=2,
        high=2**16,
        help="places that the buckets of a large level are hashed to; none: no hashing if "
        "most_messages allows it, else by the noise of collisions",
    )
    most_messages: int = option(
        default=2**20,
        low=1,
        high=2**40,
        unit="messages",
        help="limit of messages per user",
    )

    def open(self, space: Space, budget: Budget, context: QuestionContext, bound: Bound | None = None) -> MixingChannel:
        """Return a channel with noise for the joint L2 sensitivity, and the secrecy that the budget's delta pays for.

        Raises:
            InvalidInput: not all users are asked, too few are honest, no delta, or too many messages.
        """
        name, people = "split-and-mix" if bound else "split-and-mix-counts", context.people
        if context.rows < people:
            raise InvalidInput(
                f"'{name}' asks all users, since its noise does not shrink with their number: set the method's option "
                "share=budget"
            )
        honest_users = math.ceil(self.honest * people)
        if honest_users < MIN_USERS:
            raise InvalidInput(f"'{name}' needs at least {MIN_USERS} honest users, not {honest_users}")
        distance = max_distance(budget.delta, budget.mu)
        if not distance > 0:
            raise InvalidInput(
                f"'{name}' spends delta, and its budget has none: pass delta (less than one over the number of users)"
            )
        layout, security = self._laid(space, bound, budget, context, distance)
        sigma = sensitivity_of(layout.hashed, bound) / budget.mu * UP
        shift, unit = enough_bits(sigma), context.unit if bound else 1.0
        return MixingChannel(
            name,
            budget,
            layout,
            bound,
            people,
            honest_users,
            sigma * 2.0**shift,
            shift,
            unit,
            security,
            self.most_messages,
        )

    def _laid(
        self, space: Space, bound: Bound | None, budget: Budget, context: QuestionContext, distance: float
    ) -> tuple[Layout, float]:
        """Return the layout of places, and -log2 of each slot's share of the distance.

        Buckets are not hashed if that takes few enough messages; else large levels get ``default_places``.
        """
        width, seed = bound.dimension if bound else 1, context.seed.child("places")

        def bits(layout: Layout) -> float:
            return more_bits(math.log2(sum(layout.places) * width / distance) + 2.0**-20)

        if self.buckets is None:
            unhashed = Layout(space, space.sizes, seed)
            shares = enough_shares(math.ceil(self.honest * context.people), MAX_BITS, bits(unhashed))
            if shares is not None and sum(space.sizes) * width * shares <= self.most_messages:
                return unhashed, bits(unhashed)
            noise = sensitivity_of((True,) * space.levels, bound) / budget.mu / math.sqrt(self.honest)
            places = default_places(context.people, noise / (bound.l2 if bound else 1))
            layout = Layout.of(space, places, places * SMALL, seed)
        else:
            layout = Layout.of(space, self.buckets, self.buckets, seed)
        return layout, bits(layout)

    def variance(self, space: Space, budget: Budget, context: QuestionContext, bound: Bound | None = None) -> float:
        return self.open(space, budget, context, bound).deviation ** 2
