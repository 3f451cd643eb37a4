"""The simulated phones that the server starts."""

from __future__ import annotations

from threading import Event

import numpy as np
import pytest

from cloister.collection.wire.answers import layout_of
from cloister.collection.wire.batches import BatchForm
from cloister.lab.phones.crowd import PIECES, Numbers, SimulatedCrowd, plan_of

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
