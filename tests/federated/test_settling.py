"""Parties go on from what the first of them found, whoever else finds something else; and the coordinator cannot read
it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from cloister.core.domains import REACH
from cloister.core.errors import Refused
from cloister.core.randomness import NoiseRng
from cloister.core.types import Ints
from cloister.federated.plan import FederatedPlan, pool_plan
from cloister.federated.population import Joined
from cloister.federated.protocol.coordinator import Coordinator
from cloister.federated.protocol.messages import HEAD
from cloister.federated.protocol.party import Party
from cloister.federated.protocol.streams import new_private_key, public_key
from cloister.federated.transport.service import CoordinatorService
from cloister.run.fit import fit
from tests.federated.transport.test_service import NAMES, PARTS, Direct, arrays
from tests.waiting import PATIENCE

SETTLED = (1, 2)
"""Rounds of the session in which something is settled: points and radii, between two rounds of questions."""


class Pool:
    """A coordinator and three parties in threads, and what passed between them."""

    def __init__(self, other: Callable[[int, Ints], Ints]) -> None:
        """Args: other, what the party of this index finds in place of what its solver found."""
        self.private = [new_private_key() for _ in NAMES]
        key = new_private_key()
        self.plan: FederatedPlan = pool_plan(
            {
                "k": 3,
                "epsilon": 2.0,
                "delta": 1e-6,
                "rows": 900,
                "columns": ["0", "1"],
                "bounds": [[-1, 1], [-1, 1]],
                "seed": 1,
                "method": "grid-means",
                "coordinator_key": public_key(key).hex(),
                "party": [{"name": n, "key": public_key(p).hex()} for n, p in zip(NAMES, self.private, strict=True)],
            }
        )
        self.coordinator = Coordinator(self.plan.agreement, private=key)
        rounds = self.plan.script.expected(NoiseRng.secret())
        for shape, noise in rounds:
            self.coordinator.expect(shape, noise)
        self.desk = CoordinatorService(self.coordinator, len(rounds), patience=PATIENCE, timeout=PATIENCE)
        self.other, self.found = other, dict[tuple[int, int], Ints]()
        self.heard: list[tuple[int, bytes]] = []
        self.taken = dict[int, list[Ints]]()
        self.results, self.errors = dict[str, Any](), dict[str, BaseException]()
        threads = [threading.Thread(target=self._run, args=(i,), daemon=True) for i in range(len(NAMES))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE)
        assert not any(thread.is_alive() for thread in threads)

    def _run(self, i: int) -> None:
        state = Party(self.plan.agreement, NAMES[i], private=self.private[i])
        line = Direct(NAMES[i], lambda: self.desk)
        line.before = lambda data: self.heard.append((int.from_bytes(data[40:44], "little"), data))
        joined = Joined(arrays(PARTS[i]), state, line, self.plan.script)
        try:
            party = Elsewhere(joined, partial_of(self, i))
            self.results[NAMES[i]] = fit(self.plan.request, party)
            self.taken[i] = party.taken
        except Refused as error:
            self.errors[NAMES[i]] = error
            self.desk.stop("a party left")


def partial_of(pool: Pool, i: int) -> Callable[[int, Ints], Ints]:
    def other(number: int, found: Ints) -> Ints:
        pool.found[i, number] = changed = pool.other(i, found)
        return changed

    return other


class Elsewhere:
    """A party whose solver finds something else."""

    def __init__(self, joined: Joined, other: Callable[[int, Ints], Ints]) -> None:
        self._joined, self._other, self._settled = joined, other, 0
        self.taken: list[Ints] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._joined, name)

    # what makes it a party at a pool: from Python 3.12 on a protocol looks at the class alone
    opened = property(lambda self: self._joined.opened)
    payer = property(lambda self: self._joined.payer)

    def paid_by(self, dataset: str, run: str) -> None:
        self._joined.paid_by(dataset, run)

    def settle(self, after: int, number: int, found: Ints) -> Ints:
        self._settled += 1
        self.taken.append(self._joined.settle(after, number, self._other(self._settled, found)))
        return self.taken[-1]

    def gather(self, *given: Any) -> Any:
        return self._joined.gather(*given)

    def join(self) -> None:
        self._joined.join()

    def check(self, *given: Any) -> None:
        self._joined.check(*given)


def test_all_go_on_from_what_the_first_party_found() -> None:
    pool = Pool(lambda i, found: found + 7 * i)
    assert not pool.errors
    assert [after for after, _ in pool.plan.script.settlings] == [0, 0]
    first, *others = (pool.results[name] for name in NAMES)
    assert all(np.array_equal(first.centers, other.centers) for other in others)
    assert pool.coordinator.round == 2 + len(SETTLED)
    for i in SETTLED:
        assert (pool.found[1, i] != pool.found[0, i]).all()
        assert all(np.array_equal(pool.taken[party][i - 1], pool.found[0, i]) for party in range(3))


def test_the_coordinator_reads_nothing_of_what_is_settled() -> None:
    """Neither in the vectors that come, nor in the sum that it sends: words under masks, all but one of zeros."""
    pool = Pool(lambda i, found: found)
    secret = {
        int(word) for (i, _), found in pool.found.items() for word in found.ravel().astype(np.int32).view(np.uint32)
    }
    assert len(secret) > 6
    sent = [data for number, data in pool.heard if number in SETTLED and data[5] == 3]
    answers = [pool.coordinator._answers[number] for number in SETTLED]
    assert (len(sent), len(answers)) == (6, 2)
    for message in (*sent, *answers):
        body = message[HEAD.size :]
        words = {int.from_bytes(body[at : at + 4], "little") for at in range(0, len(body), 4)}
        assert not words & {0, *secret}


@pytest.mark.parametrize("far", [2 * REACH, -(2**31)])
def test_a_first_party_whose_points_lie_nowhere_is_refused_by_the_others_and_nothing_more_is_answered(far: int) -> None:
    pool = Pool(lambda i, found: np.full_like(found, far) if i == 0 else found)
    assert set(pool.errors) == set(NAMES)
    assert any("points on the lattice" in str(error) for error in pool.errors.values())
    assert pool.coordinator.round == 2
    assert not pool.results
