"""Population of organisations that pool masked sums, all in one process.

It is for tests, simulations, and one organisation's own departments. The masks, messages, refusals and noise are those
of the protocol between machines; only the wire is missing. Whoever runs this can see all rows, and a result says so.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from functools import partial
from typing import Any, final

from cloister.core.aggregated import RingVector
from cloister.federated.protocol.agreement import Agreement, Masks, Member
from cloister.federated.protocol.coordinator import Coordinator, Due
from cloister.federated.protocol.masking import new_secret
from cloister.federated.protocol.party import Party
from cloister.federated.protocol.streams import new_private_key, public_key
from cloister.federated.protocol.vectors import coordinator_noise, party_words, released, round_shape
from cloister.plugin import CAP, Aggregated, Ids, InvalidInput, NoiseRng, Round, fingerprinter, subkey
from cloister.rows.selection import Selection


@final
class Parties:
    """Population of trust Aggregated, made of others.

    Args:
        members: each party's rows: populations with the same columns; two or more, by name if names matter.
        masks: 'shared' (a secret among the parties, as in the paper) or 'pairwise' (also keys of every pair).

    Attributes:
        columns: as the first party calls them.
        coordinator: its state machine, for tests and benchmarks.
        parties: their state machines.

    Raises:
        InvalidInput: there are fewer than two parties, some have other columns, or two have the same rows.
    """

    trust = Aggregated
    simulated = True

    def __init__(self, members: Sequence[Any] | dict[str, Any], masks: Masks = "pairwise") -> None:
        named = members if isinstance(members, dict) else {f"party {i + 1}": m for i, m in enumerate(members)}
        self._members = list(named.values())
        if len(self._members) < 2:
            raise InvalidInput("pooling needs two parties or more: give the rows of each")
        self.columns = tuple(self._members[0].columns)
        for name, member in named.items():
            if tuple(member.columns) != self.columns:
                raise InvalidInput(
                    f"'{name}' has the columns {list(member.columns)}, the first party {list(self.columns)}: "
                    f"name the same ones for all"
                )
        _refuse_the_same(named)
        self.selection: Selection | None = getattr(self._members[0], "selection", None)
        self.missing: str = getattr(self._members[0], "missing", "refuse")
        private = [new_private_key() if masks == "pairwise" else None for _ in named]
        secret, coordinator_key = new_secret() if masks == "shared" else None, new_private_key()
        agreement = Agreement(
            "one process",
            tuple(Member(n, b"" if p is None else public_key(p)) for n, p in zip(named, private, strict=True)),
            masks,
            public_key(coordinator_key),
        )
        self.coordinator = Coordinator(agreement, private=coordinator_key)
        self.parties = [Party(agreement, n, secret=secret, private=p) for n, p in zip(named, private, strict=True)]
        for party in self.parties:
            self.coordinator.receive(party.name, party.hello())
        opening = self.coordinator.outcome(Due(-1))
        assert opening is not None
        for party in self.parties:
            party.open(opening)

    @property
    def dimension(self) -> int:
        return len(self.columns)

    def check(self, most_rows: int = CAP) -> None:
        """Make every party's own validation pass.

        Args:
            most_rows: most rows of one party.

        Raises:
            InvalidInput: as that party's population.
        """
        for member in self._members:
            member.check(most_rows)

    def fingerprints(self, key: bytes) -> dict[str, bytes]:
        """Return the fingerprints of every party's rows (``core.fingerprints``), by her name."""
        members = zip(self.parties, self._members, strict=True)
        return {
            f"{name} ({party.name})": value
            for party, member in members
            for name, value in fingerprinter(member)(subkey(key, party.name)).items()
        }

    def gather(self, round: Round[Aggregated], rng: NoiseRng) -> tuple[RingVector, ...]:
        parties, number = len(self._members), self.coordinator.round
        shape, digest = round_shape(round, parties), round.digest()
        self.coordinator.expect(shape, lambda: coordinator_noise(round, parties, rng))
        for i, (party, member) in enumerate(zip(self.parties, self._members, strict=True)):
            words = party_words(round, member.gather(round, rng.child("party", i)), i, parties, rng)
            self.coordinator.receive(party.name, party.vector(number, digest, shape, partial(_same, words)))
        answer = self.coordinator.outcome(Due(number))
        assert answer is not None
        sums = [party.answer(answer, number, shape) for party in self.parties]
        return released(sums[0])


def _refuse_the_same(named: Mapping[str, Any]) -> None:
    """Raise InvalidInput if two parties have one object for their rows, or one file, array or table.

    Copies pass: only the cells would tell.
    """
    owners = dict[Hashable, str]()
    for name, member in named.items():
        for origin in {("the object", id(member)), *getattr(member, "origins", ())}:
            if origin in owners:
                raise InvalidInput(
                    f"'{name}' has the same rows as '{owners[origin]}' (one file, table or object): they would count "
                    f"twice; give each party its own"
                )
            owners[origin] = name


def _same(words: tuple[Ids, ...]) -> tuple[Ids, ...]:
    return words
