"""Choice of the rows of each user that are kept, where a promise is about users.

**The choice.** A row counts if it can be used (no cell is missing or infinite, and it names a user: a rule that looks
at the row alone). The counted rows of a user have *places* 0, 1, ..., n - 1, in the order in which the data hold them.
Every place has a public word: a keyed mix of the user's name and the place. Kept are the rows at the m places with the
least words, or all if n <= m. No cell of a row enters but the user's name.

**Proof that it is hers alone.** Take away all rows of another user. The other rows stay in their order, so that every
row of hers keeps its place, n and her name are what they were, and so are the words. Hence what is kept of D and of D
without one user differs by that user's kept rows, at most m; ``accounting.privacy_target`` says what that costs. A
row's position in the data does *not* enter: it changes with every row that is taken away before it. This holds for
every key, known or not, and for any order of the data in which the rows of others do not move when hers are taken
away: the order of files and of rows in them, or sorted by any cell. Words of a user's places are all different: under
one key they are a permutation of name + place.

**Names.** A user's name is a whole number or a text; 7, "7" and "7.0" are one name. Two words of 64 bits stand for it:
of a number of 64 bits the number itself, so that no two of them meet; of a text its BLAKE2b hash of 128 bits. Two
names with the same words would be one user, which is *not* harmless: without one of them up to m rows of the other
would be kept in place of hers, which moves 2 m rows. Among 2^31 users with texts for names the chance that any two
meet is below 2^-66, and to look for such texts on purpose takes 2^64 hashes. Numbers that were turned into floats may
have met already: from 2^53 on (2^24 in floats of 32 bits) they are refused.

**Memory.** While the choice is made, about 10 bytes per row and 80 per user of each part of the data (a million rows),
and 40 per row of the user who has most; then one bit per row, or one byte of rows in memory.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterator, Sequence
from decimal import Decimal
from numbers import Integral
from typing import Any, Self, TypeAlias, final

import attrs
import numpy as np
from numpy.typing import NDArray

from cloister.core.errors import InvalidInput
from cloister.core.randomness import PublicRng
from cloister.core.types import Bools, Ids, Ints
from cloister.rows.categories import BEYOND, LONGEST, WRITTEN_ALIKE

Names: TypeAlias = Sequence[Any] | NDArray[Any]
"""Names of the users of rows: an array, or a list of numbers and texts, with None for a missing one."""

STRETCH = 2**20
"""Rows, or places, whose words are computed at once."""

NUMBER = int.from_bytes(b"a number", "little")
"""The second word of a whole number's name: the first is the number itself, mixed."""

MIX = PublicRng(bytes(32))
"""Public key: mixing tells nothing and hides nothing."""

NOBODY = MIX.child("nobody")
"""Public key for the numbers of rows that name nobody. One of them meets a name's number by chance alone."""

EXACT = 2**53
"""Whole floats below this are exact; 2^53 + 1 becomes 2^53."""


@final
@attrs.frozen(eq=False)
class Owners:
    """Users of some rows.

    Args:
        names: (u, 2) words that stand for the users' names, each once.
        of: (n,) position of each row's user among them; -1 for a row that does not count.
    """

    names: Ids
    of: NDArray[np.int32]

    @classmethod
    def read(cls, values: Names) -> Self:
        """Return the owners of rows with these names of users. Raises: InvalidInput: one is no whole number or text."""
        if (numbers := _numbers(values)) is not None:
            distinct, of = np.unique(numbers, return_inverse=True)
            return cls(_numbered(distinct), of.astype(np.int32))
        numbered: dict[tuple[type, Any], int] = {}
        cells = values.tolist() if isinstance(values, np.ndarray) else values
        of = np.array([numbered.setdefault(_lookup_key(v), len(numbered)) for v in cells], np.int64)
        names = [_name(v) for _, v in numbered]
        there = np.array([name is not None for name in names], bool)
        position = np.where(there, np.cumsum(there) - 1, -1).astype(np.int32)
        return cls.joined([cls(_words([name for name in names if name is not None]), position[of])])

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self:
        """Return the owners of rows that follow each other. Args: parts, at least one."""
        all_names = np.concatenate([p.names for p in parts])
        order = np.lexsort(all_names.T)
        all_names = all_names[order]
        new = np.append(True, (all_names[1:] != all_names[:-1]).any(axis=1))[: len(all_names)]
        places = np.empty(len(all_names), np.int32)
        places[order] = np.cumsum(new) - 1
        positions = np.split(places, np.cumsum([len(p.names) for p in parts])[:-1])
        owners = [np.append(m, np.int32(-1))[p.of] for m, p in zip(positions, parts, strict=True)]
        return cls(all_names[new], np.concatenate(owners))

    def counted(self, usable: Bools) -> Self:
        """Return the owners of rows (n,) of which only some can be used."""
        return attrs.evolve(self, of=np.where(usable, self.of, np.int32(-1)))

    @property
    def rows(self) -> int:
        """Number of rows that count."""
        return int((self.of >= 0).sum())

    def kept(self, max_rows: int, rng: PublicRng) -> Bools:
        """Return which rows (n,) are kept, at most ``max_rows`` of each user."""
        heads = self.names[:, 0]
        last = _largest_kept_words(heads, np.bincount(self.of + 1, minlength=len(heads) + 1)[1:], max_rows, rng)
        kept_rows, earlier = np.zeros(len(self.of), bool), np.zeros(len(heads), np.int64)
        for start in range(0, len(self.of), STRETCH):
            rows = np.flatnonzero(self.of[start : start + STRETCH] >= 0) + start
            owners = self.of[rows]
            words = rng.of_users(heads[owners] + _places(owners, earlier).astype(np.uint64))
            kept_rows[rows] = words <= last[owners]
        return kept_rows


def numbers_of(values: Names) -> Ids:
    """Return the number (n,) of each row's user, from her name alone.

    It is a whole number itself, mixed by a public permutation, or 64 bits of a text's hash. Two texts may meet (among
    2^20 with a chance of 2^-25), and their users then share public coins, which hides neither of them less: their
    secret coins are their own.

    Args:
        values: names, none of which is missing.

    Raises:
        InvalidInput: as ``Owners.read``.
    """
    owners = Owners.read(values)
    numbers: Ids = owners.names[owners.of, 0]
    return numbers


def numbers_of_nobody(first: int, count: int) -> Ids:
    """Return the numbers (count,) of rows that name nobody, from the ``first`` of them on, all different."""
    return NOBODY.of_users(np.arange(first, first + count, dtype=np.uint64))


def _places(owners: NDArray[np.int32], earlier: Ints) -> Ints:
    """Return the place (n,) of each row among its owner's.

    Args:
        owners: (n,) of the rows.
        earlier: (u,) rows of each owner before these; they are brought up to date.
    """
    order = np.argsort(owners, kind="stable")
    ordered, places = owners[order], np.empty(len(owners), np.int64)
    starts = np.flatnonzero(np.diff(ordered, prepend=-1))
    counts = np.diff(starts, append=len(ordered))
    places[order] = _ranges(counts) + earlier[ordered]
    earlier[ordered[starts]] += counts
    return places


def _largest_kept_words(heads: Ids, rows: Ints, max_rows: int, rng: PublicRng) -> Ids:
    """Return the largest kept word (u,) of users who have so many rows (u,)."""
    last = np.full(len(heads), np.iinfo(np.uint64).max, np.uint64)
    for users in _batches(np.flatnonzero(rows > max_rows), rows):
        counts = rows[users]
        who, places = np.repeat(np.arange(len(users)), counts), _ranges(counts).astype(np.uint64)
        words = rng.of_users(heads[users][who] + places)
        starts = np.cumsum(counts) - counts
        last[users] = words[np.lexsort((words, who))[starts + max_rows - 1]]
    return last


def _batches(users: Ints, rows: Ints) -> Iterator[Ints]:
    """Yield users, as many at once as have ``STRETCH`` rows together, or one."""
    ends, first = np.cumsum(rows[users]), 0
    while first < len(users):
        done = ends[first - 1] if first else 0
        after = max(first + 1, int(np.searchsorted(ends, done + STRETCH, "right")))
        yield users[first:after]
        first = after


def _ranges(counts: Ints) -> Ints:
    """Return 0, 1, ... up to each of these counts: for (2, 3) 0, 1, 0, 1, 2."""
    ends = np.cumsum(counts)
    return np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - counts, counts)


MISSING = {"NoneType", "NAType", "NaTType"}
"""Names of the types of Python's and pandas' missing cells."""

WHOLE = re.compile(r"(-?[0-9]+)\.0")
"""Form in which pandas writes whole numbers of a column that has a missing one."""

DIGITS = re.compile("0|-?[1-9][0-9]{0,18}")
"""Form of a whole number."""

NO_NAME = (
    "some names of users are neither texts nor whole numbers (as floats below 2^53, of 32 bits below 2^24): choose "
    "another user column"
)


def _numbers(values: Any) -> Ints | None:
    """Return an array of whole numbers of 64 bits, if that is what names these users.

    Raises:
        InvalidInput: floats of 32 bits are so large that two names may have become one.
    """
    if not isinstance(values, np.ndarray) or values.dtype.kind not in "iuf":
        return None
    if values.dtype.kind == "f":
        exact, sizes = 2 ** (np.finfo(values.dtype).nmant + 1), np.abs(values.astype(np.float64))
        if exact < EXACT and (sizes >= exact).any():
            raise InvalidInput(NO_NAME)
        if not (sizes < EXACT).all():
            return None
    numbers = values.astype(np.int64)
    return numbers if (numbers == values).all() and (values.dtype.kind != "u" or (numbers >= 0).all()) else None


def _numbered(numbers: Ints) -> Ids:
    """Return words (n, 2) of whole numbers of 64 bits: no two have the same."""
    return np.stack([MIX.of_users(numbers.view(np.uint64)), np.full(len(numbers), NUMBER, np.uint64)], axis=1)


def _lookup_key(value: Any) -> tuple[type, Any]:
    """Return the key that a cell is looked up by: itself, or its name where equal cells may have different ones."""
    if type(value) in WRITTEN_ALIKE:
        return type(value), value
    name = _name(value)
    return type(name), name


def _name(value: Any) -> int | str | None:
    """Return a user's name, as a number if it is one of 64 bits; None for a missing one. Raises: InvalidInput."""
    if type(value).__name__ in MISSING or (isinstance(value, str) and not value):
        return None
    if isinstance(value, (float, Decimal)):
        if value.is_nan() if isinstance(value, Decimal) else math.isnan(value):
            return None
        value = int(value) if _is_exact(value) and value == int(value) else None
    if isinstance(value, bool) or not isinstance(value, (str, Integral)) or not _is_writable(value):
        raise InvalidInput(NO_NAME)
    text = str(value)
    text = number[1] if (number := WHOLE.fullmatch(text)) else text
    return int(text) if DIGITS.fullmatch(text) and -(2**63) <= int(text) < 2**63 else text


def _is_exact(value: float | Decimal) -> bool:
    """Return True if a whole float or decimal is exact."""
    if isinstance(value, Decimal):
        return value.is_finite() and value.adjusted() < LONGEST
    return -EXACT < value < EXACT


def _is_writable(value: str | Integral) -> bool:
    """Return True if a number can be written out."""
    return isinstance(value, str) or abs(int(value)) < BEYOND


def _words(names: Sequence[int | str]) -> Ids:
    """Return two words (n, 2) that stand for each name."""
    words = np.empty((len(names), 2), np.uint64)
    numbers = [i for i, name in enumerate(names) if isinstance(name, int)]
    words[numbers] = _numbered(np.array([names[i] for i in numbers], np.int64))
    for i, name in enumerate(names):
        if isinstance(name, str):
            text = name.encode(errors="surrogatepass")
            words[i] = np.frombuffer(hashlib.blake2b(text, digest_size=16, person=b"cloister user").digest(), "<u8")
    return words
