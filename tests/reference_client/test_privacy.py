"""Privacy on the path of bundles: what is asked of one person, over all rounds.

That randomisers keep epsilon exactly is enumerated in ``tests/plugins/oracles``, that roles depend on no row is tested
in ``tests/core/test_shuffling.py``. Vectors tie this client to them, its checks compare a bundle's integers with
epsilon, and what lies beyond is among the wrong bundles of ``tests/vectors``.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.reference_client.words import word

VECTORS = Path(__file__).parents[1] / "vectors"


def test_the_rounds_that_one_person_answers_cost_the_plan_s_epsilon_together() -> None:
    """What a client remembers and adds up: the questions that she was asked, over all rounds."""
    for path in VECTORS.glob("method-*.json"):
        rounds = [json.loads(one["bundle"]) for one in json.loads(path.read_text())["bundles"]]
        for user in range(50):
            asked = [q for facts in rounds for q in facts["questions"] if is_asked(q["share"], user)]
            for cost in ("epsilon", "delta"):
                assert sum(q[cost] for q in asked) <= rounds[0][cost] * (1 + 1e-9)


def is_asked(share: dict[str, Any] | None, user: int) -> bool:
    return share is None or share["from"] <= word(share["key"], user) >> 11 < share["to"]
