"""What leaves a machine, and what a later step rests on, is in its journal by then: else a crash would make it send
something else."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from cloister.core.errors import InvalidInput, Refused
from cloister.core.types import Ids
from cloister.federated.protocol import coordinator as coordinating, party as taking_part
from cloister.federated.protocol.coordinator import Coordinator, Due
from cloister.federated.protocol.journal import Memory
from cloister.federated.protocol.messages import Rejected
from tests.federated.federated_session import NAMES, SHAPE, Keys, answered, begun, join, no_noise, opened, vector


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


def outcome(coordinator: Coordinator, due: Due) -> bytes | None:
    try:
        return coordinator.outcome(due)
    except Rejected:
        return None


def test_while_the_coordinator_writes_an_opening_or_an_answer_nobody_can_have_it() -> None:
    keys, journal, seen = Keys(), Watched(), list[tuple[int, bytes | None]]()
    coordinator, parties = begun(keys, journal), [keys.party(i) for i in range(3)]
    journal.look = lambda kind: seen.append(
        (kind, outcome(coordinator, Due(-1 if kind == coordinating.OPENING else 0)))
    )
    join(coordinator, parties)
    answer = answered(coordinator, parties)
    assert seen == [(coordinating.OPENING, None), (coordinating.CLOSED, None)]
    assert answer == journal.entries[-1][1][coordinating.PLACE.size :]


@pytest.mark.parametrize("kind", [coordinating.OPENING, coordinating.CLOSED, coordinating.ABORT])
def test_a_coordinator_that_cannot_write_gives_nothing_out_and_goes_nowhere(kind: int) -> None:
    keys = Keys()
    coordinator, parties = begun(keys, Full(kind)), [keys.party(i) for i in range(3)]
    if kind == coordinating.OPENING:
        due, sent = Due(-1), [party.hello() for party in parties]
    else:
        join(coordinator, parties)
        due, sent = Due(0), [vector(party, 0) for party in parties]
    for name, data in zip(NAMES[:2], sent, strict=False):
        coordinator.receive(name, data)
    step = coordinator.abort if kind == coordinating.ABORT else partial(coordinator.receive, "west", sent[2])
    with pytest.raises(InvalidInput, match="no space left"):
        step()
    assert outcome(coordinator, due) is None
    assert (coordinator.round, coordinator.attempt) == (0, 0)


@pytest.mark.parametrize("kind", ["JOINED", "OPENED", "VALUE", "SENT", "ABORTED", "ANSWERED"])
def test_a_party_that_cannot_write_sends_nothing_and_takes_nothing_however_often_it_is_asked(kind: str) -> None:
    """A second call finds nothing in memory that is not on the disk."""
    number, drawn = getattr(taking_part, kind), list[int]()
    keys, journal = Keys(), Full(number)
    if kind in ("JOINED", "OPENED"):
        coordinator, parties = begun(keys), [keys.party(1), keys.party(2), keys.party(0, journal)]
    else:
        coordinator, parties = opened(keys, (journal,))
    (me,) = (party for party in parties if party.me == 0)

    def draw() -> tuple[Ids, ...]:
        drawn.append(1)
        return no_noise()

    def send() -> bytes:
        return me.vector(0, "d", SHAPE, draw)

    steps: dict[str, Callable[[], Any]] = {
        "JOINED": me.hello,
        "OPENED": lambda: join(coordinator, parties),
        "VALUE": send,
        "SENT": send,
    }
    if kind == "ABORTED":
        before = send()
        steps[kind] = lambda: me.aborted(0, 1)
    if kind == "ANSWERED":
        answer = answered(coordinator, parties)
        steps[kind] = lambda: me.answer(answer, 0, SHAPE)
    for _ in range(2):
        with pytest.raises(InvalidInput, match="no space left"):
            steps[kind]()
    assert number not in {written for written, _ in me._journal.entries}
    if kind in ("JOINED", "OPENED"):
        with pytest.raises(Refused, match="not open"):
            send()
    if kind == "SENT":
        assert len(drawn) == 1
    if kind == "ABORTED":
        assert send() == before
