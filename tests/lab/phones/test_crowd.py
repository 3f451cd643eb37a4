"""The simulated phones that the server starts, and the made-up people who hold them."""

from __future__ import annotations

from threading import Event, Thread

import numpy as np
import pytest

from cloister.collection.wire.answers import layout_of
from cloister.collection.wire.batches import BatchForm
from cloister.core.questions import Round
from cloister.lab.phones.crowd import GROUPS, LONGEST, PIECES, SPREAD, Numbers, SimulatedCrowd, plan_of, rows

pytestmark = pytest.mark.thorough

PLAN = plan_of(1000, 1.0)
FORM = BatchForm(PLAN.hash, 1, layout_of(PLAN.round()).bytes)


def test_every_phone_reports_once_in_so_many_batches_and_leaves_the_other_numbers() -> None:
    sent, numbers = list[bytes](), Numbers(1000)
    crowd = SimulatedCrowd(PLAN, numbers, 900, sent.append, 0.0)
    assert crowd.start()
    assert not crowd.start()
    while len(sent) < PIECES:
        Event().wait(0.01)
    crowd.stop()
    parsed = [FORM.parse(batch) for batch in sent]
    users = np.concatenate([some.users for some in parsed])
    assert all(some.wrong is None and not some.damaged for some in parsed)
    assert len(sent) == PIECES
    assert len(set(users.tolist())) == len(users) == 900
    assert sorted([*users.tolist(), *numbers.take(1000)]) == list(range(1000))


def test_no_phone_reports_after_the_end_and_a_collector_that_is_gone_ends_it() -> None:
    crowd = SimulatedCrowd(PLAN, Numbers(1000), 900, lambda batch: None, 3600.0)
    crowd.stop()  # before it starts
    assert crowd.start()
    crowd.stop()

    def gone(batch: bytes) -> None:
        raise ConnectionRefusedError

    crowd = SimulatedCrowd(PLAN, Numbers(1000), 900, gone, 3600.0)
    crowd.start()
    crowd.stop()


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
