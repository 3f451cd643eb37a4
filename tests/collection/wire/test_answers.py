"""Answers as bytes: the same as the reports that they stand for, and zeros wherever nothing was asked."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cloister.collection.client.encoder import Encoded, PlanEncoder
from cloister.collection.plan.plan import CollectionPlan
from cloister.collection.wire.answers import NOTHING, NUMBER, layout_of
from cloister.collection.wire.messages import from_answers
from cloister.core.encoding import encode_rows
from cloister.core.randomness import NoiseRng
from tests.collection.plans import local_plan
from tests.collection.shuffled_plans import FEW, small_plan

N, D = 400, 10
TWO_LENGTHS = {"components": {"sums": "ldp-average"}, "delta": 1e-6, "k": 8, "rows": 10_000, "bounds": (-1, 1)}
LOCAL: dict[str, dict[str, Any]] = {
    "the default blocks": {},
    "wide answers": {"components": {"counts": "optimised-unary"}},
    "bodies of two lengths": TWO_LENGTHS,
    "a tree whose levels share everyone's epsilon": {"method": "tree-means", "options": {"counts.share": "budget"}},
}


def made(**changes: Any) -> Encoded:
    return _of(local_plan(D, **{"k": 2, "trust": "local", **changes}))


def _of(plan: CollectionPlan, n: int = N) -> Encoded:
    users = np.arange(0, 2 * n, 2)
    return PlanEncoder(plan, noise=NoiseRng.for_tests(2)).encode(rows_of(plan.dimension, n), users)


def rows_of(d: int, n: int) -> Any:
    return np.random.default_rng(1).normal(0, 0.3, (n, d))


@pytest.mark.parametrize("changes", LOCAL.values(), ids=LOCAL.keys())
def test_answers_are_the_reports_that_went_in(changes: dict[str, Any]) -> None:
    encoded = made(**changes)
    layout, found = layout_of(encoded.round), encoded.form.parse(encoded.to_bytes())
    assert layout.sound(found.users, found.answers).all()
    drawn = encode_rows(encoded.round, rows_of(D, N), found.users, NoiseRng.for_tests(2))
    for mine, theirs in zip(layout.reports(found.users, found.answers), drawn, strict=True):
        for name, values in theirs.columns().items():
            assert mine.columns()[name].dtype == values.dtype
            np.testing.assert_array_equal(mine.columns()[name], values)


def test_the_default_blocks_take_one_byte_and_a_report_nineteen() -> None:
    plan = local_plan(100, k=8, epsilon=1.0, trust="local", bounds=(-1, 1), rows=10**6)
    encoded = PlanEncoder(plan, noise=NoiseRng.for_tests(1)).encode(np.zeros((1, 100)), [17])
    assert (encoded.answers.shape, len(encoded.to_bytes())) == ((1, 1), 19)


def test_whatever_stands_beside_a_body_is_not_sound() -> None:
    encoded = made(**TWO_LENGTHS)
    layout, answers, users = layout_of(encoded.round), encoded.answers.copy(), encoded.users
    (slot,) = layout.slots
    lengths = np.array([layout.bodies[j].bytes for j in range(len(layout.bodies))])
    asked = layout.asked(users)[0]
    assert len(set(lengths.tolist())) > 1
    answers[np.arange(N), np.minimum(lengths[asked], slot.bytes - 1)] ^= 1
    np.testing.assert_array_equal(layout.sound(users, answers), lengths[asked] == slot.bytes)


def test_slots_of_no_question_and_forged_roles_are_messages_that_are_none() -> None:
    encoded = _of(small_plan(rows=FEW), FEW // 2)
    answers, (slot,) = encoded.answers.copy(), layout_of(encoded.round).slots
    whole = slot.bytes - NUMBER.itemsize
    answers[0] = 0
    answers[0, :2] = 255  # nothing, said as it should be
    answers[1, :2] = 255  # nothing, and something behind it
    answers[2, :2] = np.frombuffer(np.array([len(encoded.round.parts)], NUMBER).tobytes(), np.uint8)
    answers[3, 0] = (answers[3, 0] + 1) % len(encoded.round.parts)  # another role than her private number's
    messages, good, _ = from_answers(encoded.users, answers, encoded.round)
    assert messages.senders is not None
    assert whole == max(body.bytes for body in layout_of(encoded.round).bodies)
    assert 0 not in messages.senders.tolist()
    assert messages.senders[~good].tolist() == [2, 4, 6]
    assert messages.questions[~good].tolist()[:2] == [NOTHING, NOTHING]
