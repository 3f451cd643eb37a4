"""Public buckets: how many there are, which one a row falls in, and which (private) vectors are summed in each."""

from __future__ import annotations

from typing import Protocol, final

import attrs

from cloister.core.errors import InvalidInput
from cloister.core.lattice import Bound
from cloister.core.randomness import PublicRng
from cloister.core.types import Ints


@final
@attrs.frozen
class Space:
    """How many buckets there are: ids of level l are 0 <= id < sizes[l]; -1 means 'in no bucket'.

    Args:
        sizes: buckets per level, coarse levels first.
        nested: each level halves the next one: a row's id at level l is its id at level l + 1, shifted right by one bit
            (and -1 at all levels or none). Counting rows at the deepest level is then enough.

    Raises:
        InvalidInput: a nested level has not half as many buckets as the next one, rounded up.
    """

    sizes: tuple[int, ...]
    nested: bool = False

    def __attrs_post_init__(self) -> None:
        halves = tuple((size + 1) // 2 for size in self.sizes[1:])
        if self.nested and self.sizes[:-1] != halves:
            raise InvalidInput(f"each level of a nested space must have half the next one's buckets, not {self.sizes}")

    @property
    def levels(self) -> int:
        return len(self.sizes)


@final
@attrs.frozen
class QuestionContext:
    """Public facts about one question, the same on every machine.

    Args:
        rows: public number of rows (users) asked; for a share of the users, the expected number.
        unit: the lattice's spacing in the caller's units.
        seed: of this question alone.
        people: public number of users of the round, asked this question or not (default: ``rows``). If a shuffler mixes
            their messages and roles are private, all of them hide each other.
    """

    rows: int
    unit: float
    seed: PublicRng
    people: int = attrs.field(default=attrs.Factory(lambda self: self.rows, takes_self=True))


class Bucketing(Protocol):
    """Which bucket of each level a row falls in. Public: it is made of the plan and of answers, never of rows.

    Laws: a row's bucket is a function of that row alone, on exact integers, ties to the lowest id: the same alone, in
    any batch and in any order, on every machine (a floating-point matrix product is not). It is plain data with a
    digest: a frozen attrs class of numbers, text, arrays and such classes. Several threads may ask it at once. Ids
    outside its space are refused, whatever oracle is asked (``core.encoding``).

    A bucketing that devices without Python shall find too describes itself (``core.bundling.Bundled``), as one of the
    kinds of the specification; so do vectors.
    """

    @property
    def space(self) -> Space:
        """How many buckets each level has."""
        ...

    def locate(self, rows: Ints) -> Ints:
        """Lattice rows (n, d) to bucket ids (n, levels), int64, -1 for none."""
        ...


class Vectors(Protocol):
    """One vector per row, to be summed per bucket of ``cells``. Vectors beyond ``bound`` are clipped to it."""

    @property
    def cells(self) -> Bucketing: ...

    @property
    def bound(self) -> Bound: ...

    def values(self, rows: Ints, buckets: Ints) -> Ints:
        """Lattice rows (n, d) and their bucket ids (n, levels) to vectors (n, dimension)."""
        ...


@final
@attrs.frozen(eq=False)
class BucketedVectors:
    """Vectors (n, dimension) with the buckets (n, levels) that they are added to."""

    buckets: Ints = attrs.field(repr=False)
    values: Ints = attrs.field(repr=False)
