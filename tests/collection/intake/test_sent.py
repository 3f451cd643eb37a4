"""What is impossible is found alone, and few looks find it; a kind of refusal has its words once."""

from __future__ import annotations

import numpy as np
from hypothesis import given, strategies as st

from cloister.collection.intake.validator import SPLIT, isolate_refused
from cloister.core.errors import Refused
from cloister.core.types import Ints


@given(st.integers(1, 300), st.sets(st.integers(0, 299), max_size=40))
def test_what_is_impossible_is_found_alone_and_everything_else_counts_in_its_order(n: int, bad: set[int]) -> None:
    looks = [0]

    def read(some: Ints) -> int:
        looks[0] += 1
        if bad & set(some.tolist()):
            raise Refused("nobody sends that")
        return int(some.sum())

    rows, found = np.arange(n), list(isolate_refused(np.arange(n), read))
    assert np.array_equal(np.concatenate([some for some, _ in found]), rows)
    assert [some.tolist() for some, total in found if total is None] == [[i] for i in range(n) if i in bad]
    assert sum(total for _, total in found if total is not None) == sum(set(rows.tolist()) - bad)
    assert looks[0] <= 1 + SPLIT * len(bad) * np.ceil(np.log(n + 1) / np.log(SPLIT) + 1)
