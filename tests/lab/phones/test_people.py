"""The made-up people of the demonstration."""

from __future__ import annotations

from threading import Thread

import numpy as np
import pytest

from cloister.core.questions import Round
from cloister.lab.phones.crowd import GROUPS, LONGEST, SPREAD, Numbers, plan_of, rows

pytestmark = pytest.mark.thorough


def test_each_number_is_given_out_once_whoever_asks() -> None:
    numbers, taken = Numbers(1000), list[list[int]]()
    asking = [Thread(target=lambda: taken.extend(numbers.take(7) for _ in range(40))) for _ in range(4)]
    for thread in asking:
        thread.start()
    for thread in asking:
        thread.join()
    assert sorted(number for some in taken for number in some) == list(range(1000))
    assert numbers.take(1) == []


def test_numbers_come_in_an_order_that_differs_each_time() -> None:
    first, second = (Numbers(1000).take(1000) for _ in range(2))
    assert first != second  # equal once in 1000!
    assert first != sorted(first)


def test_people_are_in_groups_within_the_bounds() -> None:
    people = rows(4000, np.random.default_rng(0))
    assert people.shape == (4000, 2)
    assert ((people >= 0) & (people <= LONGEST)).all()
    far = np.linalg.norm(people[:, None] - np.asarray(GROUPS), axis=2).min(axis=1)
    assert far.max() < 6 * SPREAD


def test_the_plan_asks_one_question_of_one_byte() -> None:
    plan = plan_of(100_000, 1.0)
    asked: Round[object] = plan.round()
    assert (plan.length, plan.trust, len(asked.parts), plan.size.answers) == (1, "Local", 1, 1.0)
    assert plan.warnings == ()
    assert plan.outlook is not None
    assert plan.outlook.excess < 0.01
