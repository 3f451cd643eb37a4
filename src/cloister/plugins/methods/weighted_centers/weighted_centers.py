"""WeightedCenters: k-means and k-median under local trust in a constant number of rounds.

1. Candidates Y: ``CentersProcedure`` for each of some radii and repetitions, side by side, in three rounds.
2. a(i, x): the centre that a user created for the smallest radius, or a nearer one of a smaller radius; rows per centre: one round.
3. W: the centres with certainly many; b(i, x) is a(i, x) or the nearest in W; rows per centre: one round.
4. Any non-private solver on W with these weights: k-means or k-median.

Guarantee: the trust model, neighbouring relation, epsilon and delta of the oracles in its slots, composed by the accountant. The number of
rounds, five (four with ``assign=nearest``), and what each spends do not depend on answers: lists have a public length. What a user works out in
a round, she works out from her row and from published values alone. By default every user answers one question of all rounds, with all
of epsilon (Local); deltas are for the step whose oracle spends one.

Constants. What the paper hides in O() is an option; docs/rounds_accuracy.md has the curves. In short: thresholds are in standard errors of the count
that they judge, since t is proportional to that; radii and repetitions are as many as leave a cluster of n / k rows ``signal`` standard
errors of an interval's count, since each has only its share of the users. Boxes are 2.5 r / sqrt(d) wide per interval, not
2 r c sqrt(ln(d n / beta) / d): with its c of 18 and more (thirty projections, n = 1e6) that is never smaller than the domain. Vectors are clipped to 0.7 r, since noise is in
proportion to the bound and a cluster tighter than r sits near the middle.

Corrections to the paper: R radii at (eps / R, delta / R), where floor(log2 n) + 1 radii at delta / log n overspend; sharing by users;
a user who created no centre is assigned to the nearest.

Source: Stemmer 2021, sections 3 and 4; Kaplan and Stemmer 2018 (``assign=nearest``).
"""

from __future__ import annotations

import math
from typing import Any, Generic, Literal, TypeAlias

import numpy as np

from cloister.core.buckets import Space
from cloister.core.budget import Budget
from cloister.core.clustering import Clustering, Coreset, Errors, Problem
from cloister.core.errors import InvalidInput
from cloister.core.questions import Question, count
from cloister.core.randomness import ANY_KEY, PublicRng
from cloister.core.registry.components import component, option, slot
from cloister.core.roles import FrequencyOracle, NonPrivateSolver, VectorSumOracle
from cloister.core.session import Session
from cloister.core.trust import Local, Shuffled, T
from cloister.core.types import Bools, Floats, Ints
from cloister.plugins.methods.post_processing import held, nearest
from cloister.plugins.methods.weighted_centers.assignment import Assigned, Reassigned
from cloister.plugins.methods.weighted_centers.budget_shares import Shares, Sharing, Step
from cloister.plugins.methods.weighted_centers.centers_procedure import Constants
from cloister.plugins.methods.weighted_centers.good_centers import Found, GoodCenters
from cloister.plugins.methods.weighted_centers.heavy_hitters import Prefixes
from cloister.plugins.methods.weighted_centers.lsh import PStable

PLANS = ((3, 4), (2, 4), (1, 6), (1, 5), (1, 4), (1, 3))
"""Radii and repetitions, the most demanding first."""

Divided: TypeAlias = Literal["auto", "users", "budget"]


def divided(what: str) -> Any:
    """An option that says how radii, repetitions or steps are paid for."""
    return option(
        default="auto", choices=("auto", "users", "budget"),
        help=f"what {what} divide: the users (each answers one, with all of epsilon), everyone's epsilon (as the paper does for radii "
        "and steps), or as the trust model has it (users under Local)",
    )  # fmt: skip


@component
class WeightedCenters(Generic[T]):
    """Candidate centres of several radii, weighted twice, and clustered."""

    frequencies: FrequencyOracle[T] = slot("asked-local-hashing", help="how many rows fall in each bucket")
    vectors: VectorSumOracle[T] = slot("hadamard-vector", help="what the rows of each region add up to (LDP-AVG)")
    solver: NonPrivateSolver = slot("kmeans++", help="clusters the weighted centres (step 6)")
    radii: int | None = option(
        default=None,
        low=1,
        high=32,
        help="radii, each half of the one before; none: as many as ``signal`` allows, at most three",
    )
    widest: float = option(
        default=0.35,
        low=0.0,
        high=1.0,
        above=True,
        unit="radii of the domain",
        help="the largest of them; the paper: 1",
    )
    repetitions: int | None = option(
        default=None,
        low=1,
        high=64,
        help="M: hash functions per radius; none: as many as ``signal`` allows, three to six",
    )
    signal: float = option(
        default=6.0,
        low=0.0,
        unit="standard errors",
        help="of an interval's count, that n / k rows should be, where radii and repetitions are chosen",
    )
    projections: int = option(default=3, low=1, high=64, help="m: of a hash function")
    near: float = option(
        default=0.5, low=0.0, high=1.0, above=True, help="p: chance that points a radius apart share a hash value"
    )
    far: float = option(
        default=0.01,
        low=0.0,
        high=1.0,
        above=True,
        help="q: chance that points c radii apart do: sets c, which is reported",
    )
    bits: int = option(default=12, low=1, high=62, help="of a hash value; up to 20 all values can be looked at")
    prefix: int = option(default=12, low=1, high=20, help="bits per step of the search for heavy hash values")
    longest: int = option(default=32, low=1, high=4096, help="hash values that are followed, per radius and repetition")
    heavy: float = option(default=4.0, low=0.0, unit="standard errors", help="a hash value's count, to be followed")
    interval: float = option(
        default=2.5,
        low=0.0,
        high=1e6,
        above=True,
        unit="radii over sqrt(d)",
        help="length of an interval; a box is three wide",
    )
    norm: float = option(
        default=0.7, low=0.0, above=True, unit="radii", help="rows are clipped to this distance from their box's middle"
    )
    close: float = option(
        default=3.0, low=0.0, above=True, unit="radii", help="5 c: a row this near to a centre can have created it"
    )
    sure: float = option(default=2.0, low=0.0, unit="standard errors", help="counts of steps 7 and 8, to keep a centre")
    weighty: float = option(default=3.0, low=0.0, unit="standard errors", help="of a centre's weight, to be in W")
    assign: Literal["created", "nearest"] = option(
        default="created", choices=("created", "nearest"),
        help="created: prefer the centre that a row created, then re-assign (Stemmer); nearest: the nearest centre, once (Kaplan and Stemmer)",
    )  # fmt: skip
    steps_share: Divided = divided("steps")
    radii_share: Divided = divided("radii")
    repetitions_share: Divided = divided("repetitions")
    hash_share: float = option(default=0.1, low=0.0, above=True, help="of step 2: hash values")
    axis_share: float = option(default=0.35, low=0.0, above=True, help="of step 4: intervals")
    size_share: float = option(default=0.1, low=0.0, above=True, help="of step 7: rows per region")
    sum_share: float = option(default=0.2, low=0.0, above=True, help="of step 7: sums per region")
    check_share: float = option(default=0.1, low=0.0, above=True, help="of step 8")
    assign_share: float = option(default=0.075, low=0.0, above=True, help="of a")
    weigh_share: float = option(default=0.075, low=0.0, above=True, help="of b")

    def cluster(self, problem: Problem, session: Session[T], rng: PublicRng) -> Clustering:
        radii, repetitions = self.plan(problem)
        shares = self.shares(problem, radii, repetitions, rng.child("users"))
        found = Found.of(self.good_centers(problem, radii, repetitions, rng), shares, session)
        weights, errors = self._weighed(session, shares, found, None, problem)
        kept = np.ones(len(weights), bool)
        if self.assign == "created":
            kept = in_w(weights, self.weighty * errors)
            weights, errors = self._weighed(session, shares, found, kept, problem)
        coreset = self._coreset(found, kept, weights, errors)
        centers = self.solver.solve(session.release(coreset), problem.k, rng.child("solve"))
        weights = held(nearest(coreset.points, centers), coreset.weights, problem.k)
        details = {
            "radii": radii, "repetitions": repetitions, "candidates": len(found.points), "weighted": int(kept.sum()),
            "c": PStable(1.0, self.near, self.far, self.projections).c,
        }  # fmt: skip
        return Clustering(problem.domain.truncate(centers + problem.domain.middle), weights, details)

    def plan(self, problem: Problem) -> tuple[int, int]:
        """Radii and repetitions: as given, or the first of ``PLANS`` in which a cluster of n / k rows stands out of an interval's count."""
        for radii, repetitions in PLANS:
            chosen = self.radii or radii, self.repetitions or repetitions
            if self._signal(problem, *chosen) >= self.signal:
                return chosen
        return self.radii or 1, self.repetitions or PLANS[-1][1]

    def _signal(self, problem: Problem, radii: int, repetitions: int) -> float:
        """n / k rows, in standard errors of a count of step 4."""
        spend = self.shares(problem, radii, repetitions, ANY_KEY).of_pair("axes", (0, 0))
        space = Space((2**self.bits,) * problem.domain.dimension)
        variance = self.frequencies.variance(space, spend, problem.setting(spend))
        return problem.rows * spend.fraction / problem.k / math.sqrt(variance) if variance else math.inf

    def shares(self, problem: Problem, radii: int, repetitions: int, seed: PublicRng) -> Shares:
        """What each question may spend."""
        weights: dict[Step, float] = {
            "hashes": self.hash_share, "axes": self.axis_share, "sizes": self.size_share, "sums": self.sum_share,
            "check": self.check_share, "assign": self.assign_share,
        }  # fmt: skip
        if self.assign == "created":
            weights["weigh"] = self.weigh_share
        spender = {step: self.vectors if step == "sums" else self.frequencies for step in weights}
        failing: list[Step] = [step for step in weights if spender[step].failing]
        return Shares.of(
            problem.budget, weights, radii, repetitions, radii_by=self._by(self.radii_share),
            repetitions_by=self._by(self.repetitions_share), steps_by=self._by(self.steps_share, rounds=True),
            failing=failing, seed=seed,
        )  # fmt: skip

    def _by(self, given: Divided, rounds: bool = False) -> Sharing:
        """Users where that is private and helps. Under Shuffled trust people draw their role anew in each round: steps, which are asked in
        several rounds, share everybody's epsilon; and all else does where oracles need noise from everybody."""
        trust = self.frequencies.trust
        if rounds and trust is Shuffled and given == "users":
            raise InvalidInput("under Shuffled trust nobody is the same user in two rounds: set steps_share=budget")
        if given != "auto":
            return given
        everybody = any(oracle.everybody for oracle in (self.frequencies, self.vectors))
        alone = trust is Local or (trust is Shuffled and not rounds and not everybody)
        return "users" if alone else "budget"

    def good_centers(self, problem: Problem, radii: int, repetitions: int, rng: PublicRng) -> list[GoodCenters[T]]:
        """One per radius, the largest first."""
        constants = Constants(
            near=self.near, far=self.far, projections=self.projections, prefixes=self.prefixes, longest=self.longest,
            heavy=self.heavy, interval=self.interval, norm=self.norm, close=self.close, sure=self.sure,
        )  # fmt: skip
        return [
            GoodCenters.sample(
                problem.domain, self.widest * problem.domain.reach / 2**i, repetitions, constants, self.frequencies,
                self.vectors, i, rng.child("radius", i),
            )
            for i in range(radii)
        ]  # fmt: skip

    @property
    def prefixes(self) -> Prefixes:
        """As long as a step of the search allows, the last one whole."""
        return Prefixes(tuple(range(self.bits, 0, -self.prefix))[::-1])

    def _weighed(
        self, session: Session[T], shares: Shares, found: Found, kept: Bools | None, problem: Problem
    ) -> tuple[Floats, Floats]:
        """Steps 2 and 3 (no ``kept``) or 4 and 5: rows (m,) of each centre of Y, and their standard errors. One round."""
        step: Step = "assign" if kept is None else "weigh"
        most = self.longest * len(found.of_pairs)
        asked: list[Question[T, Any]] = []
        for group in shares.groups:
            own = found.own(group.pairs) if self.assign == "created" else ()
            a = Assigned(own, found.centers, found.ranks, problem.domain.reach, most)
            cells = a if kept is None else Reassigned(a, kept)
            asked.append(count(cells, via=self.frequencies, spend=group.spend[step]))
        return added(session.ask(*asked), np.arange(len(found.points)), [g.spend[step] for g in shares.groups])

    def _coreset(self, found: Found, kept: Bools, weights: Floats, errors: Floats) -> Coreset:
        """W with weights b, relative to the domain's middle; one point there if nothing was found."""
        if not kept.any():
            return Coreset(np.zeros((1, found.points.shape[1])), np.zeros(1))
        sums = found.errors * np.maximum(weights, 1.0)
        return Coreset(found.points[kept], weights[kept], errors=Errors(errors[kept], sums[kept]))


def in_w(weights: Floats, least: Floats) -> Bools:
    """Step 4: which centres are heavy enough; the heaviest, if none is."""
    kept: Bools = weights >= least
    if len(kept) and not kept.any():
        kept[np.argmax(weights)] = True
    return kept


def added(tables: tuple[Any, ...], ids: Ints, spends: list[Budget]) -> tuple[Floats, Floats]:
    """Counts of all users from those of disjoint groups, each scaled up to all users by its table, and their standard errors."""
    parts = np.array([spend.fraction for spend in spends])
    parts /= parts.sum()
    counts = [table.at(ids) * part for table, part in zip(tables, parts, strict=True)]
    squares = [(table.standard_error(ids) * part) ** 2 for table, part in zip(tables, parts, strict=True)]
    return np.asarray(sum(counts)), np.sqrt(sum(squares))
