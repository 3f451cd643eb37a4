"""Plans of Local trust that the tests of collections publish."""

from __future__ import annotations

from typing import Any

from cloister.collection.plan.plan import CollectionPlan
from cloister.collection.plan.publish import publish
from tests.asking import asking


def local_plan(dimension: int, **changes: Any) -> CollectionPlan:
    """One round of three centres in the unit ball. Args: changes (of its request); a delta is one that sums need."""
    given = {"k": 3, "method": "one-round", "epsilon": 2.0, "bounds": "ball:1", "rows": 1000, "seed": 1}
    if changes.get("delta") and not {"trust", "components"} & changes.keys():
        given["components"] = {"sums": "ldp-average"}
    return publish(asking(**{**given, **changes}), dimension=dimension)
