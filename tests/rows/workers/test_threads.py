"""Passes over rows in threads: each part once and in order, few at once, and one core each."""

from __future__ import annotations

import itertools
import os
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from cloister.core.errors import InvalidInput
from cloister.rows.workers import threads
from cloister.rows.workers.threads import Threads, _blas, default_threads


@pytest.mark.parametrize("many", [1, 2, 7, None])
def test_values_come_in_the_order_of_the_parts(many: int | None) -> None:
    def slowly(part: int) -> int:
        time.sleep(0.001 * (part % 3 == 0))
        return part * part

    for parts in (0, 1, 2, 20):
        squares = [part * part for part in range(parts)]
        for given in (iter(range(parts)), list(range(parts))):
            assert list(Threads(many).run(slowly, given)) == squares


def test_parts_are_worked_on_at_once() -> None:
    both = threading.Barrier(2, timeout=60)
    assert len(list(Threads(2).run(lambda _: both.wait(), [0, 1]))) == 2


def test_few_parts_are_taken_ahead_of_the_values() -> None:
    taken = list[int]()

    def parts() -> Any:
        for part in range(100):
            taken.append(part)
            yield part

    for given, value in enumerate(Threads(3).run(lambda part: part, parts())):
        assert value == given
        assert len(taken) <= given + 2 * 3 + 1


def test_what_a_part_raises_is_raised_and_little_more_is_begun() -> None:
    begun = list[int]()

    def fails(part: int) -> int:
        begun.append(part)
        if part == 3:
            raise InvalidInput("this part")
        return part

    with pytest.raises(InvalidInput, match="this part"):
        list(Threads(2).run(fails, range(1000)))
    assert len(begun) < 20


def test_products_in_threads_are_not_divided_further_and_the_limit_ends_with_them() -> None:
    def blas(_: int = 0) -> list[int]:
        return [pool["num_threads"] for pool in threadpool_info() if pool["filepath"] in mine]

    mine = {pool["filepath"] for pool in _blas().info()}  # NumPy's, and what else was loaded when it was first asked
    assert any("numpy" in path for path in mine)
    with threadpool_limits(2, "blas"):
        before = blas()
        assert before
        for many, parts in ((2, [0, 1, 2]), (1, [0, 1, 2]), (None, [0])):
            assert all(set(found) == {1} for found in Threads(many).run(blas, parts))
            assert blas() == before


def test_by_default_there_is_a_thread_per_core_or_as_many_as_openmp_may_take(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is said to BLAS alone, as the command line does, is of BLAS."""
    monkeypatch.setattr(threads, "cores", lambda: 8)
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "1")
    for said, many in ((None, 8), ("2", 2), ("3,1", 3), ("64", 8), ("0", 8), ("many", 8), ("", 8)):
        monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
        if said is not None:
            monkeypatch.setenv("OMP_NUM_THREADS", said)
        assert default_threads() == Threads().count == many, said


def test_cores_are_those_that_this_process_is_bound_to(monkeypatch: pytest.MonkeyPatch) -> None:
    if not hasattr(os, "sched_getaffinity"):
        pytest.skip("this system binds no process to cores")
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {1})
    assert threads.cores() == 1


@pytest.mark.parametrize("inner", [1, 2])
def test_parts_of_a_part_end_soon_after_another_part_failed(inner: int) -> None:
    done, begun = list[int](), threading.Event()

    def endless() -> Iterator[int]:
        for part in itertools.count():
            begun.set()
            yield part

    def work(part: int) -> None:
        if part == 0:
            begun.wait(60)
            raise InvalidInput("this part")
        for _ in Threads(inner).run(lambda each: each, endless()):
            pass
        done.append(part)

    with pytest.raises(InvalidInput, match="this part"):
        list(Threads(2).run(work, [0, 1]))
    assert not done, "it was cut off"


@pytest.mark.parametrize("many", [0, -1, 1025, 1.5, True, "2"])
def test_a_number_of_threads_that_is_none_is_refused(many: Any) -> None:
    with pytest.raises(InvalidInput, match="whole number between 1 and 1024"):
        Threads(many)
