"""Why there is no count sketch (Theorems 32 and 34 of Chang et al. 2021): the same error, for many more messages.

Both are judged by the same exact analysis. A count sketch hashes each bucket, publicly, to one of s places in each of
R rows, and is the median over rows; a user's R messages are hidden among blanket messages for every place.
"""

from __future__ import annotations

import math

import pytest

from cloister.plugins.oracles.shuffled.blanket_histogram import max_values

EPSILON, DELTA, PEOPLE, HONEST = 1.0, 1e-6, 100_000, 0.9


def blankets_of_a_place(rows: int) -> float:
    """Honest blanket messages that each place needs, so that one message of each row is hidden."""
    blankets = 16 * math.ceil(HONEST * PEOPLE)
    return blankets / max_values(EPSILON, DELTA, blankets, rows, 2**40)


def sketch(rows: int, places: int) -> tuple[float, float]:
    """Standard error of a count, and messages of a user: other users' messages and blankets in a place are noise."""
    per_place = blankets_of_a_place(rows) / HONEST
    noise = per_place + PEOPLE / places
    return math.sqrt(math.pi / 2 / rows * noise), rows * (1 + per_place * places / PEOPLE)


def blanket_histogram(blankets: int) -> tuple[float, float]:
    """The same of ``blanket-histogram``: N / b, of N messages of which ``blankets`` of each user are blankets."""
    hidden = blankets_of_a_place(1)
    return math.sqrt(hidden * (1 + blankets) / (HONEST * blankets)), 1.0 + blankets


@pytest.mark.thorough
def test_a_count_sketch_has_the_same_error_and_takes_twenty_times_the_messages_and_more() -> None:
    error, messages = blanket_histogram(4)
    few, few_messages = sketch(16, PEOPLE // 100)
    wide, wide_messages = sketch(16, 2 * PEOPLE)  # places as the paper's union bound asks for
    assert (round(error, 1), messages) == (7.7, 5)
    assert 7.5 < wide < few < 9
    assert few_messages > 20 * messages
    assert wide_messages > 4000 * messages
