"""One round of exact questions, put to a population."""

from __future__ import annotations

from typing import Any

import numpy as np

from cloister.core.buckets import QuestionContext
from cloister.core.budget import Budget
from cloister.core.questions import OpenedQuestion, Round, count
from cloister.core.randomness import NoiseRng, PublicRng
from cloister.core.registry.registry import registry
from cloister.core.trust import Central
from cloister.testing.checks.populations import answers as read


def answers(population: Any, domain: Any, *asked: tuple[Any, Any]) -> list[Any]:
    """The exact answers to questions, level by level. Args: asked, ``count`` or ``vector_sum``, and of what."""
    context, budget = QuestionContext(1000, 1.0, PublicRng.from_seed(1)), Budget("exact", 1.0)
    parts = []
    for kind, of in asked:
        role = "FrequencyOracle" if kind is count else "VectorSumOracle"
        question = kind(of, oracle=registry().load(registry().spec(role, "exact"))(), budget=budget)
        parts.append(OpenedQuestion(question.cells, question.vectors, None, question.open(context)))
    round: Round[Any] = Round(0, Central, domain, tuple(parts))
    with np.errstate(all="raise"):
        return read(round, population.gather(round, NoiseRng.for_tests(2)))
