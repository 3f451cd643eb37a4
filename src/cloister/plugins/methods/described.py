"""Clustering with histograms: counts, in any columns, of the rows nearest to each released centre.

1. The method in the slot clusters the rows by their first columns, with the rest of the budget.
2. One question: of the rows of each group, how many have each value of a category, or are in each of ``bins`` equal
   parts of a number's range. Where more than ``MOST`` columns are named it is asked in two rounds: of all columns, with
   a third of the share, and then of those that tell the groups apart best by these noisy counts. That choice looks at
   released values alone and costs nothing of its own; both rounds are put together by their variances.

Guarantee: the trust model, neighbouring relation and measure of the oracles in the slots, composed by the accountant.
A row is in one bucket of each of c described columns, so that under add-or-remove one row a question has the L1
sensitivity c and the L2 sensitivity sqrt(c), which is what an oracle pays for. Where centres lie is released before,
and their number, the columns' and the share are public: the schedule is the same whatever is answered. For the same
reason both rounds' buckets are as many for any choice: levels of the second are as large as the largest column.

Under Local trust a part of the people, ``share`` of them, answers the question, and nothing else.

Groups are those of the released centres, in the units that the run took distances in. Figures are of the rows as the
run clipped them.

Source: counts of a partition (Dwork, McSherry, Nissim, Smith 2006); noisy histograms that explain clusters, of
attributes chosen privately before: DPClustX (arXiv 2506.05900).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Generic, final

import attrs
import numpy as np

from cloister.core.domains import first_columns
from cloister.core.frames import cube, unknown_columns
from cloister.core.wrappers import ColumnNames
from cloister.plugin import (
    ANY_KEY,
    BundleArrays,
    Clustering,
    Counts,
    Domain,
    Floats,
    FrequencyOracle,
    Ints,
    InvalidInput,
    Local,
    Method,
    NearestCenter,
    Problem,
    PublicRng,
    Session,
    Space,
    T,
    component,
    count,
    describe_part,
    json_integers,
    option,
    slot,
)
from cloister.plugins.methods.grouping import Frame
from cloister.rows.categories import BOOLEAN, categories_of

MOST = 8
"""Columns that are described; of more the most telling ones."""

CHOICE = 1 / 3
"""Part of the share by which these are found."""

VAGUE = 0.1
"""Standard errors of a count above this part of an average group are warned of."""


@final
@attrs.frozen
class Facet:
    """A column that groups are described by.

    Args: position, of the column or of a category's first value; values, how many a category lists; 0: numbers.
    """

    position: int
    values: int = 0

    def size(self, bins: int) -> int:
        """Buckets: a category's values and one for all others, or the parts of a number's range."""
        return self.values + 1 if self.values else bins


@final
@attrs.frozen(eq=False)
class Facets:
    """A row is in one bucket for each facet: that of its group (its nearest centre) and its value.

    Args: near, groups by the first columns; facets; sides (D,), the largest
        lattice coordinate of each column; bins, equal parts of a number's range; size, buckets of a group at every
        level, where all are to have as many (0: as many as they need).
    """

    near: NearestCenter
    facets: tuple[Facet, ...]
    sides: tuple[int, ...]
    bins: int
    size: int = 0

    @property
    def sizes(self) -> list[int]:
        """Buckets of a group, by facet."""
        return [self.size or facet.size(self.bins) for facet in self.facets]

    @property
    def space(self) -> Space:
        return Space(tuple(len(self.near.centers) * size for size in self.sizes))

    def locate(self, rows: Ints) -> Ints:
        group = self.near.locate(rows[:, : self.near.centers.shape[1]])[:, 0]
        codes = [self._codes(rows, facet) for facet in self.facets]
        return np.column_stack([group * size + code for size, code in zip(self.sizes, codes, strict=True)])

    def _codes(self, rows: Ints, facet: Facet) -> Ints:
        """Return each row's value (n,): of a category, its first positive column, or ``values`` without one."""
        if facet.values:
            there = rows[:, facet.position : facet.position + facet.values] > 0
            return np.where(there.any(axis=1), there.argmax(axis=1), facet.values)
        side = self.sides[facet.position]
        part = (rows[:, facet.position] + side) * self.bins // (2 * side)
        return np.clip(part, 0, self.bins - 1)

    def bundled(self, arrays: BundleArrays) -> Mapping[str, Any]:
        return {
            "kind": "facets",
            "sizes": json_integers(self.space.sizes),
            "near": describe_part(self.near, arrays),
            "first": self.near.centers.shape[1],
            "facets": [[facet.position, facet.values] for facet in self.facets],
            "of_group": self.sizes,
            "sides": self.sides,
            "bins": self.bins,
        }


@component
class DescribedGroups(Generic[T]):
    """A method whose groups are described by counts of any columns."""

    method: Method[T] = slot("hst-means", help="clusters the rows by their first columns")
    counts: FrequencyOracle[T] = slot("discrete-gaussian", help="how many rows of each group have each value")
    columns: str = option(
        default="",
        help="columns to count: positions of numbers, as in 0,3, and of a category's first value with its number of "
        "values, as in 4:12; empty: every column, as numbers",
    )
    beside: int = option(default=0, low=0, help="number of last columns that are counted but not clustered by")
    share: float = option(default=0.15, low=0.0, high=0.9, above=True, help="share of the budget for these counts")
    bins: int = option(default=16, low=2, high=1024, help="equal parts of a number's range")

    def __attrs_post_init__(self) -> None:
        self._listed()

    def cluster(self, problem: Problem, session: Session[T], rng: PublicRng) -> Clustering:
        look, remaining = self.parts(problem, rng)
        facets = self._facets(problem.domain)
        clustering = self.method.cluster(remaining, session.on_first_columns(remaining.domain), rng.child("method"))
        frame = Frame.of(problem.domain, clustering.details, remaining.domain.dimension)
        view = session.framed(frame.lattice, cube(problem.domain.dimension))
        assignment = frame.near(clustering.centers, problem.k, view)

        def asked(of: tuple[Facet, ...], part: Problem, size: int = 0) -> Answered:
            cells = Facets(assignment, of, frame.sides, self.bins, size)
            (answer,) = view.ask(count(cells, oracle=self.counts, budget=part.budget))
            unasked = len(of) / part.budget.fraction - 1 if self._of_people else 0.0
            return Answered.of(answer, cells, [facet.size(self.bins) for facet in of], len(clustering.centers), unasked)

        chosen = list(range(len(facets)))
        if len(facets) <= MOST:
            answered = asked(facets, look)
        else:
            first, second = self._split(look, rng.child("choice"), CHOICE)
            overall = asked(facets, first)
            chosen = session.agreed(np.array(overall.most_telling())).clip(0, len(facets) - 1).tolist()
            again = asked(tuple(facets[i] for i in chosen), second, max(facet.size(self.bins) for facet in facets))
            answered = overall.chosen(chosen).beside(again)
        edges = [[] if facets[i].values else frame.edges(facets[i].position, self.bins) for i in chosen]
        description = {"columns": chosen, "edges": edges, **answered.plain}
        return attrs.evolve(clustering, details={**clustering.details, "described": description})

    def parts(self, problem: Problem, rng: PublicRng) -> tuple[Problem, Problem]:
        """Split the problem into the histograms' and the method's, whose domain is the first columns."""
        look, remaining = self._split(problem, rng.child("shares"), self.share)
        return look, attrs.evolve(remaining, domain=first_columns(problem.domain, self.beside))

    def error(self, problem: Problem) -> float:
        """Return the standard error of one count, in rows, by public figures and before columns are chosen."""
        look, _ = self.parts(problem, ANY_KEY)
        sizes = tuple(problem.k * facet.size(self.bins) for facet in self._facets(problem.domain))
        variance = self.counts.variance(Space(sizes), look.budget, look.context(look.budget))
        return math.sqrt(variance) / look.budget.fraction

    has_frame = False

    def share_of(self, problem: Problem) -> float:
        return self.share

    def inner(self, problem: Problem) -> Problem:
        """Return the method's problem. Raises: InvalidInput: the counts cannot be asked."""
        self.error(problem)
        return self.parts(problem, ANY_KEY)[1]

    def price(self, problem: Problem, columns: ColumnNames, part: float) -> str:
        """Return the share of the budget that the counts take, and how exact they are."""
        names, budget = list(self._values(columns)), "people" if self._of_people else "budget"
        few = f" Of these columns the {MOST} that tell the groups apart best are released." if len(names) > MOST else ""
        return (
            f"Description: {part * self.share:.1%} of the {budget} counts what each group's rows hold in "
            f"{', '.join(names)}: a count has a standard error of {self.error(problem):,.3g} rows.{few}"
        )

    def warning(self, problem: Problem) -> str:
        """Return a warning of counts that say little of an average group; else empty."""
        error, group = self.error(problem), problem.rows / problem.k
        if error <= VAGUE * group:
            return ""
        return (
            f"counts of the description have a standard error of {error:,.3g} rows, and {problem.k} groups of "
            f"{problem.rows:,} rows have about {group:,.0f} each: describe fewer columns, or give more of the budget "
            f"(--describe-share)"
        )

    def notes(self, problem: Problem, columns: ColumnNames, part: float, details: Mapping[str, Any]) -> tuple[str, ...]:
        return (self.price(problem, columns, part),)

    def facts(self, columns: ColumnNames) -> dict[str, Any]:
        return {"described": self._values(columns)}

    def _values(self, columns: ColumnNames) -> dict[str, list[str]]:
        """Return the values that each column lists, none for numbers, in the order of the counts."""
        firsts = {category.features[0]: category for category in categories_of(columns.categories)}
        values = dict[str, list[str]]()
        for facet in self._listed() or map(Facet, range(len(columns.features))):
            name = columns.features[facet.position]
            category = firsts.get(name) if facet.values else None
            if category is None:
                values[name] = [BOOLEAN] * facet.values
            else:
                values[category.column] = list(category.values)
        return values

    @property
    def _of_people(self) -> bool:
        """Whether parts of the people are asked, and not all of them with parts of the budget."""
        trust: type[Any] = self.counts.trust
        return trust is Local

    def _split(self, problem: Problem, rng: PublicRng, share: float) -> tuple[Problem, Problem]:
        """Parts of the budget; under Local trust, where each person pays for all that she answers, of the people."""
        if not self._of_people:
            return problem.split(share)
        look, remaining = problem.budget.split_users(rng, share, 1 - share)
        return attrs.evolve(problem, budget=look), attrs.evolve(problem, budget=remaining)

    def _facets(self, domain: Domain) -> tuple[Facet, ...]:
        facets = self._listed() or tuple(Facet(j) for j in range(domain.dimension))
        if any(facet.position + max(1, facet.values) > domain.dimension for facet in facets):
            raise InvalidInput(
                f"columns is '{self.columns}', but there are {domain.dimension} columns: count them from 0"
            )
        if hidden := [j for j in unknown_columns(domain) if j >= domain.dimension - self.beside]:
            raise InvalidInput(f"column {hidden[0]} is described only, and its range is not known: give its bounds")
        return facets

    def _listed(self) -> tuple[Facet, ...]:
        try:
            parts = [[int(part) for part in facet.split(":")] for facet in self.columns.split(",") if facet]
            facets = tuple(Facet(*part) for part in parts)
        except (TypeError, ValueError):
            facets = (Facet(-1),)
        if any(facet.position < 0 or facet.values < 0 for facet in facets):
            raise InvalidInput(f"columns is '{self.columns}': give positions such as 0,3, and 4:12 for a category")
        return facets


@final
@attrs.frozen(eq=False)
class Answered:
    """Noisy rows of each group by value, for each facet. Args: counts, variances: (k, m) each."""

    counts: tuple[Floats, ...]
    variances: tuple[Floats, ...]

    @classmethod
    def of(cls, answer: Counts, cells: Facets, sizes: Sequence[int], k: int, unasked: float) -> Answered:
        """Return the counts of k groups that the oracle released.

        Args:
            answer: the counts.
            cells: the buckets that were asked for.
            sizes: values m of each facet.
            k: number of groups.
            unasked: people that each who answers a facet stands for beside herself, since who is asked is chance, too.
        """
        counts, variances = list[Floats](), list[Floats]()
        for level, (room, size) in enumerate(zip(cells.sizes, sizes, strict=True)):
            ids = np.add.outer(np.arange(k) * room, np.arange(size)).ravel()
            counts.append(answer.at(ids, level).reshape(k, size))
            errors = answer.standard_error(ids, level).reshape(k, size)
            variances.append(errors**2 + unasked * np.maximum(counts[-1], 0.0))
        return cls(tuple(counts), tuple(variances))

    def chosen(self, which: Sequence[int]) -> Answered:
        """Return the answers of these facets alone."""
        return Answered(tuple(self.counts[i] for i in which), tuple(self.variances[i] for i in which))

    def beside(self, other: Answered) -> Answered:
        """Combine two independent answers to the same question, each weighted by the other's variance."""
        mine, its = self.variances, other.variances
        parts = [w / np.maximum(v + w, 1e-300) for v, w in zip(mine, its, strict=True)]
        counts = (p * a + (1 - p) * b for p, a, b in zip(parts, self.counts, other.counts, strict=True))
        return Answered(tuple(counts), tuple(p * v for p, v in zip(parts, mine, strict=True)))

    def most_telling(self) -> list[int]:
        """Return the ``MOST`` facets that tell groups apart best, in their order.

        The score is Goodman and Kruskal's tau: by how much less often a row's value is guessed wrong once its group is
        known. What noise adds to the squares on average is subtracted.
        """
        scores = list[float]()
        for counts, variances in zip(self.counts, self.variances, strict=True):
            sizes = np.maximum(counts.sum(axis=1, keepdims=True), np.sqrt(variances.sum(axis=1, keepdims=True)) + 1e-9)
            squares = (np.square(counts) - variances) / sizes
            total = (np.square(counts.sum(axis=0)) - variances.sum(axis=0)).sum() / sizes.sum()
            scores.append(float((squares.sum() - total) / max(sizes.sum() - total, 1e-9 * sizes.sum())))
        return sorted(int(i) for i in np.argsort(-np.array(scores), kind="stable")[:MOST])

    @property
    def plain(self) -> dict[str, Any]:
        return {
            "counts": [counts.tolist() for counts in self.counts],
            "errors": [np.sqrt(variances).tolist() for variances in self.variances],
        }
