"""Split a CSV file into blocks of whole rows, refusing files whose row boundaries are ambiguous.

Parsers differ in whether they read each of these as rows or as one cell, so that what one person wrote could add,
remove or shift the row of another (law 11). A file is refused if it has:

* a quote that opens a cell and is never closed, or not within ``LONGEST`` bytes if there are line breaks between;
* anything between a closing quote and the end of its cell (quotes inside a quoted cell are doubled);
* outside quotes, a line break other than the one that ends the first line (LF, CRLF or CR);
* a quoted cell with a line break, and elsewhere a quote inside an unquoted cell: its writer does not quote, so the
  line break may end a row;
* a quoted cell with line breaks that reads as rows if its quotes are literal characters: every line after the first has
  as many cells as the header, and most have a number in the numeric columns.

Any other file has one reading, shared by pyarrow, Python's ``csv`` and pandas.
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
"""Maximum length in bytes of a quoted cell with line breaks (as of any cell in Python's ``csv``).

It bounds the rows that a stray opening quote could swallow.
"""

QUOTE, LF, CR = ord('"'), ord("\n"), ord("\r")

END_NAMES = {b"\n": "LF", b"\r\n": "CRLF", b"\r": "CR"}

PLAIN = re.compile(rb" *([+-]?([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?|true|false) *", re.IGNORECASE)
"""Cell that holds a number or a boolean."""

FIRSTS, LASTS = (np.isin(np.arange(256), list(characters)) for characters in (b" +-.0123456789tTfF", b" .0123456789eE"))
"""Bytes that such a cell starts and ends with."""


@final
@attrs.frozen
class _Cells:
    """Quoted cells in a block of bytes.

    Args:
        heads: positions of opening quotes.
        tails: positions of closing quotes; the end of the block for an unclosed cell.
        is_open: whether the last cell is unclosed.
        bare: position of a quote inside an unquoted cell; -1 if none.
        stray: index of a cell that continues after its closing quote; -1 if none.
    """

    heads: Ints
    tails: Ints
    is_open: bool
    bare: int
    stray: int

    @classmethod
    def of(cls, text: AnyArray, delimiter: int) -> _Cells:
        """Find the quoted cells in bytes that start at the beginning of a row."""
        quotes = np.flatnonzero(text == QUOTE)
        preceding = text[quotes - 1]
        opening = (preceding == delimiter) | (preceding == LF) | (preceding == CR)
        opening[:1] |= quotes[:1] == 0
        again = np.append(False, quotes[1:] == quotes[:-1] + 1)[: len(quotes)]
        runs = _runs(opening, again)
        firsts = np.concatenate([quotes[:0], *(quotes[first:end:2] for first, end in runs)])
        lasts = np.concatenate([quotes[:0], *(quotes[first + 1 : end : 2] for first, end in runs)])
        is_open = len(lasts) < len(firsts)
        if is_open:
            lasts = np.append(lasts, len(text))
        joint = firsts[1:] == lasts[:-1] + 1  # a doubled quote inside a cell
        heads, tails = firsts[np.append(True, ~joint)[: len(firsts)]], lasts[np.append(~joint, True)[: len(lasts)]]
        closed = tails[:-1] if is_open else tails
        behind = text[np.minimum(closed + 1, len(text) - 1)]
        strays = np.flatnonzero((behind != delimiter) & (behind != LF) & (behind != CR) & (behind != QUOTE))
        between = 0 if not runs or runs[0][0] else runs[0][1]  # the first quote that neither opens nor closes
        bare = int(quotes[between]) if between < len(quotes) else -1
        return cls(heads, tails, is_open, bare, int(strays[0]) if len(strays) else -1)

    def holding(self, places: Ints) -> Ints:
        """Return the index (n,) of the cell that holds each position; -1 for none."""
        if not len(self.heads):
            return np.full(len(places), -1)
        cell = np.searchsorted(self.heads, places) - 1
        return np.where((cell >= 0) & (places < self.tails[cell]), cell, -1)


def _runs(opening: Bools, again: Bools) -> list[tuple[int, int]]:
    """Return the ranges of quotes that open and close in turn.

    The quotes between these ranges are inside unquoted cells, and have no meaning.
    """
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
    """Return how many of these positions lie in each range."""
    counts: Ints = np.searchsorted(places, np.maximum(starts, ends)) - np.searchsorted(places, starts)
    return counts


def _numbers(data: bytes, starts: Ints, ends: Ints) -> Ints:
    """Return which of these cells hold a number."""
    text = np.frombuffer(data, np.uint8)
    filled = np.flatnonzero(starts < ends)
    likely = filled[FIRSTS[text[starts[filled]]] & LASTS[text[ends[filled] - 1]]]
    numeric: Ints = likely[
        np.array([PLAIN.fullmatch(data, int(starts[i]), int(ends[i])) is not None for i in likely], bool)
    ]
    return numeric


@final
class WholeRows:
    """Block reader of a CSV file that refuses ambiguous rows before a parser sees them.

    Args:
        path, delimiter: as of the file.
        block: bytes per read, and the maximum length of a row, quoted cells included.
        width: number of columns.
        numeric: positions of the numeric columns; without them, the check for lines that look like rows is skipped.
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
        """Yield whole rows of a UTF-8 stream, the header line included and the byte order mark removed.

        Raises:
            InvalidInput: the rows are ambiguous, or one is too long.
        """
        data, last = b"", False
        while not last:
            data = _filled(stream, self._block)
            last = len(data) < self._block
            text = self._rest + data if self._lines or self._rest else data.removeprefix(codecs.BOM_UTF8)
            stop, first = (self._check_quoted if QUOTE in text else self._check_plain)(text, last)
            self._rest = text[stop:]
            if max(first, len(self._rest)) > self._block:
                raise InvalidInput(f"'{self._path}' has a line of more than {self._block} bytes")
            self._lines += text.count(self._end[-1:], 0, stop) if self._end else 0
            if stop:
                yield text[:stop]

    def _check_plain(self, data: bytes, last: bool) -> tuple[int, int]:
        """Check rows without quotes; return where the last whole row ends, and where the first does."""
        self._end = self._end or _first_end(data, data.find(b"\n"), data.find(b"\r"))
        stop = len(data) if last else data.rfind(self._end[-1:]) + 1 if self._end else 0
        if self._is_mixed(data, stop):
            self._refuse_ends(data, self._other_ends(np.frombuffer(data, np.uint8)[:stop])[0])
        first = data.find(self._end[-1:], 0, stop) if self._end else -1
        return stop, stop if first < 0 else first

    def _check_quoted(self, data: bytes, last: bool) -> tuple[int, int]:
        """Check rows with quotes; return as ``_check_plain``."""
        text = np.frombuffer(data, np.uint8)
        cells = _Cells.of(text, self._delimiter[0])
        breaks = np.flatnonzero((text == LF) | (text == CR))
        holders = cells.holding(breaks)
        outer = breaks[holders < 0]
        if not self._end and len(outer):
            first = text[outer[0]]
            self._end = _first_end(data, *(int(outer[0]) if first == end else -1 for end in (LF, CR)))
        ends = outer[text[outer] == self._end[-1]] if self._end else breaks[:0]
        stop = len(data) if last else int(ends[-1]) + 1 if len(ends) else 0
        self._check_closing(data, cells, breaks, last)
        other = self._other_ends(text[:stop]) if self._is_mixed(data, stop) else breaks[:0]
        if len(other := other[cells.holding(other) < 0]):
            self._refuse_ends(data, other[0])
        inner = np.flatnonzero((holders >= 0) & (breaks < stop))
        if 0 <= cells.bare < stop:
            self._bare = self._bare or self._line(data, cells.bare)
        if len(inner):
            self._broken = self._broken or self._line(data, cells.heads[holders[inner[0]]])
            self._check_lines(data, cells, outer, breaks[inner], holders[inner])
        if self._bare and self._broken:
            raise InvalidInput(
                f"'{self._path}' has a quote inside an unquoted cell (line {self._bare}), and a quoted cell with line "
                f"breaks (line {self._broken}), which may be rows of their own: {REWRITE}"
            )
        return stop, int(ends[0]) if len(ends) else stop

    def _check_closing(self, data: bytes, cells: _Cells, breaks: Ints, last: bool) -> None:
        """Raise InvalidInput if a quoted cell continues after its closing quote, is unclosed, or is too long."""
        if cells.stray >= 0:
            head, tail = (self._line(data, positions[cells.stray]) for positions in (cells.heads, cells.tails))
            raise InvalidInput(
                f"'{self._path}' has a cell that begins with a quote in line {head} and goes on behind the next one, "
                f"in line {tail} (quotes inside a quoted cell are doubled): {REWRITE}"
            )
        long = np.flatnonzero(cells.tails - cells.heads > LONGEST)
        inside = np.searchsorted(breaks, cells.heads[long]) < np.searchsorted(breaks, cells.tails[long])
        if last and cells.is_open:
            self._refuse_open(data, cells.heads[-1], "never closed")
        if inside.any():
            head = cells.heads[long[inside]][0]
            self._refuse_open(data, head, f"not closed within {LONGEST:,} bytes, the most of a cell with line breaks")

    def _check_lines(self, data: bytes, cells: _Cells, outer: Ints, inner: Ints, holders: Ints) -> None:
        """Raise InvalidInput if the lines of a quoted cell also read as rows when its quotes are literal characters.

        ``outer`` and ``inner`` are the line breaks outside and inside quoted cells, ``holders`` the cell of each inner
        one.
        """
        if not self._numeric:
            return
        places = np.flatnonzero(np.frombuffer(data, np.uint8) == self._delimiter[0])
        outside = places[cells.holding(places) < 0]
        outer = np.append(outer, len(data))
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
        extra[opens] = np.minimum(extra[opens], 0)  # the rest of the opening line may hold delimiters
        unlike = np.bincount(owners, (extra != 0) & (starts < ends), len(cells.heads))
        closes = np.append(np.zeros(len(first), bool), last[last])
        after = _between(outside, tails, ends)
        votes = np.zeros(len(cells.heads), np.int64)
        lines = np.flatnonzero((starts < ends) & (unlike[owners] == 0))
        first_delimiter, n_delimiters = (
            np.searchsorted(places, heads[lines]),
            _between(places, heads[lines], tails[lines]),
        )
        edges = np.append(places, len(data))
        inside, numbers = np.zeros((2, len(lines)), bool)
        for j in self._numeric:  # counted from the end, since the start of a line may hold more delimiters
            k = n_delimiters + after[lines] - (self._width - 1 - j)
            its = np.where(opens[lines], k > 0, k >= 0) & np.where(closes[lines], k < n_delimiters, k <= n_delimiters)
            froms = np.where(k > 0, edges[first_delimiter + np.clip(k, 1, None) - 1] + 1, starts[lines])[its]
            tos = np.where(
                k < n_delimiters, edges[np.minimum(first_delimiter + np.maximum(k, 0), len(places))], ends[lines]
            )[its]
            inside |= its
            numbers[np.flatnonzero(its)[_numbers(data, froms, tos)]] = True
        np.add.at(votes, owners[lines], np.where(numbers, 1, np.where(inside & ~opens[lines], -1, 0)))
        if (votes > 0).any():
            raise InvalidInput(
                f"'{self._path}' has a quoted cell whose lines look like rows of their own (it opens in line "
                f"{self._line(data, cells.heads[np.argmax(votes > 0)])}): take the quote away if they are rows; if "
                f"they are one cell, save the table as Parquet, as by pandas.read_csv(...).to_parquet('rows.parquet')"
            )

    def _is_mixed(self, data: bytes, stop: int) -> bool:
        """Return True if there are several kinds of line breaks, inside quotes or outside."""
        if self._end == b"\r\n":
            pairs = data.count(b"\r\n", 0, stop)
            return not pairs == data.count(b"\n", 0, stop) == data.count(b"\r", 0, stop)
        return data.find(b"\r" if self._end == b"\n" else b"\n", 0, stop) >= 0

    def _other_ends(self, text: AnyArray) -> Ints:
        """Return the positions of line breaks of another kind than the first line's."""
        if self._end != b"\r\n":
            return np.flatnonzero(text == (CR if self._end == b"\n" else LF))
        cr, lf = text == CR, text == LF
        return np.flatnonzero((cr & ~np.append(lf[1:], False)) | (lf & ~np.append(False, cr[:-1])))

    def _line(self, data: bytes, place: Any) -> int:
        """Return the line number of a position, counted as editors do."""
        return self._lines + 1 + data.count(self._end[-1:] or b"\n", 0, int(place))

    def _refuse_ends(self, data: bytes, place: Any) -> NoReturn:
        raise InvalidInput(
            f"'{self._path}' ends its first line by {END_NAMES[self._end]}, and has another line break outside quotes "
            f"in line {self._line(data, place)}, which may be part of a cell: {REWRITE}"
        )

    def _refuse_open(self, data: bytes, head: Any, fault: str) -> NoReturn:
        raise InvalidInput(
            f"'{self._path}' has a quote in line {self._line(data, head)} that is {fault}, so that rows behind it "
            f"would be lost: {REWRITE}"
        )


def _filled(stream: Any, size: int) -> bytes:
    """Read exactly ``size`` bytes of a stream, or fewer at its end."""
    parts, remaining = list[bytes](), size
    while remaining and (part := stream.read(remaining)):
        parts.append(part)
        remaining -= len(part)
    return b"".join(parts)


REWRITE = "correct the file, or have it written again by a program that quotes cells, as pandas does"


def _first_end(data: bytes, lf: int, cr: int) -> bytes:
    """Return the first line's break, given the positions of the first LF and CR (-1: none); empty while unknown."""
    if lf >= 0 and (cr < 0 or lf < cr):
        return b"\n"
    if cr < 0 or cr == len(data) - 1:
        return b""
    return b"\r\n" if data[cr + 1] == LF else b"\r"


__all__ = ["LONGEST", "WholeRows"]
