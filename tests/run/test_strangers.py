"""A population that was written from its Protocol alone runs under every trust model, with a ledger, and as a party."""

from __future__ import annotations

from typing import Any

import numpy as np

from cloister.core.errors import InvalidInput
from cloister.plugin import CAP, Floats, NoiseRng, Population, Round, summarise_rows
from cloister.run.fit import fit
from cloister.run.request import Request
from cloister.testing import parametrize


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


ROWS = np.random.default_rng(0).normal(0, 0.3, (2000, 2))
LOCAL = {"counts": "hadamard-response", "sums": "hadamard-vector"}


def request(method: str = "fastlloyd", **components: str) -> Request:
    return Request(
        k=2, method=method, epsilon=1.0, delta=1e-6, bounds="ball:1", rows=2000, components=components, seed=1
    )


@parametrize(Minimal, role="Population")
def test_it_conforms(component: Any, check: Any) -> None:
    check(component)


def test_it_runs_under_central_and_local_trust() -> None:
    population: Population[Any] = Minimal(ROWS)
    assert fit(request(), population).centers.shape == (2, 2)
    assert fit(request("one-round", **LOCAL), population).privacy.simulated
