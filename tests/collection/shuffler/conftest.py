"""A plan of a Shuffled round, messages of its people, and a folder of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from cloister.collection.client.encoder import Encoded
from cloister.collection.plan.plan import CollectionPlan
from tests.collection.shuffled_plans import FEW, folder_of, sent, small_plan


@pytest.fixture(scope="module")
def plan() -> CollectionPlan:
    return small_plan(rows=FEW, options={"partitions": "2"})


@pytest.fixture(scope="module")
def theirs(plan: CollectionPlan) -> Encoded:
    return sent(plan)


@pytest.fixture
def reports(tmp_path: Path, theirs: Encoded) -> Path:
    return folder_of(tmp_path / "reports", theirs)
