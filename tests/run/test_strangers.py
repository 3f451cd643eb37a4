"""A population that was written from its Protocol alone runs under every trust model, with a ledger, and as a party."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cloister.accounting import Ledger
from cloister.core.errors import InvalidInput, Refused
from cloister.plugin import CAP, Floats, NoiseRng, Population, Round, summarise_rows
from cloister.run.account import Account
from cloister.run.fit import fit, parties
from cloister.run.request import Request
from cloister.testing import parametrize
from tests.asking import asking


class Minimal:
    """All that the Protocol asks for."""

    def __init__(self, rows: Floats) -> None:
        self.rows = rows
        self.columns = tuple(f"column {j}" for j in range(rows.shape[1]))

    def check(self, most_rows: int = CAP) -> None:
        if len(self.rows) > most_rows:
            raise InvalidInput(f"there are {len(self.rows)} rows, at most {most_rows} can be used")

    def gather(self, round: Round[Any], rng: NoiseRng) -> tuple[Any, ...]:
        return summarise_rows(round, self.rows, np.arange(len(self.rows), dtype=np.uint64), rng)


class Counting(Minimal):
    """Says how many people it has."""

    @property
    def people(self) -> int:
        return len(self.rows)


ROWS = np.random.default_rng(0).normal(0, 0.3, (2000, 2))
LOCAL = {"counts": "hadamard-response", "sums": "hadamard-vector"}
SHUFFLED = {"counts": "amplified-counts", "sums": "amplified-vectors"}
POOLED = {"counts": "masked-gaussian", "sums": "masked-gaussian"}


def request(method: str = "fastlloyd", **components: str) -> Request:
    return asking(
        k=2, method=method, epsilon=1.0, delta=1e-6, bounds="ball:1", rows=2000, components=components, seed=1
    )


@parametrize(Minimal, role="Population")
def test_it_conforms(component: Any, check: Any) -> None:
    check(component)


def test_it_runs_under_central_and_local_trust_and_is_charged_to_a_ledger(ledger: Ledger) -> None:
    population: Population[Any] = Minimal(ROWS)
    account = Account(ledger=ledger.path, dataset="mine")
    assert fit(request(), population, account=account).centers.shape == (2, 2)
    assert fit(request("one-round", **LOCAL), population).privacy.simulated
    assert len(ledger.runs()) == 1


def test_under_shuffled_trust_it_must_say_how_many_people_it_has() -> None:
    assert fit(request("one-round", **SHUFFLED), Counting(ROWS)).centers.shape == (2, 2)
    with pytest.raises(Refused, match="people"):
        fit(request("one-round", **SHUFFLED), Minimal(ROWS))


def test_two_of_them_are_parties() -> None:
    pooled = fit(request(**POOLED), parties({"one": Minimal(ROWS[:900]), "other": Minimal(ROWS[900:])}))
    assert pooled.privacy.simulated
    assert pooled.columns == ("column 0", "column 1")
    with pytest.raises(InvalidInput, match="parties pool their rows"):
        fit(request(**POOLED), Minimal(ROWS))
