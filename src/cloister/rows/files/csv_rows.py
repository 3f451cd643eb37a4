"""Blocks of whole rows of a CSV file, which a parser is given one by one, once it is beyond doubt where rows end.

A parser takes each of these for rows, or for one cell, as it pleases, so that what one person wrote could add, take
away or move the row of another (law 11). A file is refused that has one of them:

* a quote that opens a cell and is never closed, or not within ``LONGEST`` bytes if there are line breaks between;
* anything between a closing quote and the end of its cell: quotes inside a quoted cell are doubled;
* outside quotes, a line break other than the one that ends the first line (LF, CRLF or CR);
* a quoted cell with a line break in a file in which a quote stands inside an unquoted cell: whoever wrote that does not
  quote, and the line break may end a row;
* a quoted cell with line breaks that reads as rows if its quotes are mere characters: every line behind the first has
  as many cells as the header, and most have a number where numbers are read.

What is left has one reading, which pyarrow, Python's ``csv`` and pandas share.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn, final

import attrs
import numpy as np

from cloister.core.errors import InvalidInput
from cloister.core.types import AnyArray, Bools, Ints

LONGEST = 2**17
"""Most bytes of a quoted cell with line breaks, as of a cell in Python's ``csv``: so many bytes of rows at most could
lie inside a quote that opens by mistake."""

QUOTE, LF, CR = ord('"'), ord("\n"), ord("\r")

END_NAMES = {b"\n": "LF", b"\r\n": "CRLF", b"\r": "CR"}

PLAIN = re.compile(rb" *([+-]?([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?|true|false) *", re.IGNORECASE)
"""Cell that holds a number, or a boolean, which is read as one."""

FIRSTS, LASTS = (np.isin(np.arange(256), list(some)) for some in (b" +-.0123456789tTfF", b" .0123456789eE"))
"""Bytes that such a cell begins and ends with."""


@final
@attrs.frozen
class _Cells:
    """Quoted cells in some bytes.

    Args: heads and tails (positions of opening and closing quotes; the tail of a cell that is not closed is the end),
        is_open (whether the last one is not closed), bare (position of a quote inside an unquoted cell; -1: none),
        stray (which cell goes on behind its closing quote; -1: none).
    """

    heads: Ints
    tails: Ints
    is_open: bool
    bare: int
    stray: int

    @classmethod
    def of(cls, text: AnyArray, delimiter: int) -> _Cells:
        """Find them. Args: text (bytes as numbers, from the beginning of a row)."""
        quotes = np.flatnonzero(text == QUOTE)
        before = text[quotes - 1]
        opening = (before == delimiter) | (before == LF) | (before == CR)
        opening[:1] |= quotes[:1] == 0
        again = np.append(False, quotes[1:] == quotes[:-1] + 1)[: len(quotes)]
        runs = _runs(opening, again)
        firsts = np.concatenate([quotes[:0], *(quotes[first:end:2] for first, end in runs)])
        lasts = np.concatenate([quotes[:0], *(quotes[first + 1 : end : 2] for first, end in runs)])
        is_open = len(lasts) < len(firsts)
        if is_open:
            lasts = np.append(lasts, len(text))
        joint = firsts[1:] == lasts[:-1] + 1  # a doubled quote, inside one cell
        heads, tails = firsts[np.append(True, ~joint)[: len(firsts)]], lasts[np.append(~joint, True)[: len(lasts)]]
        closed = tails[:-1] if is_open else tails
        behind = text[np.minimum(closed + 1, len(text) - 1)]
        strays = np.flatnonzero((behind != delimiter) & (behind != LF) & (behind != CR) & (behind != QUOTE))
        between = 0 if not runs or runs[0][0] else runs[0][1]  # where a quote neither opens nor closes
        bare = int(quotes[between]) if between < len(quotes) else -1
        return cls(heads, tails, is_open, bare, int(strays[0]) if len(strays) else -1)

    def holding(self, places: Ints) -> Ints:
        """Which cell (n,) each of these positions lies in; -1: none."""
        if not len(self.heads):
            return np.full(len(places), -1)
        cell = np.searchsorted(self.heads, places) - 1
        return np.where((cell >= 0) & (places < self.tails[cell]), cell, -1)


def _runs(opening: Bools, again: Bools) -> list[tuple[int, int]]:
    """Stretches of quotes that open and close in turn: between them are quotes inside unquoted cells, which say
    nothing."""
    first = int(np.argmax(opening)) if opening.any() else len(opening)
    neither = np.flatnonzero(~(opening | again))
    by_parity = [neither[neither % 2 == parity] for parity in (0, 1)]
    openings: Ints | None = None
    runs = list[tuple[int, int]]()
    while first < len(opening):
        wrong = by_parity[first % 2]
        place = int(np.searchsorted(wrong, first))
        if place == len(wrong):
            return [*runs, (first, len(opening))]
        end = int(wrong[place])
        runs.append((first, end))
        openings = np.flatnonzero(opening) if openings is None else openings
        place = int(np.searchsorted(openings, end))
        first = int(openings[place]) if place < len(openings) else len(opening)
    return runs


def _between(places: Ints, starts: Ints, ends: Ints) -> Ints:
    """Return how many of these positions lie in each stretch."""
    many: Ints = np.searchsorted(places, np.maximum(starts, ends)) - np.searchsorted(places, starts)
    return many


def _numbers(some: bytes, starts: Ints, ends: Ints) -> Ints:
    """Return which of these cells hold a number."""
    text = np.frombuffer(some, np.uint8)
    filled = np.flatnonzero(starts < ends)
    likely = filled[FIRSTS[text[starts[filled]]] & LASTS[text[ends[filled] - 1]]]
    found: Ints = likely[
        np.array([PLAIN.fullmatch(some, int(starts[i]), int(ends[i])) is not None for i in likely], bool)
    ]
    return found


@final
class WholeRows:
    """Reads a CSV file a block at a time, and refuses it before a parser sees rows that can be read in two ways.

    Args:
        path, delimiter: as of the file.
        block: bytes that are read at once, and most of a row, quoted cells included.
        width, numeric: number of columns, and positions of those of numbers; where they are not known, cells are not
            searched for lines that look like rows.
    """

    def __init__(self, path: str, delimiter: str, block: int, width: int = 0, numeric: Sequence[int] = ()) -> None:
        self._path, self._block = path, block
        self._delimiter, self._width, self._numeric = delimiter.encode(), width, numeric
        self._rest, self._lines = b"", 0
        self._end = b""  # of the first line
        self._bare = self._broken = (
            0  # lines of a quote inside an unquoted cell, and of a line break inside a quoted one
        )

    def blocks(self, stream: Any) -> Iterator[bytes]:
        """Whole rows, the first line among them, without a byte order mark. Args: stream (of UTF-8).

        Raises: InvalidInput: they can be read in more than one way, or one is too long.
        """
        data, last = b"", False
        while not last:
            data = _filled(stream, self._block)
            last = len(data) < self._block
            some = self._rest + data if self._lines or self._rest else data.removeprefix(codecs.BOM_UTF8)
            whole, first = (self._check_quoted if QUOTE in some else self._check_plain)(some, last)
            self._rest = some[whole:]
            if max(first, len(self._rest)) > self._block:
                raise InvalidInput(f"'{self._path}' has a line of more than {self._block} bytes")
            self._lines += some.count(self._end[-1:], 0, whole) if self._end else 0
            if whole:
                yield some[:whole]

    def _check_plain(self, some: bytes, last: bool) -> tuple[int, int]:
        """Check rows without quotes. Returns: where the last whole row ends, and the first."""
        self._end = self._end or _first_end(some, some.find(b"\n"), some.find(b"\r"))
        whole = len(some) if last else some.rfind(self._end[-1:]) + 1 if self._end else 0
        if self._is_mixed(some, whole):
            self._refuse_ends(some, self._other_ends(np.frombuffer(some, np.uint8)[:whole])[0])
        first = some.find(self._end[-1:], 0, whole) if self._end else -1
        return whole, whole if first < 0 else first

    def _check_quoted(self, some: bytes, last: bool) -> tuple[int, int]:
        """As ``_check_plain``, of rows with quotes."""
        text = np.frombuffer(some, np.uint8)
        cells = _Cells.of(text, self._delimiter[0])
        breaks = np.flatnonzero((text == LF) | (text == CR))
        holders = cells.holding(breaks)
        outer = breaks[holders < 0]
        if not self._end and len(outer):
            first = text[outer[0]]
            self._end = _first_end(some, *(int(outer[0]) if first == end else -1 for end in (LF, CR)))
        ends = outer[text[outer] == self._end[-1]] if self._end else breaks[:0]
        whole = len(some) if last else int(ends[-1]) + 1 if len(ends) else 0
        self._check_closing(some, cells, breaks, last)
        other = self._other_ends(text[:whole]) if self._is_mixed(some, whole) else breaks[:0]
        if len(other := other[cells.holding(other) < 0]):
            self._refuse_ends(some, other[0])
        inner = np.flatnonzero((holders >= 0) & (breaks < whole))
        if 0 <= cells.bare < whole:
            self._bare = self._bare or self._line(some, cells.bare)
        if len(inner):
            self._broken = self._broken or self._line(some, cells.heads[holders[inner[0]]])
            self._check_lines(some, cells, outer, breaks[inner], holders[inner])
        if self._bare and self._broken:
            raise InvalidInput(
                f"'{self._path}' has a quote inside an unquoted cell (line {self._bare}), and a quoted cell with line "
                f"breaks (line {self._broken}), which may be rows of their own: {REWRITE}"
            )
        return whole, int(ends[0]) if len(ends) else whole

    def _check_closing(self, some: bytes, cells: _Cells, breaks: Ints, last: bool) -> None:
        """Raises: InvalidInput: a quoted cell goes on behind its end, has none, or is too long."""
        if cells.stray >= 0:
            head, tail = (self._line(some, each[cells.stray]) for each in (cells.heads, cells.tails))
            raise InvalidInput(
                f"'{self._path}' has a cell that begins with a quote in line {head} and goes on behind the next one, "
                f"in line {tail} (quotes inside a quoted cell are doubled): {REWRITE}"
            )
        long = np.flatnonzero(cells.tails - cells.heads > LONGEST)
        inside = np.searchsorted(breaks, cells.heads[long]) < np.searchsorted(breaks, cells.tails[long])
        if last and cells.is_open:
            self._refuse_open(some, cells.heads[-1], "never closed")
        if inside.any():
            head = cells.heads[long[inside]][0]
            self._refuse_open(some, head, f"not closed within {LONGEST:,} bytes, the most of a cell with line breaks")

    def _check_lines(self, some: bytes, cells: _Cells, outer: Ints, inner: Ints, holders: Ints) -> None:
        """Raise InvalidInput if the lines of a quoted cell read as rows as well, were its quotes mere characters.

        Args: outer and inner (line breaks outside and inside quoted cells), holders (which cell an inner one is in).
        """
        if not self._numeric:
            return
        places = np.flatnonzero(np.frombuffer(some, np.uint8) == self._delimiter[0])
        outside = places[cells.holding(places) < 0]
        outer = np.append(outer, len(some))
        first = np.append(True, holders[1:] != holders[:-1])
        last = np.append(first[1:], True)
        row = np.searchsorted(outer, cells.heads[holders])
        row_starts = np.where(row > 0, outer[row - 1] + 1, 0)
        row_ends = outer[np.searchsorted(outer, cells.tails[holders])]
        starts = np.append(np.where(first, row_starts, np.append(0, inner[:-1] + 1)), inner[last] + 1)
        ends, owners = np.append(inner, row_ends[last]), np.append(holders, holders[last])
        heads, tails = np.maximum(starts, cells.heads[owners]), np.minimum(ends, cells.tails[owners])
        extra = _between(outside, starts, ends) + _between(places, heads, tails) + 1 - self._width
        opens = np.append(first, np.zeros(int(last.sum()), bool))
        extra[opens] = np.minimum(extra[opens], 0)  # what follows the quote in its own line may hold delimiters
        unlike = np.bincount(owners, (extra != 0) & (starts < ends), len(cells.heads))
        closes = np.append(np.zeros(len(first), bool), last[last])
        after = _between(outside, tails, ends)
        votes = np.zeros(len(cells.heads), np.int64)
        kept = np.flatnonzero((starts < ends) & (unlike[owners] == 0))
        own, many = np.searchsorted(places, heads[kept]), _between(places, heads[kept], tails[kept])
        edges = np.append(places, len(some))
        inside, numbers = np.zeros((2, len(kept)), bool)
        for j in self._numeric:  # counted from the line's end, since its beginning may hold more delimiters
            k = many + after[kept] - (self._width - 1 - j)
            its = np.where(opens[kept], k > 0, k >= 0) & np.where(closes[kept], k < many, k <= many)
            froms = np.where(k > 0, edges[own + np.clip(k, 1, None) - 1] + 1, starts[kept])[its]
            tos = np.where(k < many, edges[np.minimum(own + np.maximum(k, 0), len(places))], ends[kept])[its]
            inside |= its
            numbers[np.flatnonzero(its)[_numbers(some, froms, tos)]] = True
        np.add.at(votes, owners[kept], np.where(numbers, 1, np.where(inside & ~opens[kept], -1, 0)))
        if (votes > 0).any():
            raise InvalidInput(
                f"'{self._path}' has a quoted cell whose lines look like rows of their own (it opens in line "
                f"{self._line(some, cells.heads[np.argmax(votes > 0)])}): take the quote away if they are rows; if "
                f"they are one cell, save the table as Parquet, as by pandas.read_csv(...).to_parquet('rows.parquet')"
            )

    def _is_mixed(self, some: bytes, whole: int) -> bool:
        """Whether lines end in more than one way, inside quotes or outside."""
        if self._end == b"\r\n":
            pairs = some.count(b"\r\n", 0, whole)
            return not pairs == some.count(b"\n", 0, whole) == some.count(b"\r", 0, whole)
        return some.find(b"\r" if self._end == b"\n" else b"\n", 0, whole) >= 0

    def _other_ends(self, text: AnyArray) -> Ints:
        """Where there are line breaks of another kind than the first line's."""
        if self._end != b"\r\n":
            return np.flatnonzero(text == (CR if self._end == b"\n" else LF))
        cr, lf = text == CR, text == LF
        return np.flatnonzero((cr & ~np.append(lf[1:], False)) | (lf & ~np.append(False, cr[:-1])))

    def _line(self, some: bytes, place: Any) -> int:
        """The number of the line, counted as editors do, that a position is in."""
        return self._lines + 1 + some.count(self._end[-1:] or b"\n", 0, int(place))

    def _refuse_ends(self, some: bytes, place: Any) -> NoReturn:
        raise InvalidInput(
            f"'{self._path}' ends its first line by {END_NAMES[self._end]}, and has another line break outside quotes "
            f"in line {self._line(some, place)}, which may be part of a cell: {REWRITE}"
        )

    def _refuse_open(self, some: bytes, head: Any, what: str) -> NoReturn:
        raise InvalidInput(
            f"'{self._path}' has a quote in line {self._line(some, head)} that is {what}, so that rows behind it would "
            f"be lost: {REWRITE}"
        )


def _filled(stream: Any, size: int) -> bytes:
    """So many bytes of a stream, or fewer at its end."""
    parts, left = list[bytes](), size
    while left and (more := stream.read(left)):
        parts.append(more)
        left -= len(more)
    return b"".join(parts)


REWRITE = "correct the file, or have it written again by a program that quotes cells, as pandas does"


def _first_end(some: bytes, lf: int, cr: int) -> bytes:
    """How the first line ends, as far as is known. Args: lf, cr (where the first of each is; -1: nowhere)."""
    if lf >= 0 and (cr < 0 or lf < cr):
        return b"\n"
    if cr < 0 or cr == len(some) - 1:
        return b""
    return b"\r\n" if some[cr + 1] == LF else b"\r"


__all__ = ["LONGEST", "WholeRows"]
