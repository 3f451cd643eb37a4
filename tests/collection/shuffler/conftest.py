"""A plan of a Shuffled round, messages of its people, and a folder of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from cloister.collection.plan.plan import PublishedPlan
from cloister.collection.wire.messages import Messages
from tests.collection.shuffled_plans import folder_of, sent, small_plan


@pytest.fixture(scope="module")
def plan() -> PublishedPlan:
    return small_plan()


@pytest.fixture(scope="module")
def theirs(plan: PublishedPlan) -> Messages:
    return sent(plan)


@pytest.fixture
def reports(tmp_path: Path, plan: PublishedPlan, theirs: Messages) -> Path:
    return folder_of(tmp_path / "reports", plan, theirs)
