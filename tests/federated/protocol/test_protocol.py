"""The state machines of coordinator and parties: what they accept, refuse, answer and remember."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from itertools import product
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

import attrs
import numpy as np
import pytest

from cloister.core.errors import Damaged, InvalidInput, Refused
from cloister.core.types import Ids
from cloister.federated.protocol import coordinator as coordinating, party as taking_part
from cloister.federated.protocol.agreement import HASH, NONCE, Masks, Member, session_of
from cloister.federated.protocol.coordinator import Coordinator, Due
from cloister.federated.protocol.journal import Memory
from cloister.federated.protocol.masking import Keyring
from cloister.federated.protocol.messages import HEAD, TAG, Reason, Rejected, refusal
from cloister.federated.protocol.party import Party
from cloister.federated.protocol.streams import Place, coordinator_mask
from cloister.federated.protocol.vectors import unpack
from tests.federated.federated_session import (
    NAMES,
    SHAPE,
    Full,
    Keys,
    altered,
    answered,
    begun,
    expected,
    found,
    join,
    message_of,
    no_noise,
    opened,
    others,
    refuses,
    values,
    vector,
)

MODES: tuple[Masks, ...] = ("shared", "pairwise")


@pytest.mark.parametrize("masks", MODES)
def test_every_party_unmasks_the_sum_of_all(masks: Masks) -> None:
    coordinator, parties = opened(Keys(masks))
    for round in range(3):
        assert coordinator.missing == NAMES
        coordinator.receive("north", vector(parties[0], round))
        assert coordinator.outcome(Due(round)) is None
        assert coordinator.missing == NAMES[1:]
        answer = answered(coordinator, parties[1:], round)
        assert [found(p.answer(answer, round, SHAPE)) for p in parties] == [expected(round)] * 3


def test_other_parameters_are_refused_before_any_masked_value_is_sent() -> None:
    coordinator, _ = begun(keys := Keys())
    for other in others(keys.agreement):
        hello = altered(keys.party(0, agreement=other).hello(), sender=0)
        refuses(coordinator, "north", hello, Reason.OTHER_AGREEMENT)
    assert coordinator.missing == NAMES


def test_a_second_vector_with_other_words_does_not_replace_the_first() -> None:
    """Words that nobody's masks fit: were they taken, the sum would be noise at best, and a party could choose its own
    after the others'."""
    coordinator, parties = opened()
    true = vector(parties[0], 0)
    coordinator.receive("north", true)
    body = message_of(true).body
    for wrong in (body[:-1] + bytes([body[-1] ^ 1]), body[:TAG] + bytes(len(body) - TAG)):
        refuses(
            coordinator, "north", altered(true, body=wrong), Reason.DUPLICATE, "second vector for round 1, attempt 1"
        )
    answer = answered(coordinator, parties[1:])
    assert [found(party.answer(answer, 0, SHAPE)) for party in parties] == [expected(0)] * 3


def test_a_round_that_was_answered_is_neither_taken_nor_sent_again() -> None:
    coordinator, parties = opened()
    sent = [vector(p, 0) for p in parties]
    answer = answered(coordinator, parties)
    for party, data in zip(parties, sent, strict=True):
        refuses(coordinator, party.name, data, Reason.LATE)
    assert coordinator.outcome(Due(0)) == answer
    parties[0].answer(answer, 0, SHAPE)
    with pytest.raises(Refused, match="coordinator is wrong"):
        parties[0].aborted(0, 1)
    with pytest.raises(Refused, match="not sent again"):
        vector(parties[0], 0)


def test_parties_whose_rounds_differ_are_named_and_nothing_is_answered() -> None:
    coordinator, parties = opened()
    coordinator.receive("north", vector(parties[0], 0))
    due = coordinator.receive("south", vector(parties[1], 0))
    refuses(coordinator, "west", vector(parties[2], 0, digest="another round"), Reason.OTHER_ROUND)
    with pytest.raises(Rejected, match="west"):
        coordinator.outcome(due)


def test_a_given_up_attempt_is_sent_again_under_fresh_masks_and_no_vector_of_another_attempt_is_taken() -> None:
    coordinator, parties = opened()
    first = [vector(p, 0) for p in parties]
    for party, data in zip(parties[:2], first[:2], strict=True):
        due = coordinator.receive(party.name, data)
    assert coordinator.abort() == ("west",)
    with pytest.raises(Rejected) as error:
        coordinator.outcome(due)
    assert (error.value.reason, error.value.attempt) == (Reason.ABORTED, 1)
    refuses(coordinator, "west", first[2], Reason.OTHER_ATTEMPT, "round 1, attempt 1; attempt 2 is open", 1)
    parties[2].aborted(0, 2)
    refuses(coordinator, "west", vector(parties[2], 0), Reason.OTHER_ATTEMPT, "attempt 3; attempt 2 is open", 1)
    coordinator.abort()
    for party in parties[:2]:
        party.aborted(0, 2)
    again = [vector(p, 0) for p in parties]
    assert all(a[HEAD.size + TAG :] != b[HEAD.size + TAG :] for a, b in zip(first, again, strict=True))
    answer = answered(coordinator, parties)
    assert found(parties[0].answer(answer, 0, SHAPE)) == expected(0)


def test_what_a_round_holds_is_drawn_once() -> None:
    _, parties = opened()
    calls = []

    def draw() -> tuple[Ids, ...]:
        calls.append(1)
        return values(len(calls))

    one = parties[0].vector(0, "d", SHAPE, draw)
    assert parties[0].vector(0, "d", SHAPE, draw) == one
    parties[0].aborted(0, 1)
    assert parties[0].vector(0, "d", SHAPE, draw) != one
    assert len(calls) == 1
    with pytest.raises(Refused, match="platform"):
        parties[0].vector(0, "another round", SHAPE, draw)


@pytest.mark.parametrize("masks", MODES)
def test_a_restarted_party_sends_the_same_bytes_and_keeps_its_answers(masks: Masks) -> None:
    keys, journal = Keys(masks), Memory()
    coordinator, parties = opened(keys, (journal,))
    parties[0].answer(answered(coordinator, parties), 0, SHAPE)
    before = vector(parties[0], 1)
    again = keys.party(0, journal)
    assert again.hello() == parties[0].hello()
    coordinator.receive("north", again.hello())
    assert found(again.answered(0, SHAPE)) == expected(0)
    assert again.vector(1, "d", SHAPE, lambda: pytest.fail("drawn twice")) == before
    coordinator.receive("north", before)
    assert coordinator.receive("north", again.ask(1)) == Due(1)


def test_a_restarted_coordinator_gives_the_same_answers_and_draws_no_noise_twice() -> None:
    keys, journal, draws = Keys(), Memory(), []

    def noise() -> tuple[Ids, ...]:
        draws.append(1)
        return no_noise()

    coordinator, parties = begun(keys, (), journal, noise)
    join(coordinator, parties)
    answer = answered(coordinator, parties)
    coordinator.receive("north", vector(parties[0], 1))
    coordinator.abort()
    again, _ = begun(keys, (), journal, noise)
    assert again._secrets == coordinator._secrets
    kept = [keys.coordinator, *again._secrets]
    assert not any(secret in body for _, body in journal.entries for secret in kept)
    assert again.outcome(Due(0)) == answer
    assert (again.round, again.attempt, again.missing) == (1, 1, NAMES)
    for party in parties:
        party.aborted(1, 1)
    assert found(parties[0].answer(answered(again, parties, 1), 1, SHAPE)) == expected(1)
    assert len(draws) == 2


def test_a_party_that_lost_its_journal_cannot_join_again() -> None:
    coordinator, (north, *_) = begun(keys := Keys())
    coordinator.receive("north", north.hello())
    refuses(coordinator, "north", keys.party(0).hello(), Reason.DUPLICATE)


def test_a_failed_session_tells_everybody_who_was_missing() -> None:
    coordinator, parties = opened()
    due = coordinator.receive("north", vector(parties[0], 0))
    coordinator.fail("nobody heard of south and west")
    for ask in (lambda: coordinator.outcome(due), lambda: coordinator.receive("south", vector(parties[1], 0))):
        with pytest.raises(Rejected) as error:
            ask()
        assert (error.value.reason, error.value.party) == (Reason.TIMEOUT, "south, west")


def test_a_party_takes_one_answer_to_what_it_sent_and_no_other() -> None:
    coordinator, parties = opened()
    data, me = answered(coordinator, parties), parties[0]
    late = refusal(Rejected(Reason.TIMEOUT, "too late", "west"), coordinator.session, 0)
    for message, round, words in ((late, 0, "too late"), (altered(data, round=2), 2, "for which nothing was sent")):
        with pytest.raises(Rejected, match=words):
            me.answer(message, round, SHAPE)
    me.answer(data, 0, SHAPE)
    with pytest.raises(Rejected, match="a second answer to round 1"):
        me.answer(altered(data, body=bytes(len(message_of(data).body))), 0, SHAPE)


def test_an_opening_without_this_partys_nonce_is_refused() -> None:
    keys = Keys()
    replayed, late = opened(keys)[0].outcome(Due(-1)), keys.party(1)
    assert replayed is not None
    late.hello()
    with pytest.raises(Rejected, match="does not hold what this party sent"):
        late.open(replayed)


@pytest.mark.parametrize("masks", MODES)
def test_nobody_takes_the_journal_of_somebody_else_or_of_another_plan_or_order_for_its_own(masks: Masks) -> None:
    keys, mine, theirs, wrong = Keys(masks), Memory(), Memory(), Memory()
    opened(keys, (mine,), theirs)
    other = attrs.evolve(keys.agreement, plan="another")
    for start in (
        lambda: keys.party(0, mine, other),
        lambda: Coordinator(other, theirs, private=keys.coordinator),
        lambda: keys.party(1, mine),
        lambda: keys.party(1, theirs),
        lambda: keys.coordinate(mine),
    ):
        with pytest.raises(InvalidInput, match="another plan, or to somebody else"):
            start()
    assert keys.party(0, mine).opened
    wrong.write(9, b"12345678")
    for damaged in (lambda: keys.coordinate(wrong), lambda: keys.party(0, wrong)):
        with pytest.raises(Damaged):
            damaged()


# what leaves a machine, and what a later step rests on, is in its journal by then


class Watched(Memory):
    """A journal that looks at its owner while an entry is on its way to the disk."""

    def __init__(self) -> None:
        super().__init__()
        self.look: Callable[[int], None] = lambda kind: None

    def write(self, kind: int, body: bytes) -> None:
        self.look(kind)
        super().write(kind, body)


def test_while_the_coordinator_writes_an_opening_or_an_answer_nobody_can_have_it() -> None:
    """Nor has it gone on to another attempt that it has not written down: it stays where it was if it cannot write."""
    journal, seen = Watched(), list[tuple[int, bytes | None, int, int]]()
    coordinator, parties = begun(desk=journal)

    def look(kind: int) -> None:
        due = Due(-1 if kind == coordinating.OPENING else 0, coordinator.attempt)
        seen.append((kind, coordinator.outcome(due), coordinator.round, coordinator.attempt))

    journal.look = look
    join(coordinator, parties)
    coordinator.abort()
    for party in parties:
        party.aborted(0, 1)
    answer = answered(coordinator, parties)
    assert seen == [
        (coordinating.OPENING, None, 0, 0),
        (coordinating.ABORT, None, 0, 0),
        (coordinating.CLOSED, None, 0, 1),
    ]
    assert answer == journal.entries[-1][1][coordinating.PLACE.size :]


@pytest.mark.parametrize("kind", ["JOINED", "OPENED", "VALUE", "SENT", "ABORTED", "ANSWERED"])
def test_a_party_that_cannot_write_sends_nothing_and_takes_nothing_however_often_it_is_asked(kind: str) -> None:
    """A second call finds nothing in memory that is not on the disk."""
    number, drawn = getattr(taking_part, kind), list[int]()
    coordinator, (me, *rest) = begun(journals=(Full(number),))

    def draw() -> tuple[Ids, ...]:
        drawn.append(1)
        return no_noise()

    def send(round: int = 0) -> bytes:
        return me.vector(round, "d", SHAPE, draw)

    def calls() -> Iterator[tuple[str, Callable[[], Any]]]:
        """What writes entries of which kinds, when all that comes before it is done."""
        yield "JOINED", me.hello
        yield "OPENED", lambda: join(coordinator, [*rest, me])
        yield "VALUE, SENT", send
        answer = answered(coordinator, [me, *rest])
        yield "ANSWERED", lambda: me.answer(answer, 0, SHAPE)
        send(1)
        yield "ABORTED", lambda: me.aborted(1, 1)

    for kinds, call in calls():
        if kind in kinds:
            break
        call()
    for _ in range(2):
        with pytest.raises(InvalidInput, match="no space left"):
            call()
    assert number not in {written for written, _ in me._journal.entries}
    if not me.opened:
        with pytest.raises(Refused, match="not open"):
            send()
    if kind == "SENT":
        assert len(drawn) == 1
    if kind == "ABORTED":
        assert message_of(send(1)).attempt == 0


# keys, what a mask's key depends on, and what the coordinator holds


def test_masks_depend_on_their_kind_secret_session_party_and_every_part_of_their_place() -> None:
    words = list[Ids]()
    for secret, session in product((b"a" * 32, b"b" * 32), (b"s" * 32, b"t" * 32)):
        ring = Keyring(session, 0, 3, secret, secret, {1: secret, 2: secret})
        for place, party in product((Place(*p) for p in product((0, 1), repeat=3)), (1, 2)):
            words += [
                ring.group_mask(place, party, 16),
                ring.pair_mask(place, party, 16),
                coordinator_mask(ring.coordinator, session, place, party, 16),
            ]
    every = np.concatenate(words)
    assert len(np.unique(every)) == len(every) == 2 * 2 * 8 * 2 * 3 * 16


@pytest.mark.parametrize("masks", MODES)
def test_no_word_of_a_masked_zero_repeats_over_rounds_tensors_attempts_parties_and_sessions(masks: Masks) -> None:
    """Of 180 words, a third of 64 bits and the others of 40, two are equal with probability below 1e-8."""
    keys, found = Keys(masks), list[int]()
    for _ in range(2):
        coordinator, parties = opened(keys)
        for round, some in product(range(2), (parties[:2], parties)):
            for party in some:
                data = party.vector(round, "d", SHAPE, no_noise)
                coordinator.receive(party.name, data)
                found += np.concatenate(unpack(data[HEAD.size + TAG :], SHAPE)).tolist()
            if some is not parties:
                coordinator.abort()
                for party in parties:
                    party.aborted(round, 1)
    assert len(set(found)) == len(found) == 2 * 2 * 5 * 9


@pytest.mark.parametrize("masks", MODES)
def test_every_session_has_a_new_secret_of_each_party_and_the_coordinator(masks: Masks) -> None:
    keys = Keys(masks)
    sessions = [opened(keys) for _ in range(2)]
    secrets = [secret for coordinator, _ in sessions for secret in coordinator._secrets]
    assert len(set(secrets)) == 6
    for coordinator, parties in sessions:
        assert [party._ring.coordinator for party in parties] == coordinator._secrets


def test_the_name_of_a_session_depends_on_every_hello_and_on_the_agreement() -> None:
    agreed, hellos = b"a" * HASH, tuple(bytes([i]) * NONCE for i in range(3))
    names = {session_of(agreed, hellos), session_of(b"b" * HASH, hellos), session_of(agreed, hellos[::-1])}
    for i, other in product(range(3), (b"x" * NONCE, hellos[0] + b"x")):
        names.add(session_of(agreed, (*hellos[:i], other, *hellos[i + 1 :])))
    assert len(names) == 9


def test_keys_of_the_wrong_kind_are_refused_before_anything_is_written() -> None:
    keys, shared, journal = Keys(), Keys("shared").agreement, Memory()
    agreed, own = keys.agreement, keys.private[0]
    north = agreed.members[0]
    for words, make in (
        ("private key", lambda: Party(agreed, "north", private=keys.private[1], journal=journal)),
        ("common secret", lambda: Party(shared, "north", private=own, journal=journal)),
        ("secret, of 32 bytes or more", lambda: Party(shared, "north", secret=bytes(range(31)), journal=journal)),
        ("does not belong to the plan's", lambda: Coordinator(agreed, journal, private=own)),
        ("different names", lambda: attrs.evolve(agreed, members=(north, north))),
        ("all different", lambda: attrs.evolve(agreed, members=(north, attrs.evolve(north, name="a")))),
        ("no party's", lambda: attrs.evolve(agreed, coordinator_key=north.key)),
        ("no party's", lambda: attrs.evolve(agreed, coordinator_key=bytes(31))),
    ):
        with pytest.raises(InvalidInput, match=words):
            make()
    assert not journal.entries
    assert not Party(shared, "north", secret=bytes(range(32))).opened


@pytest.mark.parametrize("weak", [bytes(32), bytes([1]) + bytes(31)])
def test_keys_that_hide_nothing_are_refused_before_anything_is_written(weak: bytes) -> None:
    keys, journal = Keys(), Memory()
    agreed, coordinator = keys.agreement, keys.coordinate(journal)
    for changes in ({"coordinator_key": weak}, {"members": (*agreed.members[:2], Member("west", weak))}):
        with pytest.raises(InvalidInput, match="low order"):
            keys.party(0, journal, attrs.evolve(agreed, **changes))
    refuses(coordinator, "south", altered(keys.party(1).hello(), body=weak), Reason.MALFORMED)
    assert coordinator.missing == NAMES
    assert not journal.entries


def contents(root: object) -> list[Any]:
    """Everything that an object holds, at any depth."""
    seen, queue, found = {id(root)}, [root], [root]
    while queue:
        for part in gc.get_referents(queue.pop()):
            code = isinstance(part, type | ModuleType | FunctionType | BuiltinFunctionType)
            if id(part) not in seen and not code:
                seen.add(id(part))
                queue.append(part)
                found.append(part)
    return found


def test_the_coordinator_holds_no_key_and_no_unmasked_value() -> None:
    """All bytes and arrays that it can reach, against the group's secret, every party's exact words and the noised
    sums. That its modules import nothing that unmasks is a contract in ``pyproject.toml``."""
    coordinator, parties = opened()
    words = [tuple(np.full(t.size, 10**9 + i, np.uint64) for t in SHAPE) for i in range(3)]
    private = [parties[1]._ring.group, *(w.tobytes()[:5] for own in words for w in own)]
    for party, own in zip(parties, words, strict=True):
        due = coordinator.receive(party.name, party.vector(0, "d", SHAPE, lambda own=own: own))
        for part in contents(coordinator):
            if isinstance(part, bytes | bytearray):
                assert not any(p in part for p in private)
            if isinstance(part, np.ndarray):
                assert not np.isin(part, [10**9 + i for i in range(3)]).any()
    answer = coordinator.outcome(due)
    assert answer is not None
    sums = parties[0].answer(answer, 0, SHAPE)
    assert int(sums[0][0]) == 3 * 10**9 + 3
    assert not any(isinstance(p, bytes) and sums[0].tobytes()[:8] in p for p in contents(coordinator))
