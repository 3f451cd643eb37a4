"""Where noise is shared, or messages hide each other, everybody answers every round."""

from __future__ import annotations

from typing import Any

import pytest

from cloister.accounting import Total
from cloister.accounting.total import afforded
from cloister.core.domains import Box
from cloister.core.randomness import PublicRng
from cloister.core.session import forecast
from cloister.testing.checks.methods import currencies_of


def check_that_all_answer_all(method: Any, trust: type) -> None:
    """All rounds are of this trust model, ask everybody, and add up to the budget."""
    problem = afforded(method, currencies_of(method), Total(1.0, 1e-6), 5, Box((-1.0,) * 6, (1.0,) * 6), 100_000)
    rounds = forecast(method, problem, PublicRng.from_seed(80))
    assert {round.trust for round in rounds} == {trust}
    assert all(part.user_share is None for round in rounds for part in round.parts)
    spent = sum(event.spent.amount for round in rounds for event in round.events)
    assert spent == pytest.approx(problem.budget.amount)
