"""Which buckets exceed a threshold: written down before they are seen, the same when replayed, and never more."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np
import pytest

from cloister.core.buckets import Space
from cloister.core.budget import Budget
from cloister.core.clustering import Problem
from cloister.core.errors import Refused
from cloister.core.questions import count
from cloister.core.randomness import NoiseRng
from cloister.core.record import LISTED, Record
from cloister.core.session import Session
from cloister.core.types import Ints
from cloister.plugins.oracles.central.discrete_gaussian import DiscreteGaussian
from cloister.plugins.oracles.central.thresholded_gaussian import ThresholdedGaussian
from tests.core.core_fakes import BOX, SEED, Crash, Durable, InMemory, copied

PROBLEM = Problem(3, BOX, 200, Budget("gaussian", 0.02, delta=1e-3))
FAR = 2**40
ROWS = np.repeat(np.arange(8.0) / 10, [1, 2, 34, 34, 34, 34, 34, 300])[:, None] * np.ones(2)
"""Two sizes that never show, five that do so half of the time, and one that always does."""


@attrs.frozen
class Tenths:
    """A bucket for each value, so far apart, on two levels, of which the second has none for the first value."""

    far: int = FAR

    @property
    def space(self) -> Space:
        return Space((self.far * 10,) * 2)

    def locate(self, rows: Ints) -> Ints:
        ids = np.rint(rows[:, :1] * BOX.unit * 10).astype(np.int64) * self.far
        return np.hstack([ids, np.where(ids > 0, ids, -1)])


CELLS = Tenths()


def asked(
    record: Record | None = None,
    journal: Any = None,
    noise: int = 1,
    oracle: Any = None,
    cells: Any = None,
    rows: Any = ROWS,
) -> Any:
    population = None if rows is None else InMemory(rows)
    session = Session[Any](PROBLEM, SEED, population, record=record, journal=journal, noise=NoiseRng.for_tests(noise))
    question = count(cells or CELLS, oracle=oracle or ThresholdedGaussian(), budget=PROBLEM.budget)
    return session.ask(question)[0]


def test_exactly_the_buckets_that_do_not_read_zero_are_listed_with_what_they_read() -> None:
    table = asked()
    for level in (0, 1):
        ids, values = table.listed(level)
        every = np.arange(10) * FAR
        assert np.array_equal(ids, every[table.at(every, level) != 0])
        assert np.array_equal(values, table.at(ids, level))
        assert 7 * FAR in ids
        assert not {0, FAR} & set(ids)
    assert len({asked(noise=i).listed()[0].tobytes() for i in range(9)}) > 3  # noise decides for those in between


def test_a_list_is_written_down_before_it_is_seen() -> None:
    journal = Durable()
    ids, values = asked(journal=journal).listed(1)
    look, listed = journal.kept.lookups
    assert (look.round, look.question, look.level, look.error) == (0, 0, 1, False)
    assert (listed.round, listed.question, listed.level, len(listed.ids)) == (0, LISTED, 1, 0)
    assert np.array_equal(look.ids, ids)
    assert np.array_equal(look.values, values)
    ids[:] = values[:] = 0
    assert look.ids.any()
    for entry in (3, 4):
        with pytest.raises(Crash):
            asked(journal=Durable(fail=entry)).listed()


@pytest.mark.parametrize("noise", range(2, 8))
def test_what_was_seen_before_a_run_was_cut_off_keeps_its_noise_in_a_later_list(noise: int) -> None:
    """A bucket that read 0 is not listed by the noise of another process, and one that did not is."""
    journal = Durable()
    first, every = asked(journal=journal), np.arange(6) * FAR
    values = first.at(every)
    resumed = asked(record=copied(journal.kept), noise=noise)
    assert np.array_equal(resumed.at(every), values)
    ids, found = resumed.listed()
    assert np.array_equal(ids[ids < 6 * FAR], every[values != 0])
    assert np.array_equal(found[ids < 6 * FAR], values[values != 0])


@pytest.mark.parametrize("noise", [1, 3, 5, 6])
def test_what_a_list_left_out_is_not_drawn_again_where_a_run_goes_on(noise: int) -> None:
    """Of 34 rows half are listed: with a second try three quarters would be, and their count be told twice."""
    journal, every = Durable(), np.arange(10) * FAR
    ids, values = asked(journal=journal, noise=2).listed()
    resumed = asked(record=copied(journal.kept), noise=noise)
    assert np.array_equal(resumed.listed()[0], ids)
    for again in (resumed.listed(), (ids, resumed.at(every)[ids // FAR])):
        assert np.array_equal(again[0], ids)
        assert np.array_equal(again[1], values)
    assert np.array_equal(np.flatnonzero(resumed.at(every)), ids // FAR)


def test_counts_without_a_threshold_and_small_tables_list_nothing() -> None:
    """Of those every bucket has noise: which ones hold rows would be an exact figure."""
    for oracle, cells in (
        (DiscreteGaussian(), None),
        (DiscreteGaussian(), Tenths(1)),
        (ThresholdedGaussian(), Tenths(1)),
    ):
        journal = Durable()
        with pytest.raises(Refused, match="only for counts with a threshold"):
            asked(oracle=oracle, cells=cells, journal=journal).listed()
        assert not journal.kept.lookups
