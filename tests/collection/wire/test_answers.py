"""Answers as bytes: short, and zeros wherever nothing was asked. That they are the reports that they stand for:
``client/test_encoder.py``."""

from __future__ import annotations

from typing import Any

import numpy as np

from cloister.collection.wire.answers import NOTHING, NUMBER, layout_of
from cloister.collection.wire.messages import from_answers
from tests.collection.plans import local_plan
from tests.collection.server.collected import encoded
from tests.collection.shuffled_plans import FEW, small_plan

N, D = 400, 10
TWO_LENGTHS: dict[str, Any] = {
    "components": {"sums": "ldp-average"},
    "delta": 1e-6,
    "k": 8,
    "rows": 10_000,
    "bounds": (-1, 1),
    "trust": "local",
}


def test_the_default_blocks_take_one_byte_and_a_report_nineteen() -> None:
    plan = local_plan(100, k=8, epsilon=1.0, trust="local", bounds=(-1, 1), rows=10**6)
    sent = encoded(plan, [17])
    assert (sent.answers.shape, len(sent.to_bytes())) == ((1, 1), 19)


def test_whatever_stands_beside_a_body_is_not_sound() -> None:
    sent = encoded(local_plan(D, **TWO_LENGTHS), range(N))
    layout, answers, users = layout_of(sent.round), sent.answers.copy(), sent.users
    (slot,) = layout.slots
    lengths = np.array([layout.bodies[j].bytes for j in range(len(layout.bodies))])
    asked = layout.questions_of(users)[0]
    assert len(set(lengths.tolist())) > 1
    answers[np.arange(N), np.minimum(lengths[asked], slot.bytes - 1)] ^= 1
    np.testing.assert_array_equal(layout.well_padded(users, answers), lengths[asked] == slot.bytes)


def test_slots_of_no_question_and_forged_roles_are_messages_that_are_none() -> None:
    sent = encoded(small_plan(rows=FEW), range(0, FEW, 2))
    answers = sent.answers.copy()
    answers[0] = 0
    answers[0, :2] = 255  # nothing, said as it should be
    answers[1, :2] = 255  # nothing, and something behind it
    answers[2, :2] = np.frombuffer(np.array([len(sent.round.parts)], NUMBER).tobytes(), np.uint8)
    answers[3, 0] = (answers[3, 0] + 1) % len(sent.round.parts)  # another role than her private number's
    messages, good, _ = from_answers(sent.users, answers, sent.round)
    assert messages.senders is not None
    assert 0 not in messages.senders.tolist()
    assert messages.senders[~good].tolist() == [2, 4, 6]
    assert messages.questions[~good].tolist()[:2] == [NOTHING, NOTHING]
