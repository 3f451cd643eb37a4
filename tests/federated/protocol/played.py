"""One round of a session as its machines go through it, with all that passes on the wire: what an adversary works
with."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import attrs
import numpy as np

from cloister.core.aggregated import RingVector, to_words
from cloister.core.buckets import QuestionContext, Space
from cloister.core.budget import Budget
from cloister.core.domains import Box
from cloister.core.questions import OpenedQuestion, Round
from cloister.core.randomness import NoiseRng, PublicRng
from cloister.core.trust import Aggregated
from cloister.core.types import Ids, Ints
from cloister.federated.protocol.agreement import Masks
from cloister.federated.protocol.coordinator import Coordinator
from cloister.federated.protocol.messages import HEAD, TAG
from cloister.federated.protocol.party import Party
from cloister.federated.protocol.streams import Place, coordinator_mask
from cloister.federated.protocol.vectors import coordinator_noise, party_words, round_shape, unpack
from cloister.noise.ring import RingChannel
from cloister.plugins.oracles.aggregated.masked_gaussian import MaskedGaussian
from cloister.plugins.oracles.aggregated.skellam import SkellamShares
from tests.federated.federated_session import Keys, join

NUMBERS = 3000
"""Words of each of two tensors: enough to see that they are uniform, or how wide a noise is."""

NAMES = ("north", "south", "west", "east")


@attrs.frozen
class Played:
    """What was sent, and what nobody sends.

    Args:
        channel: of both questions.
        exact: exact scaled counts per party and tensor, and nothing else.
        messages: masked words by (attempt, party), per tensor.
        answer: the coordinator's words, per tensor.
        noise: what the coordinator added: zeros if parties draw shares.
        shares: what each party added, per tensor.
        released: what a party unmasks, per tensor.
    """

    coordinator: Coordinator
    parties: list[Party]
    channel: RingChannel
    exact: list[tuple[Ints, ...]]
    messages: dict[tuple[int, int], tuple[Ids, ...]]
    answer: tuple[Ids, ...]
    noise: tuple[Ids, ...]
    shares: list[tuple[Ids, ...]]
    released: tuple[Ids, ...]

    def known(self, of: int, tensor: int, attempt: int, coordinator: bool, among: tuple[int, ...]) -> Ids:
        """The sum of all masks on one party's message that these machines can work out from what they hold.

        Args:
            coordinator: whether it is one of them.
            among: the parties of them.
        """
        place, total = Place(0, tensor, attempt), np.zeros(NUMBERS, np.uint64)
        session = self.coordinator.session
        for one in among:
            ring = self.parties[one]._ring
            if one == among[0]:
                total = total + ring.group_mask(place, of, NUMBERS)
            if one == of:
                total = total + coordinator_mask(ring.coordinator, session, place, of, NUMBERS)
            for other in ring.pairs:
                if of == one or (of == other and other not in among):
                    mask = ring.pair_mask(place, other, NUMBERS)
                    total = total + mask if of == min(one, other) else total - mask
        if coordinator and of not in among:
            total = total + coordinator_mask(self.coordinator._secrets[of], session, place, of, NUMBERS)
        return total

    def opened(
        self, of: int, tensor: int = 0, attempt: int = 0, *, coordinator: bool = False, among: tuple[int, ...] = ()
    ) -> Ids:
        """One party's message without those masks."""
        return self.messages[attempt, of][tensor] - self.known(of, tensor, attempt, coordinator, among)

    def group(self) -> Ids:
        """The sum of all masks of the group on the first tensor of the first attempt."""
        return added(self.parties[0]._ring.group_mask(Place(0, 0, 0), i, NUMBERS) for i in range(len(self.parties)))

    def sum_of(self, some: Iterable[int], tensor: int = 0) -> Ids:
        """These parties' exact sums, as words."""
        return added(to_words(self.exact[i][tensor]) for i in some)

    def noised(self, some: Iterable[int], tensor: int = 0) -> Ids:
        """The same with their shares of the noise."""
        return added(to_words(self.exact[i][tensor]) + self.shares[i][tensor] for i in some)


def added(vectors: Iterable[Ids]) -> Ids:
    return np.sum(list(vectors), axis=0, dtype=np.uint64)


def opened_for(oracle: str, parties: int, colluding: int = 1, most_rows: int = 10**6) -> RingChannel:
    """A channel of an oracle's, for this number of parties."""
    made: Any = (
        SkellamShares(parties=parties, colluding=colluding, most_rows=most_rows)
        if oracle == "skellam"
        else MaskedGaussian(parties=parties, most_rows=most_rows)
    )
    context = QuestionContext(1000, 1.0, PublicRng.from_seed(1))
    return made.open(Space((NUMBERS,)), Budget("gaussian", 0.04), context)


def round_of(channel: RingChannel, index: int = 0) -> Round[Any]:
    """A round of two questions that have this channel."""
    question = OpenedQuestion(None, None, None, channel)  # type: ignore[arg-type]
    return Round(index, Aggregated, Box((-1.0,), (1.0,)), (question, question))


def play(oracle: str, masks: Masks = "pairwise", parties: int = 3, colluding: int = 0, aborted: int = 0) -> Played:
    """A round, after some attempts that the last party missed. Args: colluding (at most; 0: one, or with a shared
    secret and noise in shares all but one, since no other plan is allowed)."""
    colluding = colluding or (parties - 1 if masks == "shared" and oracle == "skellam" else 1)
    channel = opened_for(oracle, parties, colluding)
    asked, rng = round_of(channel), NoiseRng.secret()
    keys, shape, noise = (
        Keys(masks, NAMES[:parties]),
        round_shape(asked, parties),
        coordinator_noise(asked, parties, rng),
    )
    coordinator, machines = keys.coordinate(), [keys.party(i) for i in range(parties)]
    coordinator.expect(shape, lambda: noise)
    join(coordinator, machines)
    exact = [_counted(channel, i) for i in range(parties)]
    words = [
        party_words(asked, tuple(RingVector(to_words(t), 10) for t in e), i, parties, rng) for i, e in enumerate(exact)
    ]
    messages = dict[tuple[int, int], tuple[Ids, ...]]()
    for attempt in range(aborted + 1):
        for party in machines if attempt == aborted else machines[:-1]:
            data = party.vector(0, "d", shape, lambda own=words[party.me]: own)
            due = coordinator.receive(party.name, data)
            messages[attempt, party.me] = unpack(data[HEAD.size + TAG :], shape)
        if attempt < aborted:
            coordinator.abort()
            for party in machines:
                party.aborted(0, attempt + 1)
    answer = coordinator.outcome(due)
    assert answer is not None
    released = [party.answer(answer, 0, shape) for party in machines]
    assert all(np.array_equal(a, b) for other in released for a, b in zip(released[0], other, strict=True))
    shares = [tuple(w - to_words(t) for w, t in zip(one, e, strict=True)) for one, e in zip(words, exact, strict=True)]
    return Played(
        coordinator, machines, channel, exact, messages, unpack(answer[HEAD.size :], shape), noise, shares, released[0]
    )


def _counted(channel: RingChannel, party: int) -> tuple[Ints, ...]:
    """A party's exact counts of both questions, scaled."""
    g = np.random.default_rng(party)
    return tuple(g.integers(0, 1000, NUMBERS) << channel.tensor.shift for _ in range(2))


def cut(words: Ids, channel: RingChannel) -> Ids:
    """The bits that the ring has: all that travels, and all that means anything."""
    return words & np.uint64(2**channel.bits - 1) if channel.bits < 64 else words
