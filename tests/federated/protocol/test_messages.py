"""Ten thousand generated messages, sent to a coordinator and to a party in the middle of a round: nothing but the true
ones is accepted, nothing raises anything but a refusal, and the round's result is what it would have been."""

from __future__ import annotations

import os
import random
import struct
from pathlib import Path

import pytest

from cloister.core.errors import Damaged, InvalidInput, Refused
from cloister.federated.protocol.journal import FileJournal
from cloister.federated.protocol.messages import (
    HEAD,
    MAX_BYTES,
    TAG,
    Kind,
    Message,
    Reason,
    Rejected,
    checksum,
)
from tests.federated.federated_session import NAMES, SHAPE, Keys, answered, expected, found, opened, vector

MANY = 10_000


def broken(g: random.Random, true: list[bytes]) -> bytes:
    """A true message that was cut, grown, flipped, spliced, renamed, moved, or made up; half of the time with a
    checksum that fits, unless only masked words were changed: there every value is as good as any other."""
    data = changed(g, true)
    if (
        len(data) < HEAD.size
        or g.random() < 0.5
        or any(data[: HEAD.size + TAG - 8] == t[: HEAD.size + TAG - 8] for t in true)
    ):
        return data
    head = data[: HEAD.size - 8]
    return head + checksum(head, data[HEAD.size :]) + data[HEAD.size :]


NUMBERS = {
    40: ("<I", [0, 1, 2, 7, 2**31, 2**32 - 1]),  # the round
    44: ("<I", [0, 1, 2, 2**32 - 1]),  # the attempt
    48: ("<I", [0, 1, MAX_BYTES, MAX_BYTES + 1, 2**32 - 1]),  # the body's length
    6: ("<H", list(range(6))),  # the sender
}
"""Where numbers stand in a message's head, and what they are changed to."""


def changed(g: random.Random, true: list[bytes]) -> bytes:
    data, other = g.choice(true), g.choice(true)
    cut, longer = data[: g.randrange(len(data))], data + g.randbytes(g.choice([1, 8, 1000]))
    flipped, moved = bytearray(data), bytearray(data)
    for _ in range(g.choice([1, 3, 20])):
        flipped[g.randrange(len(data))] ^= 1 << g.randrange(8)
    at, (form, numbers) = g.choice(list(NUMBERS.items()))
    struct.pack_into(form, moved, at, g.choice(numbers))
    grown = longer[:48] + struct.pack("<I", len(longer) - HEAD.size) + longer[52:]
    spliced = cut + other[g.randrange(len(other)) :]
    made_up = g.randbytes(g.choice([0, 1, HEAD.size, len(data), 5000]))
    return bytes(g.choice([cut, grown, flipped, spliced, made_up, moved, moved, moved, moved]))


def test_the_coordinator_refuses_ten_thousand_wrong_messages_and_answers_right() -> None:
    g, keys = random.Random(1), Keys()
    _, old = opened(keys)
    coordinator, parties = opened(keys)
    first = answered(coordinator, parties)
    for party in parties:
        party.answer(first, 0, SHAPE)
    coordinator.receive("north", vector(parties[0], 1))
    sent = {p.name: vector(p, 1) for p in parties}
    past = [message for p in parties for message in (p.hello(), p.ask(0))]
    true = [*sent.values(), *past, *(vector(p, 1) for p in old), first, coordinator._opening]
    reasons, accepted, named = set[Reason](), 0, True
    for _ in range(MANY):
        sender, data = g.choice([*NAMES, "east"]), broken(g, true)
        if sender in sent and data[: HEAD.size - 8] == sent[sender][: HEAD.size - 8]:
            continue  # its own true head: the words are its own affair
        before = dict(coordinator._received)
        try:
            coordinator.receive(sender, data)
        except Rejected as error:
            reasons.add(error.reason)
            named &= sender in str(error) and error.party == sender
        else:  # a hello that was said before, or the question what came of a round: neither changes anything
            assert data[5] in (Kind.HELLO, Kind.ASK)
            accepted += 1
        assert coordinator._received == before
    assert set(Reason) - reasons <= {Reason.OTHER_AGREEMENT, Reason.ABORTED, Reason.OTHER_ROUND, Reason.TIMEOUT}
    assert accepted < MANY / 10
    assert named
    answer = answered(coordinator, parties[1:], 1)
    assert [found(p.answer(answer, 1, SHAPE)) for p in parties] == [expected(1)] * 3


def test_a_party_refuses_ten_thousand_wrong_answers() -> None:
    """A changed word in an answer cannot be told from noise by design (the coordinator is trusted to add, not to see):
    changes inside the words are the transport's to find. Everything else is refused."""
    g = random.Random(2)
    coordinator, parties = opened()
    answer, opening = answered(coordinator, parties), coordinator._opening
    me, taken = parties[1], 0
    me.answer(answer, 0, SHAPE)
    for _ in range(MANY // 2):
        data = broken(g, [answer, opening, vector(parties[0], 1), Message(Kind.REFUSAL, 0xFFFF, bytes(32)).to_bytes()])
        for read in (lambda d: me.answer(d, 0, SHAPE), me.open):
            try:
                read(data)
            except Refused:
                continue
            assert data in (answer, opening)
            taken += 1
    assert taken < MANY / 40
    assert found(me.answered(0, SHAPE)) == expected(0)


def written(path: Path, *entries: tuple[int, bytes]) -> list[tuple[int, bytes]]:
    """What is in a journal, after these were added."""
    journal = FileJournal(path)
    for kind, body in entries:
        journal.write(kind, body)
    journal.close()
    assert path.stat().st_mode & 0o077 == 0
    return list(journal.entries)


def test_a_journal_cut_anywhere_keeps_its_whole_entries(tmp_path: Path) -> None:
    path, wanted = tmp_path / "journal", [(i, bytes([i]) * (10 * i + 1)) for i in range(3)]
    written(path, *wanted)
    data = path.read_bytes()
    for cut in range(len(data) + 1):
        path.write_bytes(data[:cut])
        again = written(path, (7, b"more"))
        assert again == [*wanted[: len(again) - 1], (7, b"more")]
        assert written(path) == again


def test_a_journal_changed_in_the_middle_is_damaged(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    written(path, *((i, bytes(50)) for i in range(3)))
    data = path.read_bytes()
    last = len(data) - 50 - struct.calcsize("<BI8s4s")
    for byte in range(19, last + 5):  # a length that points beyond the end, too, is no entry that a crash cut off
        path.write_bytes(data[:byte] + bytes([data[byte] ^ 0x80]) + data[byte + 1 :])
        with pytest.raises(Damaged):
            FileJournal(path)
    path.chmod(0o644)
    path.write_bytes(data + bytes(1000))
    assert len(written(path)) == 3
    path.write_bytes(b"something else entirely")
    path.chmod(0o644)
    with pytest.raises(Damaged, match="not a journal"):
        FileJournal(path)
    assert path.stat().st_mode & 0o777 == 0o644  # what is no journal stays as it was


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no full disk to write to")
def test_a_journal_that_cannot_be_written_says_so_and_takes_nothing_more_and_nobody_else_writes_it(
    tmp_path: Path,
) -> None:
    journal = FileJournal(tmp_path / "journal")
    journal.write(0, b"kept")
    with pytest.raises(InvalidInput, match="another process"):
        FileJournal(tmp_path / "journal")
    with open("/dev/full", "wb", buffering=0) as full:
        os.dup2(full.fileno(), journal._file.fileno())
    for _ in range(2):
        with pytest.raises(InvalidInput, match="cannot write the journal"):
            journal.write(1, b"lost")
    assert journal.entries == [(0, b"kept")]


def test_each_entry_of_a_journal_is_on_the_disk_before_anything_follows_from_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its beginning too, and the end of what a killed process had begun to write."""
    sizes, fsync, path = list[int](), os.fsync, tmp_path / "journal"

    def synced(descriptor: int) -> None:
        sizes.append(os.fstat(descriptor).st_size)
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", synced)
    journal, expected = FileJournal(path), [path.stat().st_size]
    for kind in (1, 2):
        journal.write(kind, b"body")
        expected.append(path.stat().st_size)
    assert sizes == expected == sorted(set(expected))
    journal.close()
    whole = path.read_bytes()
    path.write_bytes(whole + whole[-3:])
    FileJournal(path).close()
    assert sizes[3:] == [len(whole)]
