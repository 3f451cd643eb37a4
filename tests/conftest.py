"""Fixtures that several test folders share."""

from __future__ import annotations

import os
import re

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):  # workers share the cores
    os.environ.setdefault(_name, "1")

from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("every day", derandomize=True, deadline=None)
settings.register_profile("search", deadline=None)


def pytest_configure(config: pytest.Config) -> None:
    """Every day the same examples on every machine, so that a change alone makes a test fail; with ``-m long`` others
    each time."""
    settings.load_profile("search" if "long" in config.option.markexpr else "every day")


@pytest.fixture(scope="session")
def data() -> Path:
    """The folder of the benchmark data, which is stored outside the repository."""
    folder = os.environ.get("CLOISTER_DATA")
    if not folder:
        pytest.skip("CLOISTER_DATA names no folder")
    return Path(folder)


SLOW = re.compile(
    r"a_message_hides_among_those_of_others|spends_its_budget\[.*-Shuffled|honest_components_conform"
    r"|what_it_writes_passes_the_kit|too_little_noise_is_found|of_many_cells_the_heaviest"
    r"|transport/test_(waiting|service|tls)|any_division_into_parts|no_vector_is_ever_beyond"
    r"|no_shuffled_randomised_response_is_above|no_simulated_attack"
    r"|any_byte_that_is_changed|a_file_that_was_cut_short|a_flipped_bit_is_found"
    r"|built_in_components_conform\[(VectorSumOracle-|.*-(bias_is_as_declared|every_option_keeps_the_budget"
    r"|nested_levels_have_noise_of_their_own|standard_error_is_that_of_an_empty_bucket)\])"
)
"""Cases that take long by themselves or all together, where their neighbours take no time."""

LONG = re.compile(
    r"pay_for\[.*-deep-(empty|one row)\]"  # beside many rows: the levels and their noise are the same
    r"|cut_off_goes_on_and_loses_no_run\[(with --out-2|without-9)\]"  # beside the other signal, either way
    r"|finds_the_buckets_and_vectors_of_every_round\[.*-Shuffled\]"  # beside Local: the oracles alone differ
    r"|its_own_tests_pass\[src\]"  # beside dist, which one of these tests compares with src
    r"|authors_law_conform\[EvenSums-(one_row_moves|nested|what_it_costs|merging|two_questions)"  # beside EvenCounts
    r"|in_which_it_stands\[docs/notebooks/"  # the site's build runs them, too
)
"""Cases that are ``long``, where their neighbours are not, and why those are enough for every day."""


ASKED_FOR = ("mutations", "long")
"""Markers of what is run where somebody asks for it (``-m mutations``), and never by the way."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        if LONG.search(item.nodeid):
            item.add_marker(pytest.mark.long)
        if SLOW.search(item.nodeid) or "shared" in getattr(item, "fixturenames", ()):  # workers take seconds to start
            item.add_marker(pytest.mark.slow)
    unasked = [name for name in ASKED_FOR if name not in config.option.markexpr]
    left_out = [item for item in items if any(map(item.get_closest_marker, unasked))]
    gone = set(left_out)
    items[:] = [item for item in items if item not in gone]
    config.hook.pytest_deselected(items=left_out)
