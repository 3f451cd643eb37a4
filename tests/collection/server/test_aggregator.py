"""Reports to centres, and the statement with them."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from cloister.collection.client.encoder import PlanEncoder
from cloister.collection.plan.publish import publish
from cloister.collection.server.aggregator import decode
from cloister.run.request import Request
from tests.collection.server.collected import written


def test_a_statement_says_that_the_start_of_a_plan_counts_as_public(tmp_path: Path) -> None:
    start = dict(zip("01234", np.eye(5)[:3].T.tolist(), strict=True))
    request = Request(
        k=3, method="kept-centers", epsilon=4.0, rows=500, bounds=(-1, 1), trust="Local", start=start, zoom="off"
    )
    plan = publish(request, list("01234"))
    some = PlanEncoder(plan).encode(np.zeros((500, 5)), np.arange(500))
    text = decode(plan, written(tmp_path / "a.reports", some)).result.privacy.text()
    assert "The centres that the run began from count as public" in text
