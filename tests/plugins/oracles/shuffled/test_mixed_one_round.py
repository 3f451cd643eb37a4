"""One-round k-means, unchanged, with oracles of many messages."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np
import pytest

from cloister.accounting import epsilon_of_mu, mu_of
from cloister.core.shuffling import in_messages
from cloister.metrics import nicv
from cloister.plugin import CloisterError, Floats, NoiseRng, PublicRng
from cloister.run.fit import fit, source
from cloister.run.request import Request, prepare

N = 10_000
MIXED = {"counts": "split-and-mix-counts", "sums": "split-and-mix"}
CURATOR = {"counts": "discrete-gaussian", "sums": "discrete-gaussian"}


def mixture(d: int, seed: int) -> tuple[Floats, Floats]:
    """Eight tight groups, and their centres."""
    g = np.random.default_rng(seed)
    centers = g.standard_normal((8, d))
    centers *= 0.9 / np.linalg.norm(centers, axis=1)[:, None]
    rows = centers[g.integers(0, 8, N)] + g.standard_normal((N, d)) * 0.02 / np.sqrt(d)
    return rows, centers


def asked(components: dict[str, str], method: str = "one-round", epsilon: float = 1.0, **options: Any) -> Request:
    common = {"k": 8, "delta": 1e-6, "bounds": "ball:1", "rows": N, "seed": 1}
    return Request(method=method, epsilon=epsilon, components=components, options=options, **common)


def cost(request: Request, rows: Floats, seed: int) -> float:
    return nicv(rows, fit(request, source(rows, None, "refuse"), noise=NoiseRng.for_tests(seed)).centers)


def test_it_costs_hardly_more_than_a_curator_who_hides_a_replaced_row() -> None:
    """Excess cost within 1.3 times the curator's and 3 standard errors of the difference, over 10 pairs of runs with
    one public seed."""
    replace, over = epsilon_of_mu(mu_of(1.0, 1e-6) / 2, 1e-6), []
    for seed in range(10):
        rows, centers = mixture(10, seed)
        best = nicv(rows, centers)
        mixed = cost(attrs.evolve(asked(MIXED), seed=seed), rows, seed) - best
        curator = cost(attrs.evolve(asked(CURATOR, epsilon=replace), seed=seed), rows, 100 + seed) - best
        over.append(mixed - 1.3 * curator)
    assert np.mean(over) <= 3 * np.std(over, ddof=1) / np.sqrt(len(over))


def test_counts_and_vectors_divide_the_budget_since_everybody_owes_noise() -> None:
    (round,) = prepare(asked(MIXED), [str(i) for i in range(10)]).forecast(PublicRng.from_seed(1))
    assert all(part.user_share is None and in_messages(part.channel) for part in round.parts)
    with pytest.raises(CloisterError, match="share=budget"):
        prepare(asked(MIXED, share="users"), [str(i) for i in range(10)]).forecast(PublicRng.from_seed(1))


def test_a_result_says_what_its_promise_rests_on() -> None:
    rows, _ = mixture(10, 0)
    result = fit(asked(MIXED), source(rows, None, "refuse"))
    assert result.privacy.min_honest_users == 9000
    assert result.privacy.epsilon_without_shuffler is None
    assert "nothing holds" in result.privacy.without()[1]
    assert result.details["simulated"] == "ideal functionality"


@pytest.mark.parametrize(
    ("frequencies", "vectors"),
    [("split-and-mix-counts", "amplified-vectors"), ("blanket-histogram", "split-and-mix")],
)
def test_the_net_tree_runs_under_shuffled_trust(frequencies: str, vectors: str) -> None:
    """Theorem 2 of Chang et al., at n = 1e4 and d' = 2; pure and Gaussian oracles together too."""
    rows, _ = mixture(4, 0)
    request = asked({"counts": frequencies, "sums": vectors}, "one-round-net-tree", **{"tree.dimension": 2})
    assert cost(request, rows, 3) < 0.6 * nicv(rows, np.zeros((1, 4)))
