"""Ten thousand generated messages, sent to a coordinator and to a party in the middle of a round: nothing but the true
ones is accepted, nothing raises anything but a refusal, and the round's result is what it would have been."""

from __future__ import annotations

import os
import random
import struct
from pathlib import Path

import pytest

from cloister.core.errors import Damaged, InvalidInput, Refused
from cloister.federated.protocol.agreement import Masks
from cloister.federated.protocol.coordinator import Due
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
    refused,
)
from tests.federated.federated_session import NAMES, SHAPE, Keys, opened, vector
from tests.federated.protocol.test_protocol import expected, found

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


def changed(g: random.Random, true: list[bytes]) -> bytes:
    data = bytearray(g.choice(true))
    how = g.randrange(9)
    if how == 0:
        return bytes(data[: g.randrange(len(data))])
    if how == 1:
        longer = bytes(data) + g.randbytes(g.choice([1, 8, 1000]))
        return longer[:48] + struct.pack("<I", len(longer) - HEAD.size) + longer[52:]
    if how == 2:
        for _ in range(g.choice([1, 3, 20])):
            data[g.randrange(len(data))] ^= 1 << g.randrange(8)
        return bytes(data)
    if how == 3:
        other = g.choice(true)
        cut = g.randrange(len(data))
        return bytes(data[:cut]) + other[cut:]
    if how == 4:
        return g.randbytes(g.choice([0, 1, HEAD.size, len(data), 5000]))
    if how == 5:
        struct.pack_into("<I", data, 40, g.choice([0, 1, 2, 7, 2**31, 2**32 - 1]))
        return bytes(data)
    if how == 6:
        struct.pack_into("<I", data, 44, g.choice([0, 1, 2, 2**32 - 1]))
        return bytes(data)
    if how == 7:
        struct.pack_into("<I", data, 48, g.choice([0, 1, MAX_BYTES, MAX_BYTES + 1, 2**32 - 1]))
        return bytes(data)
    struct.pack_into("<H", data, 6, g.randrange(6))
    return bytes(data)


@pytest.mark.parametrize("masks", ["shared", "pairwise"])
def test_the_coordinator_refuses_ten_thousand_wrong_messages_and_answers_right(masks: Masks) -> None:
    g, keys = random.Random(1), Keys(masks)
    _, old = opened(keys=keys)
    coordinator, parties = opened(keys=keys)
    for party in parties:
        due = coordinator.receive(party.name, vector(party, 0))
    first = coordinator.outcome(due)
    assert first is not None
    for party in parties:
        party.answer(first, 0, SHAPE)
    coordinator.receive("north", vector(parties[0], 1))
    sent = {p.name: vector(p, 1) for p in parties}
    past = (
        [p.hello() for p in parties]
        + [vector(p, 1) for p in old]
        + [p.ask(0) for p in parties]
        + [first, coordinator._opening]
    )
    true = [*sent.values(), *past]
    reasons, accepted, named = set[Reason](), 0, True
    for _ in range(MANY):
        sender, data = g.choice([*NAMES, "east"]), broken(g, true)
        if sender in sent and data[: HEAD.size - 8] == sent[sender][: HEAD.size - 8]:
            continue  # its own true head: the words are its own affair
        before = dict(coordinator._received)
        try:
            due = coordinator.receive(sender, data)
        except Rejected as error:
            reasons.add(error.reason)
            named &= sender in str(error) and error.party == sender
        else:  # a hello that was said before, or the question what came of a round: neither changes anything
            assert data[5] in (Kind.HELLO, Kind.ASK)
            accepted += 1
        assert coordinator._received == before
    assert {
        Reason.MALFORMED,
        Reason.UNKNOWN_PARTY,
        Reason.OTHER_SESSION,
        Reason.DUPLICATE,
        Reason.LATE,
        Reason.EARLY,
    } <= reasons
    assert {Reason.OTHER_ATTEMPT, Reason.WRONG_SHAPE} <= reasons
    assert accepted < MANY / 10
    assert named
    for party in parties[1:]:
        due = coordinator.receive(party.name, sent[party.name])
    answer = coordinator.outcome(due)
    assert answer is not None
    assert [found(p.answer(answer, 1, SHAPE)) for p in parties] == [expected(1)] * 3


@pytest.mark.parametrize("masks", ["shared", "pairwise"])
def test_a_party_refuses_ten_thousand_wrong_answers(masks: Masks) -> None:
    """A changed word in an answer cannot be told from noise by design (the coordinator is trusted to add, not to see):
    changes inside the words are the transport's to find. Everything else is refused."""
    g, keys = random.Random(2), Keys(masks)
    coordinator, parties = opened(keys=keys)
    for party in parties:
        due = coordinator.receive(party.name, vector(party, 0))
    answer, opening = coordinator.outcome(due), coordinator.outcome(Due(-1))
    assert answer is not None
    assert opening is not None
    me, taken = parties[1], 0
    me.answer(answer, 0, SHAPE)
    for _ in range(MANY):
        data = broken(g, [answer, opening, vector(parties[0], 1), Message(Kind.REFUSAL, 0xFFFF, bytes(32)).to_bytes()])
        for read in (lambda d: me.answer(d, 0, SHAPE), me.open):
            try:
                read(data)
            except Refused:
                continue
            assert data in (answer, opening)
            taken += 1
    assert taken < MANY / 20
    known = me.known(0, SHAPE)
    assert known is not None
    assert found(known) == expected(0)


def test_a_refusal_that_cannot_be_read_is_a_refusal() -> None:
    g = random.Random(3)
    for _ in range(2000):
        error = refused(Message(Kind.REFUSAL, 0, bytes(32), body=g.randbytes(g.randrange(40))))
        assert isinstance(error, Rejected)


def test_a_journal_cut_anywhere_keeps_its_whole_entries(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    journal = FileJournal(path)
    wanted = [(i, bytes([i]) * (10 * i + 1)) for i in range(5)]
    for kind, body in wanted:
        journal.write(kind, body)
    journal.close()
    assert path.stat().st_mode & 0o077 == 0
    data = path.read_bytes()
    for cut in range(len(data) + 1):
        path.write_bytes(data[:cut])
        again = FileJournal(path)
        whole = len(again.entries)
        assert again.entries == wanted[:whole]
        again.write(7, b"more")
        again.close()
        last = FileJournal(path)
        assert last.entries == [*wanted[:whole], (7, b"more")]
        last.close()


def test_a_journal_changed_in_the_middle_is_damaged(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    journal = FileJournal(path)
    for i in range(3):
        journal.write(i, bytes(50))
    journal.close()
    data = bytearray(path.read_bytes())
    data[60] ^= 1
    path.write_bytes(bytes(data))
    with pytest.raises(Damaged):
        FileJournal(path)
    data[60] ^= 1
    last = len(data) - 50 - struct.calcsize("<BI8s4s")
    for byte in range(19, last + 5):  # a length that points beyond the end, too, is no entry that a crash cut off
        data[byte] ^= 0x80
        path.write_bytes(bytes(data))
        with pytest.raises(Damaged):
            FileJournal(path)
        data[byte] ^= 0x80
    path.chmod(0o644)
    path.write_bytes(bytes(data) + bytes(1000))
    torn = FileJournal(path)
    assert len(torn.entries) == 3
    assert path.stat().st_mode & 0o077 == 0
    torn.close()
    path.write_bytes(b"something else entirely")
    with pytest.raises(Damaged, match="not a journal"):
        FileJournal(path)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no full disk to write to")
def test_a_journal_that_cannot_be_written_says_so_and_takes_nothing_more(tmp_path: Path) -> None:
    journal = FileJournal(tmp_path / "journal")
    journal.write(0, b"kept")
    with open("/dev/full", "wb", buffering=0) as full:
        os.dup2(full.fileno(), journal._file.fileno())
    for _ in range(2):
        with pytest.raises(InvalidInput, match="cannot write the journal"):
            journal.write(1, b"lost")
    assert journal.entries == [(0, b"kept")]


def test_two_processes_do_not_share_a_journal(tmp_path: Path) -> None:
    journal = FileJournal(tmp_path / "journal")
    with pytest.raises(InvalidInput, match="another process"):
        FileJournal(tmp_path / "journal")
    journal.close()
