"""What is impossible is found alone, and few looks find it; a kind of refusal has its words once."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from cloister.collection.intake.sieve import MESSAGES, REPORTS, SHUFFLED, SPLIT, Intake, isolated
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

    rows, found = np.arange(n), list(isolated(np.arange(n), read))
    assert np.array_equal(np.concatenate([some for some, _ in found]), rows)
    assert [some.tolist() for some, total in found if total is None] == [[i] for i in range(n) if i in bad]
    assert sum(total for _, total in found if total is not None) == sum(set(rows.tolist()) - bad)
    assert looks[0] <= 1 + SPLIT * len(bad) * np.ceil(np.log(n + 1) / np.log(SPLIT) + 1)


def test_nothing_is_read_at_once_and_stays_nothing() -> None:
    assert [(len(rows), found) for rows, found in isolated(np.arange(0), len)] == [(0, 0)]


@pytest.mark.parametrize(
    ("kind", "reason", "said"),
    [
        (REPORTS, "damaged", "'a' is one of the files or batches that are damaged or cut short"),
        (SHUFFLED, "impossible", "'a' has messages with an answer that no encoder of this plan sends"),
        (MESSAGES, "no messages", "'a': refused files that hold no messages of this form"),
    ],
)
def test_the_first_refusal_ends_it_where_none_is_allowed(kind: object, reason: str, said: str) -> None:
    intake = Intake(kind, strict=True)  # type: ignore[arg-type]
    with pytest.raises(Refused) as error:
        intake.refuse(reason, 3, "a")
    assert str(error.value) == said
    assert intake.reasons[reason] == 3
    assert intake.first == {reason: "a"}
