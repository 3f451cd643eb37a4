"""Files of shuffled messages as the format page has them, read without cloister; what is mutated never counts."""

from __future__ import annotations

import io
import struct
from unittest.mock import Mock
from zlib import crc32

import numpy as np
import pytest

from cloister.collection.wire.answers import layout_of
from cloister.collection.wire.batches import MAX_RECORDS
from cloister.collection.wire.messages import (
    Messages,
    ReleasedFile,
    ReleaseForm,
    Unusable,
    messages_of,
    records_of,
)
from tests.collection.shuffled_plans import FEW, sent, small_plan

PLAN = small_plan(rows=FEW)
FORM = ReleaseForm(PLAN.hash, PLAN.round())
SENT = sent(PLAN).messages
PLACE = ReleasedFile(bytes(range(16)), 2, 7, len(SENT))


def file_of(some: Messages, place: ReleasedFile = PLACE) -> bytes:
    records = records_of(some)
    half = len(records) // 2
    return FORM.begin(place) + FORM.batch(place, 0, records[:half]) + FORM.batch(place, 1, records[half:])


def read(content: bytes) -> list[Messages]:
    return [messages_of(records) for records in FORM.batches(io.BytesIO(content))]


def test_a_file_is_what_the_page_says() -> None:
    content = file_of(SENT)
    first, stamp, shuffle, number, files, messages = struct.unpack_from("<B8s16sIIQ", content)
    assert (first, stamp.hex(), shuffle, number, files, messages) == (0xC5, PLAN.hash[:16], bytes(range(16)), 2, 7, 200)
    assert struct.unpack_from("<I", content, 41) == (crc32(content[:41]),)
    at, index, found = 45, 0, list[bytes]()
    width = 2 + max(body.bytes // body.messages for body in layout_of(PLAN.round()).bodies)
    while at < len(content):
        count, check = struct.unpack_from("<II", content, at)
        data = content[at + 8 : at + 8 + count * width]
        assert check == crc32(content[:41] + index.to_bytes(4, "little") + data)
        index += 1
        found += [data[i : i + width] for i in range(0, len(data), width)]
        at += 8 + len(data)
    questions = [int.from_bytes(one[:2], "little") for one in found]
    assert questions == SENT.questions.tolist()
    assert [one[2:] for one in found] == [bytes(body) for body in SENT.bodies]
    assert FORM.place(io.BytesIO(content)) == PLACE


def test_whatever_is_cut_or_changed_does_not_count() -> None:
    content, rng = file_of(SENT), np.random.default_rng(0)
    for stop in range(len(content)):
        with pytest.raises(Unusable):
            read(content[:stop])
    for _ in range(3000):
        changed = bytearray(content)
        changed[int(rng.integers(len(content)))] ^= 1 << int(rng.integers(8))
        with pytest.raises(Unusable):
            read(bytes(changed))
    first, second = content[45 : 45 + (len(content) - 45) // 2], content[45 + (len(content) - 45) // 2 :]
    for other in (content + b"\0", content[:45] + first + first, content[:45] + second + first):
        with pytest.raises(Unusable, match="damaged"):
            read(other)


def test_a_batch_that_asks_for_more_than_a_reader_holds_is_refused_unread() -> None:
    content = FORM.begin(ReleasedFile(b"0" * 16, 0, 1, 2**40)) + struct.pack("<II", 2**32 - 1, 0)
    file = Mock(wraps=io.BytesIO(content))
    with pytest.raises(Unusable, match="damaged"):
        list(FORM.batches(file))
    assert max(size for ((size,), _) in file.read.call_args_list) <= MAX_RECORDS


def test_files_of_other_kinds_and_plans_are_told_apart() -> None:
    people, other = sent(PLAN, users=range(20)), small_plan(rows=FEW, seed=2)
    for content, reason in (
        (b"", "no messages"),
        (b"PAR1", "no messages"),
        (people.to_bytes(), "unshuffled"),
        (people.form.report(1, bytes(people.form.width)), "unshuffled"),
        (ReleaseForm(other.hash, other.round()).begin(PLACE), "another plan"),
        (FORM.begin(ReleasedFile(b"0" * 16, 7, 7, 0)), "damaged"),
    ):
        with pytest.raises(Unusable, match=reason):
            FORM.place(io.BytesIO(content))
