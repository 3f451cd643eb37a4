"""The state machines of coordinator and parties: what they accept, refuse, answer and remember."""

from __future__ import annotations

import attrs
import numpy as np
import pytest

from cloister.core.aggregated import to_integers
from cloister.core.errors import Damaged, InvalidInput, Refused
from cloister.core.types import Ids
from cloister.federated.protocol.agreement import Agreement, Masks, Member, statement
from cloister.federated.protocol.coordinator import Coordinator, Due
from cloister.federated.protocol.journal import Memory
from cloister.federated.protocol.messages import HEAD, TAG, Kind, Message, Reason, Rejected, refusal
from cloister.federated.protocol.party import Party
from cloister.federated.protocol.streams import new_private_key, public_key
from tests.federated.federated_session import NAMES, SHAPE, Keys, join, no_noise, opened, values, vector

MODES: tuple[Masks, ...] = ("shared", "pairwise")


def expected(round: int) -> list[list[int]]:
    """What three parties' vectors add up to."""
    per_party = [values(100 * round + i) for i in range(3)]
    return [np.sum([p[t].view(np.int64) for p in per_party], axis=0).tolist() for t in range(len(SHAPE))]


def found(sums: tuple[Ids, ...]) -> list[list[int]]:
    return [to_integers(s, t.bits).tolist() for s, t in zip(sums, SHAPE, strict=True)]


def rejected(coordinator: Coordinator, sender: str, data: bytes) -> Rejected:
    with pytest.raises(Rejected) as error:
        coordinator.receive(sender, data)
    return error.value


@pytest.mark.parametrize("masks", MODES)
def test_every_party_unmasks_the_sum_of_all(masks: Masks) -> None:
    coordinator, parties = opened(masks)
    for round in range(3):
        for party in parties:
            due = coordinator.receive(party.name, vector(party, round))
        answer = coordinator.outcome(due)
        assert answer is not None
        assert [found(p.answer(answer, round, SHAPE)) for p in parties] == [expected(round)] * 3


def test_the_coordinators_noise_is_in_the_sum_once() -> None:
    keys = Keys()
    coordinator = keys.coordinate()
    coordinator.expect(SHAPE, lambda: (np.full(3, 7, np.uint64), np.full(6, 2**64 - 5, np.uint64)))
    parties = [keys.party(i) for i in range(3)]
    join(coordinator, parties)
    for party in parties:
        due = coordinator.receive(party.name, vector(party, 0))
    answer = coordinator.outcome(due)
    assert answer is not None
    first, second = expected(0)
    assert found(parties[1].answer(answer, 0, SHAPE)) == [[x + 7 for x in first], [x - 5 for x in second]]


def test_nothing_is_answered_before_all_have_sent() -> None:
    coordinator, parties = opened()
    due = coordinator.receive("north", vector(parties[0], 0))
    assert coordinator.outcome(due) is None
    assert coordinator.missing == ("south", "west")


@pytest.mark.parametrize("change", ["plan", "order", "key", "masks", "fewer", "coordinator"])
def test_other_parameters_are_refused_before_any_masked_value_is_sent(change: str) -> None:
    keys = Keys()
    agreed = keys.agreement
    other: Agreement = {
        "plan": attrs.evolve(agreed, plan="other bounds"),
        "order": attrs.evolve(agreed, members=agreed.members[::-1]),
        "key": attrs.evolve(agreed, members=(agreed.members[0], agreed.members[1], Member("west", bytes(31) + b"\1"))),
        "masks": attrs.evolve(agreed, masks="shared"),
        "fewer": attrs.evolve(agreed, members=agreed.members[:2]),
        "coordinator": attrs.evolve(agreed, coordinator_key=public_key(new_private_key())),
    }[change]
    coordinator = keys.coordinate()
    party = keys.party(0, agreement=other)
    error = rejected(coordinator, "north", attrs.evolve(_head(party.hello()), sender=0).to_bytes())
    assert error.reason is Reason.OTHER_AGREEMENT
    assert error.party == "north"
    assert coordinator.missing == NAMES


def _head(data: bytes) -> Message:
    _, _, kind, sender, name, round, attempt, *_ = HEAD.unpack_from(data)
    return Message(Kind(kind), sender, name, round, attempt, data[HEAD.size :])


def test_an_unknown_party_is_refused() -> None:
    coordinator, parties = opened()
    error = rejected(coordinator, "east", vector(parties[0], 0))
    assert (error.reason, error.party) == (Reason.UNKNOWN_PARTY, "east")


def test_nobody_speaks_in_anothers_name() -> None:
    coordinator, parties = opened()
    error = rejected(coordinator, "south", vector(parties[0], 0))
    assert (error.reason, error.party) == (Reason.UNKNOWN_PARTY, "south")
    assert coordinator.missing == NAMES


def test_a_second_vector_with_other_words_does_not_replace_the_first() -> None:
    """Words that nobody's masks fit: were they taken, the sum would be noise at best, and a party could choose its own
    after the others'."""
    coordinator, parties = opened()
    one = vector(parties[0], 0)
    coordinator.receive("north", one)
    head = _head(one)
    for wrong in (head.body[:-1] + bytes([head.body[-1] ^ 1]), head.body[:TAG] + bytes(len(head.body) - TAG)):
        other = attrs.evolve(head, body=wrong).to_bytes()
        error = rejected(coordinator, "north", other)
        assert (error.reason, error.party) == (Reason.DUPLICATE, "north")
    for party in parties[1:]:
        due = coordinator.receive(party.name, vector(party, 0))
    answer = coordinator.outcome(due)
    assert answer is not None
    assert [found(party.answer(answer, 0, SHAPE)) for party in parties] == [expected(0)] * 3


def test_what_was_answered_is_not_taken_again() -> None:
    coordinator, parties = opened()
    sent = [vector(p, 0) for p in parties]
    for party, data in zip(parties, sent, strict=True):
        due = coordinator.receive(party.name, data)
    before = coordinator.outcome(due)
    for party, data in zip(parties, sent, strict=True):
        assert rejected(coordinator, party.name, data).reason is Reason.LATE
    assert coordinator.outcome(due) == before


def test_a_vector_of_a_later_round_or_attempt_is_refused() -> None:
    coordinator, parties = opened()
    assert rejected(coordinator, "north", vector(parties[0], 1)).reason is Reason.EARLY
    parties[0].aborted(0, 1)
    assert rejected(coordinator, "north", vector(parties[0], 0)).reason is Reason.OTHER_ATTEMPT


def test_a_vector_of_another_session_is_refused() -> None:
    keys = Keys()
    _, before = opened(keys=keys)
    coordinator, _ = opened(keys=keys)
    assert rejected(coordinator, "north", vector(before[0], 0)).reason is Reason.OTHER_SESSION


@pytest.mark.parametrize("change", [b"", b"\0"])
def test_a_vector_of_another_shape_is_refused(change: bytes) -> None:
    coordinator, parties = opened()
    message = _head(vector(parties[0], 0))
    wrong = attrs.evolve(message, body=message.body + change if change else message.body[:-1])
    error = rejected(coordinator, "north", wrong.to_bytes())
    assert (error.reason, error.party) == (Reason.WRONG_SHAPE, "north")


def test_parties_whose_rounds_differ_are_named_and_nothing_is_answered() -> None:
    coordinator, parties = opened()
    coordinator.receive("north", vector(parties[0], 0))
    due = coordinator.receive("south", vector(parties[1], 0))
    error = rejected(coordinator, "west", vector(parties[2], 0, digest="another round"))
    assert (error.reason, error.party) == (Reason.OTHER_ROUND, "west")
    with pytest.raises(Rejected, match="west"):
        coordinator.outcome(due)


def test_a_given_up_attempt_is_sent_again_under_fresh_masks() -> None:
    coordinator, parties = opened()
    first = [vector(p, 0) for p in parties[:2]]
    for party, data in zip(parties[:2], first, strict=True):
        due = coordinator.receive(party.name, data)
    assert coordinator.abort() == ("west",)
    with pytest.raises(Rejected) as error:
        coordinator.outcome(due)
    assert (error.value.reason, error.value.attempt) == (Reason.ABORTED, 1)
    for party in parties:
        party.aborted(0, 1)
        due = coordinator.receive(party.name, vector(party, 0))
    answer = coordinator.outcome(due)
    assert answer is not None
    assert found(parties[0].answer(answer, 0, SHAPE)) == expected(0)
    again = [vector(p, 1) for p in parties[:2]]
    assert all(a[HEAD.size + TAG :] != b[HEAD.size + TAG :] for a, b in zip(first, again, strict=True))


def test_a_late_vector_of_a_given_up_attempt_is_refused() -> None:
    coordinator, parties = opened()
    late = vector(parties[2], 0)
    coordinator.abort()
    error = rejected(coordinator, "west", late)
    assert (error.reason, error.party, error.attempt) == (Reason.OTHER_ATTEMPT, "west", 1)


def test_an_answered_round_has_no_other_attempt() -> None:
    coordinator, parties = opened()
    for party in parties:
        due = coordinator.receive(party.name, vector(party, 0))
    answer = coordinator.outcome(due)
    assert answer is not None
    parties[0].answer(answer, 0, SHAPE)
    with pytest.raises(Refused, match="coordinator is wrong"):
        parties[0].aborted(0, 1)
    with pytest.raises(Refused, match="not sent again"):
        vector(parties[0], 0)


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


def test_a_round_that_comes_out_differently_is_not_sent_again() -> None:
    _, parties = opened()
    vector(parties[0], 0)
    with pytest.raises(Refused, match="platform"):
        vector(parties[0], 0, digest="another")


@pytest.mark.parametrize("masks", MODES)
def test_a_restarted_party_sends_the_same_bytes_and_keeps_its_answers(masks: Masks) -> None:
    keys = Keys(masks)
    coordinator = keys.coordinate()
    for _ in range(2):
        coordinator.expect(SHAPE, no_noise)
    journals = [Memory() for _ in range(3)]
    parties = [keys.party(i, journals[i]) for i in range(3)]
    join(coordinator, parties)
    for party in parties:
        due = coordinator.receive(party.name, vector(party, 0))
    answer = coordinator.outcome(due)
    assert answer is not None
    parties[0].answer(answer, 0, SHAPE)
    parties[0].vector(1, "d", SHAPE, lambda: values(1))
    before = vector(parties[0], 1)
    again = keys.party(0, journals[0])
    assert again.hello() == parties[0].hello()
    coordinator.receive("north", again.hello())
    known = again.known(0, SHAPE)
    assert known is not None
    assert found(known) == expected(0)
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
    for party in parties:
        coordinator.receive(party.name, vector(party, 0))
    answer = coordinator.outcome(Due(0))
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
        due = again.receive(party.name, vector(party, 1))
    closed = again.outcome(due)
    assert closed is not None
    assert found(parties[0].answer(closed, 1, SHAPE)) == expected(1)
    assert len(draws) == 2


def test_a_party_that_lost_its_journal_cannot_join_again() -> None:
    keys = Keys()
    coordinator = keys.coordinate()
    coordinator.receive("north", keys.party(0).hello())
    error = rejected(coordinator, "north", keys.party(0).hello())
    assert (error.reason, error.party) == (Reason.DUPLICATE, "north")


def test_a_failed_session_tells_everybody_who_was_missing() -> None:
    coordinator, parties = opened()
    due = coordinator.receive("north", vector(parties[0], 0))
    coordinator.fail("nobody heard of south and west")
    with pytest.raises(Rejected) as error:
        coordinator.outcome(due)
    assert error.value.party == "south, west"
    assert rejected(coordinator, "south", vector(parties[1], 0)).reason is Reason.TIMEOUT


@pytest.mark.parametrize("which", ["round", "attempt", "session", "length", "not sent", "refusal", "second"])
def test_a_party_takes_only_the_answer_to_what_it_sent(which: str) -> None:
    coordinator, parties = opened()
    for party in parties:
        due = coordinator.receive(party.name, vector(party, 0))
    data = coordinator.outcome(due)
    assert data is not None
    true, me = _head(data), parties[0]
    wrong = {
        "round": attrs.evolve(true, round=1),
        "attempt": attrs.evolve(true, attempt=1),
        "session": attrs.evolve(true, name=bytes(32)),
        "length": attrs.evolve(true, body=true.body[:-1]),
        "second": attrs.evolve(true, body=bytes(len(true.body))),
    }.get(which, true).to_bytes()
    if which == "not sent":
        wrong = attrs.evolve(true, round=2).to_bytes()
    if which == "refusal":
        wrong = refusal(Rejected(Reason.TIMEOUT, "too late", "west"), true.name, 0)
    if which == "second":
        me.answer(data, 0, SHAPE)
    with pytest.raises(Refused):
        me.answer(wrong, 2 if which == "not sent" else 0, SHAPE)


def test_an_opening_without_this_partys_nonce_is_refused() -> None:
    keys = Keys()
    coordinator, _ = opened(keys=keys)
    replayed = coordinator.outcome(Due(-1))
    assert replayed is not None
    late = keys.party(1)
    late.hello()
    with pytest.raises(Rejected, match="does not hold what this party sent"):
        late.open(replayed)


def test_a_group_secret_that_was_tampered_with_is_refused() -> None:
    keys = Keys()
    coordinator = keys.coordinate()
    parties = [keys.party(i) for i in range(3)]
    first = _head(parties[0].hello())
    changed = attrs.evolve(first, body=first.body[:-1] + bytes([first.body[-1] ^ 1]))
    coordinator.receive("north", changed.to_bytes())
    for party in parties[1:]:
        coordinator.receive(party.name, party.hello())
    opening = coordinator.outcome(Due(-1))
    assert opening is not None
    with pytest.raises(Refused, match="does not hold"):
        parties[0].open(opening)
    with pytest.raises(Refused, match="somebody changed it"):
        parties[2].open(opening)


def test_keys_of_the_wrong_kind_are_refused() -> None:
    keys = Keys()
    with pytest.raises(InvalidInput, match="private key"):
        Party(keys.agreement, "north", private=keys.private[1])
    with pytest.raises(InvalidInput, match="common secret"):
        Party(attrs.evolve(keys.agreement, masks="shared"), "north", private=keys.private[0])
    with pytest.raises(InvalidInput, match="not one of the agreed"):
        Party(keys.agreement, "east", private=keys.private[0])
    for agreement in (
        attrs.evolve(
            keys.agreement, members=(keys.agreement.members[0], Member("south", bytes(32)), keys.agreement.members[2])
        ),
    ):
        with pytest.raises(InvalidInput, match="low order"):
            keys.party(0, agreement=agreement)
    with pytest.raises(InvalidInput, match="different names"):
        Agreement("plan", (Member("a"), Member("a")), "shared", bytes(32))
    with pytest.raises(InvalidInput, match="its own"):
        Agreement("plan", (Member("a", bytes(32)), Member("b", bytes(32))), "pairwise", bytes([1] * 32))


@pytest.mark.parametrize("length", [0, 16, 31])
def test_a_common_secret_below_32_bytes_is_refused_before_anything_is_written(length: int) -> None:
    agreement, journal = Keys("shared").agreement, Memory()
    with pytest.raises(InvalidInput, match=r"common secret, of 32 bytes or more"):
        Party(agreement, "north", secret=bytes(range(length)), journal=journal)
    assert journal.entries == []
    assert not Party(agreement, "north", secret=bytes(range(32)), journal=journal).opened


def test_a_journal_of_another_plan_is_refused() -> None:
    keys, mine, theirs = Keys(), Memory(), Memory()
    coordinator, parties = keys.coordinate(theirs), [keys.party(0, mine), keys.party(1), keys.party(2)]
    join(coordinator, parties)
    other = attrs.evolve(keys.agreement, plan="another")
    with pytest.raises(InvalidInput, match="another plan"):
        keys.party(0, mine, agreement=other)
    with pytest.raises(InvalidInput, match="another plan"):
        Coordinator(other, theirs, private=keys.coordinator)


@pytest.mark.parametrize("masks", MODES)
def test_nobody_takes_somebody_elses_journal_for_its_own(masks: Masks) -> None:
    keys, mine, theirs = Keys(masks), Memory(), Memory()
    coordinator, parties = keys.coordinate(theirs), [keys.party(0, mine), keys.party(1), keys.party(2)]
    join(coordinator, parties)
    for journal in (mine, theirs):
        with pytest.raises(InvalidInput, match="somebody else"):
            keys.party(1, journal)
    with pytest.raises(InvalidInput, match="somebody else"):
        keys.coordinate(mine)
    assert keys.party(0, mine).opened


def test_a_journal_out_of_order_is_damaged() -> None:
    journal = Memory()
    journal.write(9, b"12345678")
    with pytest.raises(Damaged):
        Keys().coordinate(journal)
    with pytest.raises(Damaged):
        Keys().party(0, journal)


@pytest.mark.parametrize("masks", MODES)
@pytest.mark.parametrize("shares", [1, 3])
def test_every_mode_says_who_learns_what(masks: Masks, shares: int) -> None:
    words = " ".join(statement(masks, shares, 1))
    assert "emi-honest" in words
    assert ("no privacy" in words) == (shares == 1)
