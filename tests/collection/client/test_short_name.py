"""The short name of a person's side, which programs on devices import."""

from __future__ import annotations

import cloister.encoder
from cloister.collection.client import encoder


def test_the_short_name_is_the_same_program() -> None:
    assert cloister.encoder.__all__ == encoder.__all__
    assert all(getattr(cloister.encoder, name) is getattr(encoder, name) for name in cloister.encoder.__all__)
