"""Words of a column of texts or lists as numbers, so that they can be counted without a list of all words.

A text's words are its runs of letters a-z and digits, at least ``SHORTEST`` long, in lower case and without marks
(NFKD), except for ``STOP``. A list's are its items, as they are. Everything here is public.

**A word is a whole number.** Words are told apart by their first ``LENGTH`` characters, their digits in base 38: 0 for
none, a to z, 0 to 9, and 37 for any other character, shown as '_'. A word of ``LENGTH`` characters or more is shown
with an ellipsis. So a released number is itself the word, and no list of the rows' words is kept anywhere.

**At most m words of a row** count, one in each of m slots. A word's slot follows from the word alone, so that all its
rows are counted in one place; of several words of a row in one slot the first one counts. Of w different words about m
(1 - (1 - 1/m)^w) count: of 16 slots 9 for 13 words, 10 for 16, 15 for 40. A row's slots follow from its own cell: no
other row enters. A cell that is missing, cannot be read, or holds neither text nor a list, has no words, and its row
is like any other: words are looked at when the run has paid, and no row may end it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from hashlib import blake2b
from typing import Any, final
from unicodedata import combining, normalize

import attrs
import numpy as np

from cloister.core.errors import InvalidInput
from cloister.core.types import Floats
from cloister.rows.categories import as_text

LETTERS = "\0abcdefghijklmnopqrstuvwxyz0123456789"
LENGTH, BASE = 10, len(LETTERS) + 1
HALF, WHOLE = BASE ** (LENGTH // 2), BASE**LENGTH
"""Numbers of five characters, below 2^27, and of whole words, below 2^53."""

SHORTEST, MOST = 3, 16
RUN = re.compile(rf"[a-z0-9]{{{SHORTEST},}}")

STOP = frozenset(
    RUN.findall(
        "about after again all also and any are because been before being both but can cannot could did does "
        "doing down during each either few for from further get had has have having her here hers him his how "
        "into its itself just may might more most must nor not now off once one only onto other our out over "
        "own same shall she should some such than that the their them then there these they this those "
        "through too two under until upon use used using very was were what when where whether which while "
        "who whom whose why will with within without would you your"
    )
)
"""Words of English texts that say nothing about them."""


@final
@attrs.frozen
class Texts:
    """Column whose words are counted.

    Args:
        column: its name.
        most: m, slots of a row.
        read: whether words are looked at; in a pass that needs none, rows have none.

    Raises:
        InvalidInput: m is no whole number from 1 to 64.
    """

    column: str
    most: int = MOST
    read: bool = True

    def __attrs_post_init__(self) -> None:
        if isinstance(self.most, bool) or not isinstance(self.most, int) or not 1 <= self.most <= 64:
            raise InvalidInput(f"most_words is {self.most!r}: give a whole number of words of a row, from 1 to 64")

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the 2 m numbers that stand for a row's words, two of five characters each."""
        return tuple(f"{self.column}: word {i // 2 + 1}, part {i % 2 + 1}" for i in range(2 * self.most))

    def halves(self, n: int, cells: Callable[[slice], Sequence[Any]]) -> Floats:
        """Return these numbers (2 m, n) of n cells, 0 for no word. Args: cells (gives a slice of them as a list)."""
        codes, codes_by_word = np.zeros((self.most, n), np.int64), dict[str, tuple[int, int]]()
        for i, cell in enumerate(_readable(cells, 0, n) if self.read else ()):
            slots = dict[int, int]()
            for word in words_of(cell):
                if word not in codes_by_word:
                    code = code_of(word)
                    codes_by_word[word] = slot_of(code, self.most), code
                slots.setdefault(*codes_by_word[word])
                if len(slots) == self.most:
                    break
            codes[list(slots), i] = list(slots.values())
        return np.stack([codes // HALF, codes % HALF], axis=1).reshape(2 * self.most, -1).astype(np.float64)


def _readable(cells: Callable[[slice], Sequence[Any]], start: int, end: int) -> Sequence[Any]:
    """Return these cells, with None for one whose bytes are no text."""
    try:
        return cells(slice(start, end))
    except UnicodeDecodeError:
        middle = (start + end) // 2
        return [*_readable(cells, start, middle), *_readable(cells, middle, end)] if middle > start else [None]


def words_of(cell: Any) -> Iterator[str]:
    """Return a cell's words, in their order."""
    if isinstance(cell, str):
        return (run[0] for run in RUN.finditer(_folded(cell)) if run[0] not in STOP)
    if isinstance(cell, (list, tuple)) or (isinstance(cell, np.ndarray) and cell.ndim):
        return (_folded(text) for item in cell if item is not None and (text := as_text(item)))
    return iter(())


def code_of(word: str) -> int:
    """Return the number of a folded word. A letter that is not in the alphabet has the place -1, the last digit."""
    return sum(LETTERS.find(letter) % BASE * BASE ** (LENGTH - 1 - i) for i, letter in enumerate(word[:LENGTH]))


def word_of(code: int) -> str:
    """Return the word of a number."""
    digits = (code // BASE**i % BASE for i in reversed(range(LENGTH)))
    return "".join((LETTERS + "_")[digit] for digit in digits if digit) + ("\u2026" if code % BASE else "")


def slot_of(code: int, slots: int) -> int:
    """Return a word's slot, by a fixed public hash."""
    return int.from_bytes(blake2b(str(code).encode(), digest_size=8).digest(), "little") % slots


def column_names(columns: Any) -> tuple[str, ...]:
    """Return names of columns as callers give them: one, or several."""
    return () if columns is None else (columns,) if isinstance(columns, str) else tuple(str(name) for name in columns)


def described(names: Any, words: str | None, max_words: int | None) -> list[str | Texts]:
    """Return all columns that groups are described by.

    Args:
        names: as ``column_names`` takes them, of columns that are counted by value.
        words: the column whose words are counted.
        max_words: words of a row that count.
    """
    if max_words is not None and words is None:
        raise InvalidInput("most_words needs a column of words: give --describe-words (describe_words=), too")
    return [*column_names(names), *([] if words is None else [Texts(words, MOST if max_words is None else max_words)])]


def _folded(text: str) -> str:
    if text.isascii():
        return text.lower()
    return "".join(letter for letter in normalize("NFKD", text.casefold()) if not combining(letter))
