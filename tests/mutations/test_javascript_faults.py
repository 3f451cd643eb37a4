"""Deliberate faults in the JavaScript client, each of which one of its own tests must see: ``bench/faults.js`` lists
them."""

from __future__ import annotations

import pytest

from tests.clients.test_javascript import NODE, node

pytestmark = pytest.mark.skipif(NODE is None, reason="Node is not installed")


def test_every_fault_still_applies() -> None:
    assert node("bench/faults.js", "-") == ""


@pytest.mark.mutations
def test_every_fault_is_seen() -> None:
    assert "NOT SEEN" not in node("bench/faults.js")
