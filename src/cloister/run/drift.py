"""Test for drift: whether new rows lie about an earlier result's centres as its own rows did.

``kept-centers`` counts new rows by nearest centre and distance. The test compares these shares with the earlier
result's: its sizes, and its distances if ``kept-centers`` made it too. It is post-processing of released values.

Differences of shares are taken in standard errors of sampling and noise on both sides. The two statistics are the
largest difference over groups and distances (rows of a group beyond a distance), and the sum of squared differences of
whole groups. Their joint null distribution is simulated: samples of the pooled shares, with Laplace noise of the stated
errors. A shift is reported if the smaller of the two p-values is as small in less than ``LEVEL`` of the draws.

Power: shifts detected in 100 runs each at epsilon = 0.1, where a tenth of one group's rows among 20,000 changed
(p < 0.005). The reference result has epsilon = 0.3, in brackets 0.1. Tables of five even groups in four columns, of
four groups of 10 to 40% in two, and of three of 20 to 50% in eight:

    moved to another group        99   (97)      100  (100)      100  (100)
    2.5 times as far out         100  (100)       98   (94)      100  (100)
    a new group                  100  (100)      100  (100)      100  (100)
    none                           1    (0)        0    (0)        0    (0)

Of 1,200 runs without a shift, 8 reported one (reference of 0.1; these tables, and the next). Eight even groups in six
columns are too small: 77 (72), 40 (14) and 98 (76) of 100, and 2 (1) without a shift. Rows themselves say little more:
without noise on either side the first is detected in 80 (87 at p < 0.01), since two samples of 2,500 rows differ by as
much. Against only the sizes that auto released at epsilon = 1, 50 runs each: moves in 98% or more, a new group in 2 to
100%, rows farther out and no shift never. The change of cost is rough: it misses changes within a bin (from a distance
to twice that) and rows in bins that noise hides; it showed a quarter to nine tenths of a change.

Source: simulated tests of noisy tables (Gaboardi, Lim, Rogers, Vadhan 2016); the statistics are cloister's own.
"""

from __future__ import annotations

from typing import Any, final

import attrs
import numpy as np

from cloister.core.errors import Damaged, InvalidInput
from cloister.core.randomness import PublicRng
from cloister.core.types import Bools, Floats, Ints
from cloister.run.estimates import Estimate, share_errors
from cloister.run.result import Result

LEVEL = 0.005
"""p-value below which a shift is reported."""

DRAWS, AT_ONCE = 4_000, 200
"""Draws from the null distribution, in all and per batch."""

SEEN, NAMED = 4.0, 3.0
"""Standard errors beyond which a bin holds rows, and beyond which a group's change is marked."""

MOST = 2.0**53
"""Counts from here on are damage: doubles no longer hold every whole number."""


@final
@attrs.frozen(eq=False)
class Compared:
    """Noisy counts of rows by group and bin of distance, then and now.

    Args:
        counts: (2, k, b).
        errors: (2, k, b) standard errors.
        squares: (b,) squared distances of the bins; 0 if unknown.
    """

    counts: Floats
    errors: Floats
    squares: Floats

    def tests(self, counts: Floats) -> tuple[Floats, Floats, Floats]:
        """Return statistics of counts (..., 2, k, b).

        Returns:
            The test statistics (..., 2), the groups' changes (..., k) in standard errors, and the change of the mean
            squared distance (...), as a logarithm.
        """
        occupied = self.held(counts)
        totals = np.maximum(np.where(occupied, counts, 0.0).sum(axis=(-2, -1), keepdims=True), 1.0)
        shares = np.where(occupied, counts, 0.0) / totals
        variances = ((self.errors / totals) ** 2 + self.pooled / totals).sum(axis=-3) * occupied[..., 0, :, :]
        moved = np.cumsum((shares[..., 1, :, :] - shares[..., 0, :, :])[..., ::-1], axis=-1)
        beyond = moved / np.sqrt(np.maximum(np.cumsum(variances[..., ::-1], axis=-1), 1e-300))
        statistics = np.stack([np.abs(beyond).max(axis=(-2, -1)), (beyond[..., -1] ** 2).sum(axis=-1)], axis=-1)
        costs = np.log(np.maximum(shares.sum(axis=-2) @ self.squares, 1e-300))
        return statistics, beyond[..., -1], costs[..., 1] - costs[..., 0]

    def held(self, counts: Floats) -> Bools:
        """Return the mask (..., 1, 1, b) of bins from the first to the last whose rows exceed the noise."""
        noise = SEEN * np.sqrt((self.errors**2).sum(axis=(0, 1)))
        clear = counts.sum(axis=(-3, -2), keepdims=True) > noise
        first, last = np.maximum.accumulate(clear, axis=-1), np.maximum.accumulate(clear[..., ::-1], axis=-1)[..., ::-1]
        return np.asarray(first & last)

    @property
    def pooled(self) -> Floats:
        """Shares (k, b) of all rows together: the null hypothesis."""
        rows = np.maximum(self.counts.sum(axis=0), 0.0) * self.held(self.counts)[0]
        return np.asarray(rows / rows.sum() if rows.any() else np.full(rows.shape, 1 / rows.size), np.float64)

    def drawn(self, g: np.random.Generator) -> Floats:
        """Return counts (n, 2, k, b) drawn under the null hypothesis."""
        totals = np.maximum(self.counts.sum(axis=(1, 2)), 1.0).astype(int)
        rows = np.stack([g.multinomial(n, self.pooled.ravel(), AT_ONCE) for n in totals], axis=1)
        noise = g.laplace(0.0, 1.0, (AT_ONCE, *self.counts.shape)) * self.errors / np.sqrt(2)
        return np.asarray(rows.reshape(noise.shape) + noise, np.float64)


@final
@attrs.frozen(eq=False)
class Drift:
    """Changes since an earlier result.

    Args:
        shifted: True if ``chance`` is below ``LEVEL``.
        chance: p-value.
        shares: (2, k) of the rows in each group, then and now.
        apart: (k,) changes of the shares, in standard errors.
        cost: ratio of the mean squared distance to the earlier one; None if the earlier result released no distances.
        cost_error: standard error of ``cost``, or None.
        called: display names of the groups.
        share_errors: (2, k) standard errors of the shares.
    """

    shifted: bool
    chance: float
    shares: Floats
    apart: Floats
    cost: float | None
    cost_error: float | None
    called: tuple[str, ...]
    share_errors: Floats

    @property
    def text(self) -> str:
        """Summary for people."""
        verdict = "SHIFTED: these rows are not as those of the centres were" if self.shifted else "No shift is seen"
        lines = [f"{verdict} (as much happens by chance in {self.chance:.2g} of all cases)."]
        if self.cost is None:
            lines.append(
                "The earlier result released no distances, so sizes alone were compared. Save this one (--out): what "
                "is compared with it tells how far rows are from the centres, too."
            )
        else:
            lines.append(
                f"Mean squared distance from the centres: about {Estimate(self.cost, self.cost_error).text} times what "
                f"it was."
            )
        for i, change in enumerate(self.apart):
            changed = ", changed" if abs(change) > NAMED else ""
            both = zip(self.shares[:, i].tolist(), self.share_errors[:, i].tolist(), strict=True)
            then, now = (Estimate.of_share(*share).text for share in both)
            lines.append(f"  group {self.called[i]}: {then} of the rows, now {now}{changed}")
        return "\n".join(lines)

    def as_dict(self) -> dict[str, Any]:
        """Return plain data, for programs."""
        return {name: v.tolist() if isinstance(v, np.ndarray) else v for name, v in attrs.asdict(self).items()}


def drift(then: Result, now: Result) -> Drift:
    """Compare an earlier result with one that ``kept-centers`` made of the same centres. Released values only.

    Raises:
        InvalidInput: the earlier result released no sizes with standard errors.
        Damaged: its counts are damaged.
    """
    both, g = _compared(then, now), PublicRng.from_seed(0).child("drift").generator()
    observed, apart, change = both.tests(both.counts)
    draws = [both.tests(both.drawn(g)) for _ in range(DRAWS // AT_ONCE)]
    law = np.concatenate([batch[0] for batch in draws])
    ranks = [_rarest(law, statistics) for statistics in (law, observed[None])]
    chance = float(1 + (ranks[0] <= ranks[1]).sum()) / (1 + len(law))
    sizes = np.maximum(both.counts.sum(axis=2), 0.0)
    cost = float(np.exp(change)) if both.squares.any() else None
    low, high = np.quantile(np.concatenate([batch[2] for batch in draws]), [0.159, 0.841])
    error = None if cost is None else cost * float(high - low) / 2
    errors = np.sqrt((both.errors**2).sum(axis=2))
    stated = [share_errors(*group) for group in zip(sizes, errors, strict=True)]
    shares = sizes / np.maximum(sizes.sum(axis=1), 1.0)[:, None]
    return Drift(chance < LEVEL, chance, shares, apart, cost, error, tuple(then.called), np.array(stated))


def check_released(result: Result) -> None:
    """Raise InvalidInput if a result released nothing that rows could be compared with."""
    if "counted" not in result.details and (result.weights is None or "weights_error" not in result.details):
        raise InvalidInput(
            "the earlier result released no sizes with standard errors: count its own rows first "
            "(fit --method kept-centers --start RESULT), and compare with what that saves"
        )


def _rarest(law: Floats, statistics: Floats) -> Ints:
    """Return, for each of (m, t) statistics, the least number over t of draws (n, t) that are as large."""
    order = np.sort(law, axis=0)
    counts = [len(law) - np.searchsorted(order[:, j], statistics[:, j]) for j in range(law.shape[1])]
    return np.asarray(np.min(counts, axis=0), np.int64)


def _compared(then: Result, now: Result) -> Compared:
    """Return the two results' counts. Raises Damaged if the earlier ones are no counts, or of other groups."""
    check_released(then)
    try:
        compared = _paired(then, now)
        if not ((np.abs(compared.counts) < MOST).all() and ((compared.errors >= 0) & (compared.errors < MOST)).all()):
            raise ValueError("no counts")
        return compared
    except (KeyError, TypeError, ValueError):
        raise Damaged("the result's counts are damaged: restore the file, or make it again") from None


def _paired(then: Result, now: Result) -> Compared:
    new, error = np.array(now.details["counted"]), float(now.details["counted_error"])
    edges = np.array(now.details["distances"]["edges"])
    if "counted" in then.details and np.array_equal(then.details["distances"]["edges"], edges):
        errors = np.array([float(then.details["counted_error"]), error])[:, None, None]
        counts = np.stack([np.array(then.details["counted"]), new])
        return Compared(counts, np.broadcast_to(errors, counts.shape), 0.625 * edges**2)
    sizes = [(result.weights, result.details["weights_error"]) for result in (then, now)]
    counts, errors = np.moveaxis(np.array(sizes, np.float64), 1, 0)[..., None]
    return Compared(counts, errors, np.zeros(1))
