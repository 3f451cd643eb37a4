"""Vector sums under local trust: every person sends one randomised vector.

Three independent choices: the randomiser of one unit vector (``codebook``, ``privunit``, ``duchi``), how buckets are
told apart (``channel``), and what the levels of a tree divide (``reports``).

Guarantee (Local; replace one row, or have none; pure, no delta): a person's unit vector is a function of her row and of
public coins (``unit_randomiser``). She sends it through an eps-DP randomiser once, or once per level at eps / T each,
so her whole report is eps-DP. Bucket and vector are protected together: neither is sent, and the sign that encodes the
bucket is part of the vector.

Unbiased: over the person's coins E z_i = s_i(b_i) x_i, and over the public ones E s_i(v) s_i(b_i) = [v = b_i]. So the
mean of sum_i s_i(v) z_i is the sum of the x_i in bucket v. Persons in no bucket add nothing on average, see
``unit_randomiser``.

Variance of a coordinate, n users, in units of the bound: n E |z|^2 / (d + 1) less the squares of the bucket's own rows,
the same for all buckets, and however many there are (``VectorAnswers.variance``). In one of the d + 1 dimensions it can
be above that average, in others below, by at most n per coordinate with 'privunit'; with 'duchi' all are equal.
"""

from __future__ import annotations

from typing import ClassVar

from cloister.plugin import Bound, Budget, InvalidInput, Local, Measure, QuestionContext, Space, component
from cloister.plugins.oracles.local.reports import Share, share_option
from cloister.plugins.oracles.local.vectors.channel import (
    ExplicitVectorChannel,
    HadamardVectorChannel,
    Randomised,
    answers,
    next_power_of_two,
    randomiser_option,
)

MAX_NUMBERS = 2**26
"""Limit of numbers in a summary whose buckets are all decoded at once."""


@component
class HadamardVector:
    """Vector sums of all buckets at once, by one fast Hadamard transform."""

    randomiser: Randomised = randomiser_option("one-byte")
    share: Share = share_option()

    trust = Local
    measure: ClassVar[Measure] = "pure"

    def open(self, space: Space, budget: Budget, context: QuestionContext, bound: Bound) -> HadamardVectorChannel:
        if sum(map(next_power_of_two, space.sizes)) * bound.dimension > MAX_NUMBERS:
            raise InvalidInput(
                f"'hadamard-vector' keeps a vector per bucket: {sum(space.sizes)} buckets of {bound.dimension} numbers "
                f"are too many; use 'explicit-histogram-vector', which is looked up bucket by bucket"
            )
        return HadamardVectorChannel(
            answers("hadamard-vector", self.randomiser, self.share, space, budget, context, bound)
        )

    def variance(self, space: Space, budget: Budget, context: QuestionContext, bound: Bound) -> float:
        return self.open(space, budget, context, bound).asked.variance


@component
class ExplicitHistogramVector:
    """Vector sums looked up bucket by bucket, in domains of any size. Chang et al. 2021, Algorithms 7 and 8."""

    randomiser: Randomised = randomiser_option("duchi")
    share: Share = share_option()

    trust = Local
    measure: ClassVar[Measure] = "pure"

    def open(self, space: Space, budget: Budget, context: QuestionContext, bound: Bound) -> ExplicitVectorChannel:
        return ExplicitVectorChannel(
            answers("explicit-histogram-vector", self.randomiser, self.share, space, budget, context, bound)
        )

    def variance(self, space: Space, budget: Budget, context: QuestionContext, bound: Bound) -> float:
        return self.open(space, budget, context, bound).asked.variance
