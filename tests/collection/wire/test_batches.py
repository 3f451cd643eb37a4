"""Reports as bytes: batches, single reports, and what is no report; read a part and a piece at a time they are those of
one look at all of it, wherever these end; and the numbers of those whose report has come."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cloister.collection.intake.parts import divide_files
from cloister.collection.wire import batches
from cloister.collection.wire.batches import BATCH, BATCH_HEAD, MAX_RECORDS, BatchForm, Parsed, parse_file
from cloister.collection.wire.user_set import UserSet
from cloister.core.errors import InvalidInput
from cloister.core.types import AnyArray, Ids

HEAD = "0123456789abcdef" + "00" * 24
FORM = BatchForm(HEAD, 3, 2)
USERS: Ids = np.array([7, 2**40, 0], np.uint64)
ANSWERS: AnyArray = np.array([[1, 2], [3, 4], [255, 0]], np.uint8)


def test_a_batch_and_a_report_are_these_bytes() -> None:
    """More of them, and tickets, stand in ``tests/vectors``."""
    records = bytes.fromhex("070000000000000001020000000000010000" + "0304" + "0000000000000000ff00")
    named = bytes.fromhex(HEAD[:16]) + b"\x03"
    assert FORM.batch(USERS, ANSWERS) == b"\xc2" + named + struct.pack("<II", 3, zlib.crc32(records)) + records
    assert FORM.report(7, b"\x01\x02") == b"\xc1" + named + records[:10]
    ticketed = BatchForm(HEAD, 3, 2, tickets=True)
    assert ticketed.report(7, b"\x01\x02", bytes(64)) == b"\xc3" + named + records[:10] + bytes(64)


def test_a_batch_without_its_checksum_is_refused_and_the_next_one_is_read() -> None:
    bad = bytearray(FORM.batch(USERS, ANSWERS))
    bad[-1] ^= 1
    found = FORM.parse(bytes(bad) * 2 + FORM.batch(USERS[:1], ANSWERS[:1]))
    assert (found.users.tolist(), found.damaged, found.error) == ([7], 2, None)


def test_a_batch_that_says_it_is_larger_than_a_batch_may_be_is_damaged() -> None:
    most = MAX_RECORDS // 10
    assert FORM.parse(FORM.prefix(0xC2) + struct.pack("<II", most, 0)).error is None
    assert FORM.parse(FORM.prefix(0xC2) + struct.pack("<II", most + 1, 0)).error == "damaged"
    with pytest.raises(InvalidInput, match="at most"):
        FORM.batch(np.zeros(most + 1, np.uint64), np.zeros((most + 1, 2), np.uint8))


def test_answers_of_another_length_are_refused() -> None:
    with pytest.raises(InvalidInput, match="2 bytes and a ticket of 0: these have 1 and 0"):
        FORM.report(1, b"a")
    with pytest.raises(InvalidInput, match="these have 3 and 0"):
        FORM.batch(USERS, np.zeros((3, 3), np.uint8))


WIDTH = 21
BLOCKS, EARLIER = (BatchForm(head * 32, 1, WIDTH) for head in ("ab", "cd"))
FAKE = (BLOCKS.prefix(BATCH) + BATCH_HEAD.pack(1, 0)).ljust(WIDTH, b"\0")
"""An answer that looks like the beginning of a batch."""


def sent(g: np.random.Generator, form: BatchForm = BLOCKS) -> bytes:
    """A batch of some reports, or a report."""
    many = int(g.integers(5))
    answers = g.integers(0, 256, (many, WIDTH)).astype(np.uint8)
    answers[::2] = np.frombuffer(FAKE, np.uint8)
    users = g.integers(0, 50, many).astype(np.uint64)
    return form.report(7, answers[0].tobytes()) if many == 1 else form.batch(users, answers)


def file(seed: int) -> bytes:
    """A file that may have flipped bits, batches of an earlier round, bytes of nothing, and a torn end."""
    g = np.random.default_rng(seed)
    data = bytearray(b"".join(sent(g) for _ in range(int(g.integers(1, 12)))))
    for _ in range(int(g.integers(3))):
        data[int(g.integers(len(data)))] ^= 1 << int(g.integers(8))
    data += (b"", b"", b"nothing" + sent(g), sent(g, EARLIER) + sent(g, EARLIER))[int(g.integers(4))]
    return bytes(data[: len(data) - int(g.integers(40)) * int(g.integers(2))])


def said(some: Iterable[Parsed]) -> tuple[Any, ...]:
    found = list(some)
    users, answers = (np.concatenate([getattr(one, name) for one in found]) for name in ("users", "answers"))
    last = found[-1]
    left = 0 if last.error else last.unread
    return users.tolist(), answers.tolist(), sum(one.damaged for one in found), last.error, last.stamp, left


@pytest.mark.parametrize("chunk", [1, 7, 97, 1000])
def test_pieces_may_end_anywhere_and_parts_at_any_batch(
    chunk: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where an answer looks like a batch. The last part is all of the file, in pieces."""
    monkeypatch.setattr(batches, "CHUNK", chunk)
    path = tmp_path / "a.reports"

    def read(most: int) -> Iterator[Parsed]:
        for where in (stretch for part in divide_files([str(path)], BLOCKS, most) for stretch in part.ranges):
            with where.open() as opened:
                yield from parse_file(opened, BLOCKS, where.size, where.start > 0)

    for seed in range(60):
        path.write_bytes(file(seed))
        for most in (1, 200, 10**6):
            assert said(read(most)) == said([BLOCKS.parse(file(seed))])


@pytest.mark.parametrize("again", [[5], [7, 5], [9, 1, 9], [8, 9, 9]])
def test_a_number_is_entered_once_by_one_call_or_by_two(again: Sequence[int]) -> None:
    roll = UserSet(1000)
    roll.add(np.array([5, 6], np.uint64))
    with pytest.raises(InvalidInput, match="a user number occurs twice"):
        roll.add(np.array(again, np.uint64))
    assert roll.count == 2
