"""Checks of encoding and decoding: rows in any order and pieces, merging, absorbing, tables."""

from __future__ import annotations

import copy
import pickle
import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import attrs
import numpy as np

from cloister.core.questions import OpenedQuestion
from cloister.plugin import Bound, BucketedVectors, CloisterError, Floats, Ints, InvalidInput, NoiseRng, Round
from cloister.testing.check import refuses, require, role_of
from cloister.testing.probes import (
    UNIT,
    Probe,
    Shape,
    budget_of,
    is_central,
    narrow_shapes,
    row_count,
    varied_rows,
    worst_vectors,
)
from cloister.testing.stubs import CarriedVectors, InMemoryRows, ModuloBuckets, carrying_domain, session_tables

SEED = NoiseRng.for_tests(30)
"""Fixed noise, with which two releases are equal exactly if their summaries are."""


def _probes(oracle: Any) -> list[Probe]:
    shapes = (*narrow_shapes(role_of(oracle)), _medium(oracle))
    return [Probe.of(oracle, shape, budget_of(oracle.measure, 0.3)) for shape in shapes]


def _medium(oracle: Any) -> Shape:
    return Shape((20, 40)) if role_of(oracle) == "FrequencyOracle" else Shape((20, 40), Bound(1000, 3))


def _released(probe: Probe, summary: Any) -> Floats:
    return probe.values(probe.table(summary, SEED))


def rows_count_the_same_in_any_chunk_and_order(oracle: Any) -> None:
    """Rows contribute the same to a summary alone, in any chunk and in any order.

    The curator's encoder draws nothing; a person's draws belong to their user number.
    """
    for probe in _probes(oracle):
        items, g = varied_rows(probe.shape), np.random.default_rng(31)
        n = row_count(items)
        expected = _released(probe, _pieces(probe, items, [np.arange(n)]))
        order, cuts = g.permutation(n), [0, *sorted(int(c) for c in g.integers(0, n + 1, 5)), n]
        for how, pieces in (
            ("in another order", [order]),
            (f"in chunks {cuts}", [np.arange(a, b) for a, b in pairwise(cuts)]),
            ("one by one", [np.arange(n)[i : i + 1] for i in range(min(n, 60))] + [np.arange(n)[60:]]),
        ):
            same = np.array_equal(expected, _released(probe, _pieces(probe, items, pieces)))
            require(same, f"{probe.shape}: {how}, the same {n} rows give another summary")


def _pieces(probe: Probe, items: Ints | BucketedVectors, pieces: list[Ints]) -> Any:
    """Encode rows in pieces, each on a machine with its own noise, and merge them."""
    merged = None
    for i, piece in enumerate(pieces):
        part = (
            BucketedVectors(items.buckets[piece], items.values[piece])
            if isinstance(items, BucketedVectors)
            else items[piece]
        )
        rng = SEED.child("machine", i) if is_central(probe.oracle) else SEED
        summary = probe.summary(part, rng, piece.astype(np.uint64))
        merged = summary if merged is None else merged.merge(summary)
    return merged


def merging_is_associative_and_commutative(oracle: Any) -> None:
    """Summaries merge in any order to the same, and neither merging nor decoding changes its inputs."""
    for probe in _probes(oracle):
        a, b, c = (probe.summary(varied_rows(probe.shape, seed), SEED) for seed in (33, 34, 35))
        values_before = [_released(probe, s) for s in (a, b, c)]
        copies = [copy.deepcopy(s) for s in (a, b, c)]
        left_first, right_first, swapped = a.merge(b).merge(c), a.merge(b.merge(c)), b.merge(a).merge(c)
        require(
            np.array_equal(_released(probe, left_first), _released(probe, right_first)),
            f"{probe.shape}: (a + b) + c is not a + (b + c)",
        )
        require(
            np.array_equal(_released(probe, left_first), _released(probe, swapped)),
            f"{probe.shape}: a + b is not b + a",
        )
        for name, summary, values, old in zip("abc", (a, b, c), values_before, copies, strict=True):
            same = np.array_equal(_released(probe, summary), values) and np.array_equal(_released(probe, old), values)
            require(same, f"{probe.shape}: merging or decoding changed the summary {name}")


def no_rows_are_valid_rows(oracle: Any) -> None:
    """Zero rows are encoded, absorbed, merged and decoded like any others, and add nothing.

    So are rows in no bucket, except that under Local trust a user in no bucket reports like any other.
    """
    for probe in _probes(oracle):
        empty = probe.no_rows
        nowhere = probe.items(np.full((5, len(probe.shape.sizes)), -1), np.ones((5, probe.width), np.int64))
        summary = probe.summary(varied_rows(probe.shape), SEED)
        for items in (empty, nowhere):
            nothing = probe.summary(items, SEED)
            require(
                np.isfinite(_released(probe, nothing)).all(), f"{probe.shape}: no rows give values that are not finite"
            )
            same = np.array_equal(_released(probe, summary), _released(probe, summary.merge(nothing)))
            silent = items is empty or is_central(oracle)
            require(same or not silent, f"{probe.shape}: merging with a summary of no rows changes it")


def absorb_refuses_what_no_encoder_sends(oracle: Any) -> None:
    """Malformed reports, of another shape or type, are refused with an error of cloister, not added up."""
    probe = Probe.of(oracle, _medium(oracle), budget_of(oracle.measure, 0.3))
    report = _report(probe)
    probe.channel.absorb(report)
    other = Shape((21, 40)) if probe.shape.bound is None else Shape((20, 40), Bound(1000, 4))
    strange = ("one of another question", _report(Probe.of(oracle, other, probe.budget)))
    for name, wrong in (strange, *_damaged(report)):
        try:
            probe.channel.absorb(wrong)
        except CloisterError:
            continue
        except Exception as error:
            require(False, f"a report that is {name} raises {type(error).__name__} instead of an error of cloister")
        require(False, f"a report that is {name} is absorbed")


def _report(probe: Probe) -> Any:
    return probe.report(varied_rows(probe.shape), SEED)


def _damaged(report: Any) -> Iterator[tuple[str, Any]]:
    """Yield the report with each of its arrays in another type or shape."""
    if isinstance(report, np.ndarray):
        for name, array in _wrong(report):
            yield name, array
    elif attrs.has(type(report)):
        for field in attrs.fields(type(report)):
            value = getattr(report, field.name)
            if isinstance(value, np.ndarray):
                for name, array in _wrong(value):
                    yield f"'{field.name}' {name}", attrs.evolve(report, **{field.alias: array})


def _wrong(array: Any) -> Iterator[tuple[str, Any]]:
    yield "in floating point", array.astype(np.float64)
    yield "in 32 bits", array.astype(np.int32)
    yield "too short", array[:-1]
    yield "too long", np.concatenate([array, array[:1]])
    yield "of one dimension more", array[None]


def a_vector_beyond_the_bound_is_clipped(oracle: Any) -> None:
    """Rows with vectors longer than the bound are clipped during encoding: no released sum moves further."""
    for shape in narrow_shapes("VectorSumOracle"):
        probe = Probe.of(oracle, shape, budget_of(oracle.measure, 1.0))
        bound = shape.bound
        assert bound is not None
        for vector in worst_vectors(bound):
            change = _carried(probe, vector * 50)
            for level, sums in enumerate(probe.by_level(change)):
                l1, l2 = float(np.abs(sums).sum()), float(np.sqrt((sums**2).sum()))
                require(
                    l2 <= bound.l2 * (1 + 1e-9) and l1 <= bound.l1 * (1 + 1e-9),
                    f"{shape}, level {level}: a row with the vector {vector * 50} moves the sums by L2 {l2:.6g} and "
                    f"L1 {l1:.6g}",
                )


def _carried(probe: Probe, vector: Ints) -> Floats:
    """Return what a row with this vector moves through ``encode_rows``, in lattice steps, as a mean over releases."""
    bound, domain = probe.shape.bound, carrying_domain(probe.width)
    assert bound is not None
    cells = ModuloBuckets(probe.shape.sizes)
    round = Round(
        0, probe.oracle.trust, domain, (OpenedQuestion(cells, CarriedVectors(cells, bound), None, probe.channel),)
    )
    row, changes = np.concatenate([[0], vector])[None].astype(np.float64) * domain.unit, []
    for i in range(16):
        one, other = (InMemoryRows(rows, len(rows)).gather(round, SEED)[0] for rows in (row[:0], row))
        noise = SEED.child(i)
        changes.append(probe.values(probe.table(other, noise)) - probe.values(probe.table(one, noise)))
    return np.asarray(np.mean(changes, axis=0)) / UNIT


def a_bucket_always_answers_the_same(oracle: Any) -> None:
    """Equal ids give equal values, however often, in whatever order and with whatever others they are asked."""
    for probe in _probes(oracle):
        table, g = (
            probe.table(probe.summary(varied_rows(probe.shape), SEED), NoiseRng.for_tests(36)),
            np.random.default_rng(37),
        )
        for level, size in enumerate(probe.shape.sizes):
            ids = g.integers(0, size, 7)
            first = table.at(ids, level)
            everything = table.at(np.arange(size), level)
            require(
                np.array_equal(everything[ids], first),
                f"{probe.shape}, level {level}: asked again, buckets give other values",
            )
            require(table.at(ids[:0], level).shape[0] == 0, f"{probe.shape}: no ids give values")


def tables_neither_pickle_nor_print(oracle: Any) -> None:
    """Tables can hold exact figures: they refuse pickling and deep copies, and their text shows no value."""
    probe = Probe.of(oracle, _medium(oracle), budget_of(oracle.measure, 0.3))
    texts = set()
    for seed in (38, 39):
        table = probe.table(probe.summary(varied_rows(probe.shape, seed), SEED), NoiseRng.for_tests(seed))
        texts.add(re.sub(r"0x[0-9a-fA-F]+", "", f"{table!r} {table!s}"))
        for name, travel in (("pickle", pickle.dumps), ("copy.deepcopy", copy.deepcopy)):
            require(refuses(TypeError, travel, table), f"{name} of a table works: raise TypeError in __reduce__")
    require(len(texts) == 1, "the text of a table shows what is in it")


def sessions_answer_real_ids_only(oracle: Any) -> None:
    """Tables from a session answer for their buckets, and refuse ids and levels that do not exist."""
    shape = _medium(oracle)
    size = shape.sizes[1]
    for table in session_tables(oracle, shape, rounds=1, rows=200):
        table.at(np.arange(size), 1)
        for ids, level in (([size], 1), ([-1], 1), ([0], 2), ([0], -1), ([[0]], 0)):
            require(
                refuses(InvalidInput, table.at, np.array(ids, np.int64), level),
                f"bucket {ids} of level {level} was answered; there are {shape.sizes}",
            )


ROWS = (
    rows_count_the_same_in_any_chunk_and_order,
    merging_is_associative_and_commutative,
    no_rows_are_valid_rows,
    absorb_refuses_what_no_encoder_sends,
    a_bucket_always_answers_the_same,
    tables_neither_pickle_nor_print,
    sessions_answer_real_ids_only,
)
"""Checks of oracles of every trust model."""

CENTRAL_SUMS = (a_vector_beyond_the_bound_is_clipped,)
"""Checks of Central vector-sum oracles."""
