"""The L2 mechanism: pure differential privacy for sums of vectors in few columns, with less noise than Laplace's.

Guarantee (Central; add-or-remove one row): one row changes at most one sum per level, by an integer vector of
Euclidean length at most ``bound.l2``. Each sum gets an integer vector of noise with P(x) proportional to exp(-|x| / s),
where s = levels * bound.l2 / eps. For any output y, and the sums a and b of two neighbouring data sets on one level,
P(y - a) / P(y - b) = exp((|y - b| - |y - a|) / s) <= exp(|a - b| / s) <= e^(eps / levels), since the normalisation is
the same around every lattice point. Levels compose to eps. So it is eps-DP with no delta, exactly, on integers.

A coordinate has variance (d + 1) s^2, where Laplace noise has 2 d s^2: three quarters of that in two columns, two
thirds in three, 0.55 in ten. Where Laplace noise is smaller, because the bound's L1 norm is small (columns of different
widths), the noise is Laplace's, with the guarantee of ``discrete-laplace``. The cost of drawing noise grows with d
(``core.exact_vectors``), hence the limit of ``MAX_COLUMNS``.

Source: Hardt, Talwar 2010 (the K-norm mechanism, for the Euclidean norm); Joseph, Kulesza, Yu 2025 (its variance beside
Laplace's and Gauss's). The exact sampler on integers is cloister's.
"""

from __future__ import annotations

from typing import ClassVar, Final

from cloister.noise.distributions import NARROW, Spherical
from cloister.noise.oracle import AnyChannel
from cloister.plugin import (
    UP,
    Bound,
    Budget,
    Central,
    InvalidInput,
    Measure,
    Noise,
    QuestionContext,
    Sensitivity,
    Space,
    additive_channel,
    component,
    enough_bits,
    pure_laplace,
)

MAX_COLUMNS: Final = 10
"""Columns at most: the sampler accepts one candidate in eleven, and one in sixty at sixteen columns."""


@component
class L2Mechanism:
    """Vector sums with noise on whole vectors, of scale levels times their L2 bound / eps."""

    trust = Central
    measure: ClassVar[Measure] = "pure"
    joint = True

    def open(self, space: Space, budget: Budget, context: QuestionContext, bound: Bound) -> AnyChannel:
        """Return a channel with the less noisy of the two laws.

        Raises:
            InvalidInput: more than ``MAX_COLUMNS`` columns.
        """
        if bound.dimension > MAX_COLUMNS:
            raise InvalidInput(
                f"'l2-mechanism' is for at most {MAX_COLUMNS} columns, not {bound.dimension}: use 'discrete-laplace'"
            )
        law, shift = noise(space, bound, budget)
        return additive_channel("l2-mechanism", budget, space, bound, law, shift, context.unit)

    def variance(self, space: Space, budget: Budget, context: QuestionContext, bound: Bound) -> float:
        return self.open(space, budget, context, bound).deviation ** 2


def noise(space: Space, bound: Bound, budget: Budget) -> tuple[Noise, int]:
    """Return the law with less variance, and the bits by which its integers are scaled up."""
    sensitivity, longest = Sensitivity.of(space, bound), space.levels * bound.l2
    if 2 * sensitivity.l1**2 < (bound.dimension + 1) * longest**2:
        return pure_laplace(sensitivity, budget)
    scale = longest / budget.epsilon * UP
    shift = enough_bits(scale, NARROW)
    return Spherical(scale * 2.0**shift, bound.dimension), shift
