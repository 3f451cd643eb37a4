"""The state machines of coordinator and parties: what they accept, refuse, answer and remember."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from cloister.core.errors import Damaged, InvalidInput, Refused
from cloister.core.types import Ids
from cloister.federated.protocol.agreement import Agreement, Masks, Member
from cloister.federated.protocol.coordinator import Coordinator, Due
from cloister.federated.protocol.journal import Memory
from cloister.federated.protocol.messages import HEAD, TAG, Reason, Rejected, refusal
from cloister.federated.protocol.party import Party
from cloister.federated.protocol.streams import new_private_key, public_key
from tests.federated.federated_session import (
    NAMES,
    SHAPE,
    Keys,
    answered,
    expected,
    found,
    join,
    message_of,
    no_noise,
    opened,
    values,
    vector,
)

MODES: tuple[Masks, ...] = ("shared", "pairwise")


def refuses(coordinator: Coordinator, sender: str, data: bytes, reason: Reason, attempt: int = 0) -> None:
    """The coordinator does, for this reason, and names the sender."""
    with pytest.raises(Rejected) as error:
        coordinator.receive(sender, data)
    assert (error.value.reason, error.value.party, error.value.attempt) == (reason, sender, attempt)


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


@pytest.mark.parametrize("change", ["plan", "order", "key", "masks", "fewer", "coordinator"])
def test_other_parameters_are_refused_before_any_masked_value_is_sent(change: str) -> None:
    keys = Keys()
    agreed = keys.agreement
    north, south, _ = agreed.members
    changes: dict[str, dict[str, Any]] = {
        "plan": {"plan": "other bounds"},
        "order": {"members": agreed.members[::-1]},
        "key": {"members": (north, south, Member("west", bytes(31) + b"\1"))},
        "masks": {"masks": "shared"},
        "fewer": {"members": (north, south)},
        "coordinator": {"coordinator_key": public_key(new_private_key())},
    }
    coordinator, party = keys.coordinate(), keys.party(0, agreement=attrs.evolve(agreed, **changes[change]))
    hello = attrs.evolve(message_of(party.hello()), sender=0).to_bytes()
    refuses(coordinator, "north", hello, Reason.OTHER_AGREEMENT)
    assert coordinator.missing == NAMES


def test_the_coordinator_refuses_what_does_not_belong_where_it_comes_and_stays_as_it_was() -> None:
    keys = Keys()
    _, before = opened(keys)
    coordinator, parties = opened(keys)
    true = message_of(vector(parties[0], 0))
    shorter, longer = (attrs.evolve(true, body=body).to_bytes() for body in (true.body[:-1], true.body + b"\0"))
    for sender, data, reason in [
        ("east", true.to_bytes(), Reason.UNKNOWN_PARTY),
        ("south", true.to_bytes(), Reason.UNKNOWN_PARTY),  # in another's name
        ("north", vector(parties[0], 1), Reason.EARLY),
        ("north", vector(before[0], 0), Reason.OTHER_SESSION),
        ("north", shorter, Reason.WRONG_SHAPE),
        ("north", longer, Reason.WRONG_SHAPE),
    ]:
        refuses(coordinator, sender, data, reason)
        assert coordinator.missing == NAMES


def test_a_second_vector_with_other_words_does_not_replace_the_first() -> None:
    """Words that nobody's masks fit: were they taken, the sum would be noise at best, and a party could choose its own
    after the others'."""
    coordinator, parties = opened()
    one = vector(parties[0], 0)
    coordinator.receive("north", one)
    true = message_of(one)
    for wrong in (true.body[:-1] + bytes([true.body[-1] ^ 1]), true.body[:TAG] + bytes(len(true.body) - TAG)):
        refuses(coordinator, "north", attrs.evolve(true, body=wrong).to_bytes(), Reason.DUPLICATE)
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
    refuses(coordinator, "west", first[2], Reason.OTHER_ATTEMPT, attempt=1)
    parties[2].aborted(0, 2)
    refuses(coordinator, "west", vector(parties[2], 0), Reason.OTHER_ATTEMPT, attempt=1)
    coordinator.abort()
    for party in parties[:2]:
        party.aborted(0, 2)
    answer = answered(coordinator, parties)
    assert found(parties[0].answer(answer, 0, SHAPE)) == expected(0)
    again = [vector(p, 1) for p in parties]
    assert all(a[HEAD.size + TAG :] != b[HEAD.size + TAG :] for a, b in zip(first, again, strict=True))


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
    assert found(again.known(0, SHAPE)) == expected(0)
    assert again.vector(1, "d", SHAPE, lambda: pytest.fail("drawn twice")) == before
    coordinator.receive("north", before)
    assert coordinator.receive("north", again.ask(1)) == Due(1)


def test_a_restarted_coordinator_gives_the_same_answers_and_draws_no_noise_twice() -> None:
    keys, journal, draws = Keys(), Memory(), []

    def noise() -> tuple[Ids, ...]:
        draws.append(1)
        return no_noise()

    def started() -> Coordinator:
        coordinator = keys.coordinate(journal)
        for _ in range(2):
            coordinator.expect(SHAPE, noise)
        return coordinator

    coordinator, parties = started(), [keys.party(i) for i in range(3)]
    join(coordinator, parties)
    answer = answered(coordinator, parties)
    coordinator.receive("north", vector(parties[0], 1))
    coordinator.abort()
    again = started()
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
    keys = Keys()
    coordinator = keys.coordinate()
    coordinator.receive("north", keys.party(0).hello())
    refuses(coordinator, "north", keys.party(0).hello(), Reason.DUPLICATE)


def test_a_failed_session_tells_everybody_who_was_missing() -> None:
    coordinator, parties = opened()
    due = coordinator.receive("north", vector(parties[0], 0))
    coordinator.fail("nobody heard of south and west")
    for ask in (lambda: coordinator.outcome(due), lambda: coordinator.receive("south", vector(parties[1], 0))):
        with pytest.raises(Rejected) as error:
            ask()
        assert (error.value.reason, error.value.party) == (Reason.TIMEOUT, "south, west")


def test_a_party_takes_only_the_answer_to_what_it_sent() -> None:
    coordinator, parties = opened()
    data, me = answered(coordinator, parties), parties[0]
    true = message_of(data)
    late = refusal(Rejected(Reason.TIMEOUT, "too late", "west"), true.name, 0)
    other = attrs.evolve(true, body=bytes(len(true.body))).to_bytes()
    for changes in ({"round": 1}, {"attempt": 1}, {"name": bytes(32)}, {"body": true.body[:-1]}):
        with pytest.raises(Refused):
            me.answer(attrs.evolve(true, **changes).to_bytes(), 0, SHAPE)
    with pytest.raises(Rejected, match="too late"):
        me.answer(late, 0, SHAPE)
    with pytest.raises(Rejected, match="for which nothing was sent"):
        me.answer(attrs.evolve(true, round=2).to_bytes(), 2, SHAPE)
    me.answer(data, 0, SHAPE)
    with pytest.raises(Rejected, match="a second answer to round 1"):
        me.answer(other, 0, SHAPE)


def test_an_opening_without_this_partys_nonce_is_refused() -> None:
    keys = Keys()
    coordinator, _ = opened(keys)
    replayed, late = coordinator.outcome(Due(-1)), keys.party(1)
    assert replayed is not None
    late.hello()
    with pytest.raises(Rejected, match="does not hold what this party sent"):
        late.open(replayed)


def test_a_group_secret_that_was_tampered_with_is_refused() -> None:
    keys = Keys()
    coordinator, parties = keys.coordinate(), [keys.party(i) for i in range(3)]
    first = message_of(parties[0].hello())
    changed = attrs.evolve(first, body=first.body[:-1] + bytes([first.body[-1] ^ 1])).to_bytes()
    for name, hello in zip(NAMES, (changed, parties[1].hello(), parties[2].hello()), strict=True):
        coordinator.receive(name, hello)
    opening = coordinator.outcome(Due(-1))
    assert opening is not None
    for i, words in ((0, "does not hold"), (2, "somebody changed it")):
        with pytest.raises(Refused, match=words):
            parties[i].open(opening)


def test_keys_of_the_wrong_kind_are_refused() -> None:
    keys = Keys()
    agreed, private = keys.agreement, keys.private[0]
    north, _, west = agreed.members
    one = bytes(32)
    for words, make in {
        "private key": lambda: Party(agreed, "north", private=keys.private[1]),
        "common secret": lambda: Party(attrs.evolve(agreed, masks="shared"), "north", private=private),
        "not one of the agreed": lambda: Party(agreed, "east", private=private),
        "low order": lambda: keys.party(0, agreement=attrs.evolve(agreed, members=(north, Member("south", one), west))),
        "different names": lambda: Agreement("plan", (Member("a"), Member("a")), "shared", one),
        "its own": lambda: Agreement("plan", (Member("a", one), Member("b", one)), "pairwise", bytes([1] * 32)),
    }.items():
        with pytest.raises(InvalidInput, match=words):
            make()


@pytest.mark.parametrize("length", [0, 16, 31])
def test_a_common_secret_below_32_bytes_is_refused_before_anything_is_written(length: int) -> None:
    agreement, journal = Keys("shared").agreement, Memory()
    with pytest.raises(InvalidInput, match=r"common secret, of 32 bytes or more"):
        Party(agreement, "north", secret=bytes(range(length)), journal=journal)
    assert journal.entries == []
    assert not Party(agreement, "north", secret=bytes(range(32)), journal=journal).opened


@pytest.mark.parametrize("masks", MODES)
def test_nobody_takes_the_journal_of_somebody_else_or_of_another_plan_or_order_for_its_own(masks: Masks) -> None:
    keys, mine, theirs, wrong = Keys(masks), Memory(), Memory(), Memory()
    opened(keys, (mine,), theirs)
    other = attrs.evolve(keys.agreement, plan="another")
    with pytest.raises(InvalidInput, match="another plan"):
        keys.party(0, mine, agreement=other)
    with pytest.raises(InvalidInput, match="another plan"):
        Coordinator(other, theirs, private=keys.coordinator)
    for journal in (mine, theirs):
        with pytest.raises(InvalidInput, match="somebody else"):
            keys.party(1, journal)
    with pytest.raises(InvalidInput, match="somebody else"):
        keys.coordinate(mine)
    assert keys.party(0, mine).opened
    wrong.write(9, b"12345678")
    for start in (keys.coordinate, lambda journal: keys.party(0, journal)):
        with pytest.raises(Damaged):
            start(wrong)
