"""Reports as bytes: batches, single reports, and what is no report."""

from __future__ import annotations

import struct
import zlib
from collections import Counter

import numpy as np
import pytest

from cloister.collection.wire.batches import MAX_RECORDS, BatchForm
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
    assert ticketed.batch(USERS, ANSWERS, np.zeros((3, 64), np.uint8))[0] == 0xC4


def test_a_batch_without_its_checksum_is_refused_and_the_next_one_is_read() -> None:
    bad = bytearray(FORM.batch(USERS, ANSWERS))
    bad[-1] ^= 1
    found = FORM.parse(bytes(bad) * 2 + FORM.batch(USERS[:1], ANSWERS[:1]))
    assert (found.users.tolist(), found.refused) == ([7], Counter(damaged=2))


def test_a_batch_that_says_it_is_larger_than_a_batch_may_be_is_damaged() -> None:
    most = MAX_RECORDS // 10
    assert FORM.parse(FORM.prefix(0xC2) + struct.pack("<II", most, 0)).wrong is None
    assert FORM.parse(FORM.prefix(0xC2) + struct.pack("<II", most + 1, 0)).wrong == "damaged"
    with pytest.raises(InvalidInput, match="at most"):
        FORM.batch(np.zeros(most + 1, np.uint64), np.zeros((most + 1, 2), np.uint8))


def test_answers_of_another_length_and_rounds_beyond_a_byte_are_refused() -> None:
    with pytest.raises(InvalidInput, match="2 bytes and a ticket of 0: these have 1 and 0"):
        FORM.report(1, b"a")
    with pytest.raises(InvalidInput, match="these have 3 and 0"):
        FORM.batch(USERS, np.zeros((3, 3), np.uint8))
    with pytest.raises(InvalidInput, match="rounds 1 to 255"):
        BatchForm(HEAD, 256, 1)
