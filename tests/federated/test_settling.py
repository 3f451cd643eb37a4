"""Parties go on from what the first of them found, whoever else finds something else; and the coordinator cannot read
it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from cloister.core.domains import REACH
from cloister.core.errors import Refused
from cloister.core.types import Ints
from cloister.federated.plan import pool_plan
from cloister.federated.population import Joined
from cloister.federated.protocol.messages import HEAD, Kind
from cloister.run.account import Account
from cloister.run.fit import fit
from tests.federated.federated_session import NAMES, Keys, message_of
from tests.federated.pooling import PARTS, Run, arrays, service
from tests.federated.test_population import facts

SETTLED = (1, 2)
"""Rounds of the session in which something is settled: points and radii, between two rounds of questions."""


class Pool(Run):
    """What three parties settled on, and what passed between them and the coordinator."""

    def __init__(self, other: Callable[[int, Ints], Ints]) -> None:
        """Args: other, what the party of this index finds in place of what its solver found."""
        keys = Keys()
        listed = [{"name": m.name, "key": m.key.hex()} for m in keys.agreement.members]
        own = {"party": listed, "coordinator_key": keys.agreement.coordinator_key.hex(), "columns": ["0", "1"]}
        self.plan = pool_plan(facts(epsilon=2.0, rows=900, method="grid-means", **own))
        keys.agreement = self.plan.agreement
        self.desk = service(keys, rounds=self.plan.script)
        self.coordinator, self.other, self.heard = self.desk._coordinator, other, list[bytes]()
        self.found, self.taken = ([list[Ints]() for _ in NAMES] for _ in range(2))
        super().__init__(keys, self.desk)
        self.start_all()
        self.end()

    def fit(self, i: int, account: Account | None) -> Any:
        self.lines[i].before = self.heard.append
        joined = Joined(arrays(PARTS[i]), self.keys.party(i), self.lines[i], self.plan.script)
        agree = joined.agree

        def elsewhere(after: int, number: int, found: Ints) -> Ints:
            self.found[i].append(self.other(i, found))
            self.taken[i].append(agree(after, number, self.found[i][-1]))
            return self.taken[i][-1]

        joined.agree = elsewhere  # type: ignore[method-assign]
        try:
            return fit(self.plan.request, joined).centers
        except Refused:
            self.desk.stop("a party left")
            raise


def test_all_go_on_from_what_the_first_party_found() -> None:
    pool = Pool(lambda i, found: found + 7 * i)
    assert [after for after, _ in pool.plan.script.agreed_sizes] == [0, 0]
    first, *others = (party.result() for party in pool.parties.values())
    assert all(np.array_equal(first, other) for other in others)
    assert pool.coordinator.round == 2 + len(SETTLED)
    for mine, other, *taken in zip(pool.found[0], pool.found[1], *pool.taken, strict=True):
        assert (other != mine).all()
        assert all(np.array_equal(one, mine) for one in taken)


def test_the_coordinator_reads_nothing_of_what_is_settled() -> None:
    """Neither in the vectors that come, nor in the sum that it sends: words under masks, all but one of zeros."""
    pool = Pool(lambda i, found: found)
    every = np.concatenate([numbers.ravel() for found in pool.found for numbers in found])
    secret = set(every.astype(np.int32).view(np.uint32).tolist())
    assert len(secret) > 6
    sent = [data for data in pool.heard if message_of(data).round in SETTLED and data[5] == Kind.VECTOR]
    answers = [pool.coordinator._answers[number] for number in SETTLED]
    assert (len(sent), len(answers)) == (6, 2)
    for message in (*sent, *answers):
        body = message[HEAD.size :]
        assert not {0, *secret} & set(np.frombuffer(body, "<u4", len(body) // 4).tolist())


@pytest.mark.parametrize("far", [2 * REACH, -(2**31)])
def test_a_first_party_whose_points_lie_nowhere_is_refused_by_the_others_and_nothing_more_is_answered(far: int) -> None:
    pool = Pool(lambda i, found: np.full_like(found, far) if i == 0 else found)
    assert set(pool.errors) == set(NAMES)
    assert any("points on the lattice" in str(error) for error in pool.errors.values())
    assert pool.coordinator.round == 2
