"""Counts over any number of buckets from a few short messages per user, nearly as exact as a curator's.

Every user sends, for each level, one message (v, h_v(x)): a private uniform number v, which names a public hash into b
values, and the hash of her bucket x; and t *blanket* messages (v, y), both uniform, that look the same. In no bucket
she sends one blanket message more.

Guarantee (Shuffled; replace one row, or have none; (eps, delta)): of ``people`` users at least ``min_honest_users`` =
ceil(honest * people) send their blanket messages and do not say which they are. Then all shuffled messages together are
(eps, delta)-DP at the budget's eps and delta: ``blankets`` has the exact divergence for M = t * least, its proof for
any hash, and the composition over levels; b is the largest for which it holds, and no asymptotic bound enters. If the
shuffler is not honest nothing holds: her one message is among t others.

Unbiased, over v: of N messages at a level from n = N / (1 + t) users, N_x have h_v(x) = y. Those of other users, and
all blanket messages, do with chance 1 / b, independently. Estimate (N_x - N / b) / (1 - 1 / b), variance (N - n_x) / b
/ (1 - 1 / b) for a bucket with n_x rows. With M / b = lambda, which is 40 to 50 at (1, 1e-6) whatever n and the domain
are, the standard deviation is sqrt(lambda (1 + 1 / (honest t))) and more: 8 rows; levels make lambda grow in
proportion.

Why this protocol: of the published ones it is the one whose messages do not grow with the domain, with error that does
not either. Count sketches with public buckets (Ghazi, Golowich, Kumar, Pagh, Velingker 2021) take poly-logarithmically
many messages, with large constants; blankets of each bucket (Balcer, Cheu 2020) and bits of each bucket (Cheu, Zhilyaev
2022) as many as there are buckets, or hashes of them. Luo, Wang and Yi (2022) send one message and o(1) blankets; here
t is 4 by default, for an error 10% above that of many, and hashes are those of ``oracles.local.hashing``, of 63-bit
ids.

For a few hundred buckets ``split-and-mix-counts`` is more exact, at more messages; it composes with other Gaussian
noise without loss.

Source: Luo, Wang, Yi 2022 (Frequency estimation in the shuffle model with almost a single message), with the privacy
proof of ``blankets``.
"""

from __future__ import annotations

import math
from typing import ClassVar

from cloister.core.buckets import QuestionContext, Space
from cloister.core.budget import Budget, Measure
from cloister.core.errors import InvalidInput
from cloister.core.fixed_order import more_bits_within
from cloister.core.registry.components import component, option
from cloister.core.trust import Shuffled
from cloister.plugins.oracles.local.counts.hashed_response import LARGEST
from cloister.plugins.oracles.shuffled.blankets import delta_of, most_values
from cloister.plugins.oracles.shuffled.tagged import BlanketChannel

NAME = "blanket-histogram"
COARSE = 10
"""Bits of the delta that is declared: those of a transform differ between machines from the 20th on."""

CHOICES = tuple(2**i for i in range(2, 13))
MAX_BLANKETS = CHOICES[-1]
ENOUGH = 16
"""Hash values: with so many, a message that says nothing of a bucket agrees with it one time in 16."""


@component
class BlanketHistogram:
    """Counts from shuffled hash values among uniform ones, for domains of any size."""

    trust = Shuffled
    measure: ClassVar[Measure] = "pure"
    uses_delta = True
    asks_all_users = True
    honest: float = option(
        default=0.9,
        low=0.0,
        high=1.0,
        above=True,
        help="at least this share of the planned users send their blanket messages",
    )
    blankets: int | None = option(
        default=None,
        low=1,
        high=MAX_BLANKETS,
        unit="messages",
        help="uniform messages that every user sends beside her own, per level; none: 4, more where few users must "
        "hide each other",
    )

    def open(self, space: Space, budget: Budget, context: QuestionContext) -> BlanketChannel:
        if not budget.delta > 0:
            raise InvalidInput(
                f"'{NAME}' spends a delta of its own, and its budget has none: pass delta (less than one over the "
                f"number of users)"
            )
        if context.rows < context.people:
            raise InvalidInput(
                f"'{NAME}' asks everyone: divide the budget and not the users (option share=budget of the method)"
            )
        least, epsilon = math.ceil(self.honest * context.people), budget.epsilon

        def enough(blankets: int) -> bool:
            return delta_of(epsilon, blankets * least, ENOUGH, space.levels) <= budget.delta

        blankets = self.blankets or next((t for t in CHOICES if enough(t)), MAX_BLANKETS)
        values = most_values(epsilon, budget.delta, blankets * least, space.levels, LARGEST)
        if values < 2:
            raise InvalidInput(
                f"'{NAME}' cannot hide one of {least} honest users with {blankets} blanket messages of each: give "
                f"this question a larger share of the budget, or set the option blankets"
            )
        delta = delta_of(epsilon, blankets * least, values, space.levels)
        delta = more_bits_within(delta, budget.delta, COARSE)
        seed = context.seed.child("hash")
        return BlanketChannel(NAME, budget, space, context.people, least, blankets, values, delta, seed)

    def variance(self, space: Space, budget: Budget, context: QuestionContext) -> float:
        return self.open(space, budget, context).deviation ** 2
