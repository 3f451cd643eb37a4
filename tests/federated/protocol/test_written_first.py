"""What leaves a machine, and what a later step rests on, is in its journal by then: else a crash would make it send
something else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from cloister.core.errors import InvalidInput, Refused
from cloister.federated.protocol import coordinator as coordinating, party as taking_part
from cloister.federated.protocol.coordinator import Coordinator, Due
from cloister.federated.protocol.journal import Memory
from cloister.federated.protocol.messages import Rejected
from cloister.federated.protocol.party import Party
from tests.federated.federated_session import SHAPE, Keys, join, no_noise, vector


class Full(Memory):
    """A journal without room for one kind of entry."""

    def __init__(self, kind: int) -> None:
        super().__init__()
        self.kind = kind

    def write(self, kind: int, body: bytes) -> None:
        if kind == self.kind:
            raise InvalidInput("cannot write the journal: no space left")
        super().write(kind, body)


class Watched(Memory):
    """A journal that looks at its owner while an entry is on its way to the disk."""

    def __init__(self) -> None:
        super().__init__()
        self.look: Callable[[int], None] = lambda kind: None

    def write(self, kind: int, body: bytes) -> None:
        self.look(kind)
        super().write(kind, body)


def answered(coordinator: Coordinator, due: Due) -> bytes | None:
    try:
        return coordinator.outcome(due)
    except Rejected:
        return None


def test_while_the_coordinator_writes_an_opening_or_an_answer_nobody_can_have_it() -> None:
    keys, journal, seen = Keys(), Watched(), list[tuple[int, bytes | None]]()
    coordinator = keys.coordinate(journal)
    coordinator.expect(SHAPE, no_noise)

    def look(kind: int) -> None:
        seen.append((kind, answered(coordinator, Due(-1 if kind == coordinating.OPENING else 0))))

    journal.look = look
    parties = [keys.party(i) for i in range(3)]
    join(coordinator, parties)
    for party in parties:
        due = coordinator.receive(party.name, vector(party, 0))
    assert seen == [(coordinating.OPENING, None), (coordinating.CLOSED, None)]
    assert coordinator.outcome(due) == journal.entries[-1][1][coordinating.PLACE.size :]


@pytest.mark.parametrize("kind", [coordinating.OPENING, coordinating.CLOSED])
def test_a_coordinator_that_cannot_write_an_opening_or_an_answer_gives_none_out(kind: int) -> None:
    keys = Keys()
    coordinator = keys.coordinate(Full(kind))
    coordinator.expect(SHAPE, no_noise)
    parties = [keys.party(i) for i in range(3)]
    due, full = Due(-1), pytest.raises(InvalidInput, match="no space left")
    if kind == coordinating.CLOSED:
        join(coordinator, parties)
        due = Due(0)
    send: Callable[[Party], bytes] = Party.hello if kind == coordinating.OPENING else lambda p: vector(p, 0)
    for party in parties[:2]:
        coordinator.receive(party.name, send(party))
    with full:
        coordinator.receive("west", send(parties[2]))
    assert answered(coordinator, due) is None
    assert coordinator.round == 0


def test_a_given_up_attempt_is_written_before_the_next_one_opens() -> None:
    keys = Keys()
    coordinator = keys.coordinate(Full(coordinating.ABORT))
    coordinator.expect(SHAPE, no_noise)
    parties = [keys.party(i) for i in range(3)]
    join(coordinator, parties)
    with pytest.raises(InvalidInput, match="no space left"):
        coordinator.abort()
    assert coordinator.attempt == 0


@pytest.mark.parametrize("kind", [taking_part.JOINED, taking_part.VALUE, taking_part.SENT, taking_part.ANSWERED])
def test_a_party_that_cannot_write_sends_nothing_and_takes_nothing_however_often_it_is_asked(kind: int) -> None:
    """A second call finds nothing in memory that is not on the disk."""
    keys, journal = Keys(), Full(kind)
    coordinator, me = keys.coordinate(), keys.party(0, journal)
    coordinator.expect(SHAPE, no_noise)
    parties, drawn = [me, keys.party(1), keys.party(2)], list[int]()
    step: Callable[[], Any] = me.hello
    if kind != taking_part.JOINED:
        join(coordinator, parties)

        def values() -> Any:
            drawn.append(1)
            return no_noise()

        def send() -> bytes:
            return me.vector(0, "d", SHAPE, values)

        step = send
    if kind == taking_part.ANSWERED:
        for party in parties:
            due = coordinator.receive(party.name, vector(party, 0))
        answer = coordinator.outcome(due)
        assert answer is not None

        def take() -> Any:
            return me.answer(answer, 0, SHAPE)

        step = take
    for _ in range(2):
        with pytest.raises(InvalidInput, match="no space left"):
            step()
    assert kind not in {k for k, _ in journal.entries}
    if kind == taking_part.SENT:
        assert len(drawn) == 1


def test_a_party_that_cannot_write_that_the_session_is_open_masks_nothing() -> None:
    keys = Keys()
    coordinator, me = keys.coordinate(), keys.party(0, Full(taking_part.OPENED))
    with pytest.raises(InvalidInput, match="no space left"):
        join(coordinator, [keys.party(1), keys.party(2), me])
    assert not me.opened
    with pytest.raises(Refused, match="not open"):
        vector(me, 0)


def test_a_party_that_cannot_write_that_an_attempt_is_over_stays_with_it() -> None:
    keys = Keys()
    coordinator, me = keys.coordinate(), keys.party(0, Full(taking_part.ABORTED))
    coordinator.expect(SHAPE, no_noise)
    join(coordinator, [me, keys.party(1), keys.party(2)])
    before = vector(me, 0)
    with pytest.raises(InvalidInput, match="no space left"):
        me.aborted(0, 1)
    assert vector(me, 0) == before


def test_what_a_party_sends_is_in_its_journal_when_it_has_it() -> None:
    keys, journal = Keys(), Memory()
    coordinator, me = keys.coordinate(), keys.party(0, journal)
    join(coordinator, [me, keys.party(1), keys.party(2)])
    sent = vector(me, 0)
    kind, entry = journal.entries[-1]
    assert kind == taking_part.SENT
    assert sent.endswith(entry[taking_part.PLACE.size :])
    assert me.hello().endswith(journal.entries[0][1][-32:])
