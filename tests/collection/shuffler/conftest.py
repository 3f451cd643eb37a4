"""A plan of a Shuffled round, messages of its people, and a folder of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from cloister.collection.plan.plan import CollectionPlan
from cloister.collection.wire.messages import Messages
from tests.collection.shuffled_plans import folder_of, sent, small_plan


@pytest.fixture(scope="module")
def plan() -> CollectionPlan:
    return small_plan()


@pytest.fixture(scope="module")
def theirs(plan: CollectionPlan) -> Messages:
    return sent(plan)


@pytest.fixture
def reports(tmp_path: Path, plan: CollectionPlan, theirs: Messages) -> Path:
    return folder_of(tmp_path / "reports", plan, theirs)
