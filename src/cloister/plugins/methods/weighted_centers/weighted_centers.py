"""WeightedCenters: k-means and k-median under local trust in a constant number of rounds.

Guarantee: the trust model, neighbouring relation, epsilon and delta of the oracles in its slots, composed by the
accountant. The number of rounds, five (four with ``assignment=nearest``), and what each spends do not depend on
answers: lists have a public length. What a user works out in a round, she works out from her row and from published
values alone (``buckets``). By default every user answers one question of all rounds, with all of epsilon (Local);
deltas are for the step whose oracle spends one.

Constants. What the paper hides in O() is an option; docs/explanation/rounds_accuracy.md has the curves. In short:
thresholds are in standard errors of the count that they judge, since t is proportional to that; radii and repetitions
are as many as leave a cluster of n / k rows ``min_signal`` standard errors of an interval's count, since each has only
its share of the users. Boxes are 2.5 r / sqrt(d) wide per interval, not 2 r c sqrt(ln(d n / beta) / d): with its c of
18 and more (thirty projections, n = 1e6) that is never smaller than the domain. Vectors are clipped to 0.7 r, since
noise is in proportion to the bound and a cluster tighter than r sits near the middle. The paper's forms are options:
``interval_length=none`` and ``created_within=none``, with c from ``far_chance``.

The smallest radius for which a user created a centre, r_i of a(i, x): where radii divide the users, as by default under
Local trust, a user is asked about one radius, and r_i is that one or none. ``assignment=created-all`` is the paper's
form, in which every user is in a part I_m^r for every radius r; it costs nothing, since she works a(i, x) out herself.

Corrections to the paper: R radii at (eps / R, delta / R), where floor(log2 n) + 1 radii at delta / log n overspend;
sharing by users; a user who created no centre is assigned to the nearest; the list L is *found*, by a search over
prefixes or by looking at all values of a short hash; step 7 of CentersProcedure is (epsilon, delta) where Gaussian
noise is used, and has its own share; its vectors are relative to their box's public middle, and clipped.

Source: Stemmer 2021, sections 3 and 4, appendix A; Kaplan and Stemmer 2018 (``assignment=nearest``).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Generic, Literal

import numpy as np

from cloister.plugin import (
    ANY_KEY,
    Bound,
    Bucketing,
    Budget,
    Clustering,
    Domain,
    Floats,
    FrequencyOracle,
    InvalidInput,
    Local,
    NonPrivateSolver,
    Problem,
    PublicRng,
    Session,
    Shuffled,
    Space,
    T,
    VectorSumOracle,
    component,
    count,
    option,
    slot,
    vector_sum,
)
from cloister.plugins.methods.errors import cluster_errors, missing_rows
from cloister.plugins.methods.post_processing import place_clusters
from cloister.plugins.methods.weighted_centers.buckets import (
    AxisIntervals,
    Centred,
    Created,
    HashValues,
    Reassigned,
    Regions,
)
from cloister.plugins.methods.weighted_centers.candidates import (
    Candidates,
    Divided,
    Found,
    Group,
    Pair,
    Procedure,
    Sharing,
    Step,
    added,
    certain,
    divided,
    groups_of,
    in_w,
    of_pair,
    side_by_side,
)
from cloister.plugins.methods.weighted_centers.hashes import PStable
from cloister.plugins.methods.weighted_centers.intervals import Intervals
from cloister.plugins.methods.weighted_centers.prefixes import Prefixes

MAX_INTERVALS = 2**14
"""On an axis: step 5 looks at all of them for every heavy value. With the defaults this is a dozen radii."""

MAX_PAIRS = 2**62
"""Maximum of pairs of a hash value and an interval: buckets have numbers of 63 bits."""

FAILURE = 0.05
"""beta, of the paper's length of an interval."""

PLANS = ((3, 4), (2, 4), (1, 6), (1, 5), (1, 4), (1, 3))
"""Radii and repetitions, the most demanding first."""


@component
class WeightedCenters(Generic[T]):
    """Candidate centres of several radii, weighted twice, and clustered."""

    counts: FrequencyOracle[T] = slot("asked-local-hashing", help="how many rows fall in each bucket")
    sums: VectorSumOracle[T] = slot("hadamard-vector", help="what the rows of each region add up to (LDP-AVG)")
    solver: NonPrivateSolver = slot("kmeans++", help="clusters the weighted centres (step 6)")
    radii: int | None = option(
        default=None,
        low=1,
        high=32,
        help="radii, each half of the one before; none: as many as ``min_signal`` allows, at most three",
    )
    largest_radius: float = option(
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
        help="M: hash functions per radius; none: as many as ``min_signal`` allows, three to six",
    )
    min_signal: float = option(
        default=6.0,
        low=0.0,
        unit="standard errors",
        help="signal of n / k rows in an interval's count by which radii and repetitions are chosen",
    )
    projections: int = option(default=3, low=1, high=64, help="m, projections of a hash function")
    near_chance: float = option(
        default=0.5, low=0.0, high=1.0, above=True, help="p: chance that points a radius apart share a hash value"
    )
    far_chance: float = option(
        default=0.01,
        low=0.0,
        high=1.0,
        above=True,
        help="q: chance that points c radii apart do; sets the c of interval_length=none and created_within=none",
    )
    hash_bits: int = option(
        default=12, low=1, high=62, help="length of a hash value; up to 20 all values can be looked at"
    )
    prefix_bits: int = option(default=12, low=1, high=20, help="bits per step of the search for heavy hash values")
    max_hash_values: int = option(
        default=32, low=1, high=4096, help="maximum of hash values that are followed, per radius and repetition"
    )
    hash_threshold: float = option(
        default=4.0, low=0.0, unit="standard errors", help="least count of a hash value that is followed"
    )
    interval_length: float | None = option(
        default=2.5,
        low=0.0,
        high=1e6,
        above=True,
        unit="radii over sqrt(d)",
        help="length of an interval; a box is three wide; none: the paper's 2 c sqrt(ln(d n / beta)), beta = 0.05",
    )
    clip_radius: float = option(
        default=0.7, low=0.0, above=True, unit="radii", help="rows are clipped to this distance from their box's middle"
    )
    created_within: float | None = option(
        default=3.0,
        low=0.0,
        above=True,
        unit="radii",
        help="a row this near to a centre can have created it; none: the paper's 5 c",
    )
    center_threshold: float = option(
        default=2.0, low=0.0, unit="standard errors", help="least counts of steps 7 and 8 to keep a centre"
    )
    weight_threshold: float = option(default=3.0, low=0.0, unit="standard errors", help="least weight of a centre in W")
    assignment: Literal["created", "created-all", "nearest"] = option(
        default="created",
        choices=("created", "created-all", "nearest"),
        help="created: prefer the centre that a row created for a radius that its user was asked about (one, if radii "
        "divide the users), then re-assign; created-all: for any radius (Stemmer); nearest: the nearest centre, once "
        "(Kaplan and Stemmer)",
    )
    divide_steps: Divided = divided("steps")
    divide_radii: Divided = divided("radii")
    divide_repetitions: Divided = divided("repetitions")
    hash_share: float = option(default=0.1, low=0.0, above=True, help="of step 2: hash values")
    axis_share: float = option(default=0.35, low=0.0, above=True, help="of step 4: intervals")
    size_share: float = option(default=0.1, low=0.0, above=True, help="of step 7: rows per region")
    sum_share: float = option(default=0.2, low=0.0, above=True, help="of step 7: sums per region")
    check_share: float = option(default=0.1, low=0.0, above=True, help="of step 8")
    assign_share: float = option(default=0.075, low=0.0, above=True, help="of a")
    reassign_share: float = option(default=0.075, low=0.0, above=True, help="of b")

    def cluster(self, problem: Problem, session: Session[T], rng: PublicRng) -> Clustering:
        """Algorithm WeightedCenters."""
        radii, repetitions = self.plan(problem)
        groups = self.groups(problem, radii, repetitions, rng.child("users"))
        runs = dict[Pair, Procedure[T]]()
        for rank in range(radii):
            runs |= self.good_centers(problem, rank, repetitions, groups, rng.child("radius", rank))
        y = Found.of(dict(zip(runs, side_by_side(list(runs.values()), session), strict=True)))  # 1. candidates
        max_centers = self.max_hash_values * len(runs)
        a = [
            y.assigned(self.creating(group, radii), problem.domain.max_norm, max_centers) for group in groups
        ]  # 2. a(i, x), in each group
        weights, errors = self._weights(a, groups, "assign", len(y.points), session)  # 3. rows per centre
        heavy = np.ones(len(weights), bool)
        if self.assignment != "nearest":
            heavy = in_w(weights, self.weight_threshold * errors)
            b = [Reassigned(assigned, heavy) for assigned in a]  # 4. b(i, x)
            weights, errors = self._weights(b, groups, "weigh", len(y.points), session)  # 5.
        coreset = y.coreset(heavy, weights, errors)
        centers = self.solver.solve(session.release(coreset), problem.k, rng.child("solve"))  # 6. output
        details = {
            "radii": radii,
            "repetitions": repetitions,
            "candidates": len(y.points),
            "weighted": int(heavy.sum()),
            "c": self.family(1.0).c,
        }
        placed_centers, weights = place_clusters(centers, coreset, problem.domain)
        stated = cluster_errors(coreset, centers, placed_centers, problem.domain, missing_rows(weights, problem.rows))
        return Clustering(placed_centers, weights, details | stated)

    def good_centers(
        self, problem: Problem, rank: int, repetitions: int, groups: Sequence[Group], seed: PublicRng
    ) -> dict[Pair, Procedure[T]]:
        """Algorithm GoodCenters: a single hash function may cut a cluster in two, of M several one will not.

        Rank 0 is the largest radius, every other one is half of the one before.
        """
        radius = self.largest_radius * problem.domain.max_norm / 2**rank
        return {
            (rank, m): self.centers_procedure(problem, radius, of_pair(groups, (rank, m)), seed.child("repetition", m))
            for m in range(repetitions)
        }

    def creating(self, group: Group, radii: int) -> tuple[Pair, ...]:
        """Return the radii and repetitions for which users of a group can create a centre: i is in I_m^r.

        With ``assignment=created-all``, I_m^r is the same set of users for every r: those who were asked about m.
        """
        if self.assignment == "nearest":
            return ()
        if self.assignment == "created":
            return group.pairs
        return tuple((rank, m) for rank in range(radii) for m in sorted({m for _, m in group.pairs}))

    def centers_procedure(
        self, problem: Problem, radius: float, spend: Mapping[Step, Budget], seed: PublicRng
    ) -> Procedure[T]:
        """Algorithm CentersProcedure, in three rounds: steps 2 and 4, which need no answer, share the first.

        The radius r is in lattice steps.

        Raises:
            InvalidInput: what is looked at in step 5 would not fit in memory, or in the numbers of buckets.
        """
        counts, domain = self.counts, problem.domain
        h = self.family(radius).sample(domain.dimension, self.hash_bits, seed.child("hash"))  # 1.
        intervals = Intervals.of(domain, self._interval(problem, radius), seed.child("intervals"))  # 3. z, p
        self._refuse_too_many(intervals.number)
        on_axes = AxisIntervals(h, intervals)
        hashes, axes = yield (  # 2., 4.
            count(HashValues(h, self.prefixes), oracle=counts, budget=spend["hashes"]),
            count(on_axes, oracle=counts, budget=spend["axes"]),
        )
        heavy, _ = self.prefixes.heavy(hashes, self.max_hash_values, self.hash_threshold)  # 2. L
        regions = Regions(h, intervals, heavy, on_axes.fullest(axes, heavy), self.max_hash_values)  # 5., 6. B(u)
        middles = intervals.middles(regions.chosen)
        vectors = Centred(regions, middles, self._bound(domain, radius, intervals))
        sizes, sums = yield (
            count(regions, oracle=counts, budget=spend["sizes"]),
            vector_sum(vectors, oracle=self.sums, budget=spend["sums"]),
        )
        ids, rows = certain(
            sizes, len(heavy), self.center_threshold
        )  # of the regions that are certainly not empty (claim A.2)
        rows = np.maximum(rows, 1.0)[:, None]
        averages = domain.truncate(middles[ids] * domain.unit + sums.at(ids) / rows + domain.middle)  # 7. y_u
        created_within = 5 * self.family(1.0).c if self.created_within is None else self.created_within
        within = min(int(created_within * radius), 2 * domain.max_norm)
        created = Created(h, heavy[ids], domain.snap(averages), within, self.max_hash_values)
        y = Candidates(averages - domain.middle, sums.standard_error(ids) / rows[:, 0], created)
        (checked,) = yield (count(created, oracle=counts, budget=spend["check"]),)  # 8. v(u)
        return y.at(certain(checked, len(ids), self.center_threshold)[0])  # 9.

    def family(self, radius: float) -> PStable:
        """Return the family of hash functions for a radius, in the radius's unit."""
        return PStable(radius, self.near_chance, self.far_chance, self.projections)

    def _interval(self, problem: Problem, radius: float) -> float:
        """Return the length p of an interval, in the radius's unit."""
        d = problem.domain.dimension
        length = self.interval_length
        if length is None:
            length = 2 * self.family(1.0).c * math.sqrt(math.log(d * problem.rows / FAILURE))
        return length * radius / math.sqrt(d)

    def _refuse_too_many(self, intervals: int) -> None:
        if intervals > MAX_INTERVALS or intervals << self.hash_bits > MAX_PAIRS:
            raise InvalidInput(
                f"{intervals} intervals per axis and hash values of {self.hash_bits} bits make too many buckets: use "
                f"fewer radii, a larger largest_radius or interval_length, or fewer hash_bits"
            )

    @property
    def prefixes(self) -> Prefixes:
        """As long as a step of the search allows, the last one whole."""
        return Prefixes(tuple(range(self.hash_bits, 0, -self.prefix_bits))[::-1])

    def _bound(self, domain: Domain, radius: float, intervals: Intervals) -> Bound:
        """Bound of a row relative to its region's middle: public, the same for all regions."""
        norm = min(self.clip_radius * radius, intervals.half_diagonal, 2.0 * domain.max_norm)
        return Bound(max(1, int(norm)), domain.dimension)

    def _weights(
        self, cells: Sequence[Bucketing], groups: Sequence[Group], step: Step, size: int, session: Session[T]
    ) -> tuple[Floats, Floats]:
        """Rows of each centre (size,), each group counted by its own buckets, and their standard errors. One round."""
        spends = [group.spend[step] for group in groups]
        questions = [
            count(bucketing, oracle=self.counts, budget=spend) for bucketing, spend in zip(cells, spends, strict=True)
        ]
        return added(session.ask(*questions), np.arange(size), spends)

    def plan(self, problem: Problem) -> tuple[int, int]:
        """Return radii and repetitions: as given, or the first of ``PLANS`` whose signal suffices.

        A cluster of n / k rows must stand out of an interval's count.
        """
        for radii, repetitions in PLANS:
            chosen = self.radii or radii, self.repetitions or repetitions
            if self._signal(problem, *chosen) >= self.min_signal:
                return chosen
        return self.radii or 1, self.repetitions or PLANS[-1][1]

    def _signal(self, problem: Problem, radii: int, repetitions: int) -> float:
        """Return n / k rows, in standard errors of a count of step 4."""
        spend = of_pair(self.groups(problem, radii, repetitions, ANY_KEY), (0, 0))["axes"]
        space = Space((2**self.hash_bits,) * problem.domain.dimension)
        variance = self.counts.variance(space, spend, problem.context(spend))
        return problem.rows * spend.fraction / problem.k / math.sqrt(variance) if variance else math.inf

    def groups(self, problem: Problem, radii: int, repetitions: int, seed: PublicRng) -> tuple[Group, ...]:
        """Budget of each question."""
        weights: dict[Step, float] = {
            "hashes": self.hash_share,
            "axes": self.axis_share,
            "sizes": self.size_share,
            "sums": self.sum_share,
            "check": self.check_share,
            "assign": self.assign_share,
        }
        if self.assignment != "nearest":
            weights["weigh"] = self.reassign_share
        spender = {step: self.sums if step == "sums" else self.counts for step in weights}
        failing: list[Step] = [step for step in weights if spender[step].uses_delta]
        return groups_of(
            problem.budget,
            weights,
            radii,
            repetitions,
            radii_by=self._by(self.divide_radii),
            repetitions_by=self._by(self.divide_repetitions),
            steps_by=self._by(self.divide_steps, rounds=True),
            failing=failing,
            seed=seed,
        )

    def _by(self, choice: Divided, rounds: bool = False) -> Sharing:
        """Return "users" if that is private and helps, else "budget".

        Under Shuffled trust people draw their role anew in each round: steps, which are asked in several rounds, share
        everybody's epsilon; and all else does where oracles need noise from everybody.
        """
        trust = self.counts.trust
        if rounds and trust is Shuffled and choice == "users":
            raise InvalidInput("under Shuffled trust nobody is the same user in two rounds: set divide_steps=budget")
        if choice != "auto":
            return choice
        everybody = any(oracle.asks_all_users for oracle in (self.counts, self.sums))
        alone = trust is Local or (trust is Shuffled and not rounds and not everybody)
        return "users" if alone else "budget"
