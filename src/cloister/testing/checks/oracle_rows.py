"""Checks of an oracle's two halves: rows in any order and any pieces, merging, absorbing, tables."""

from __future__ import annotations

import copy
import pickle
import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import attrs
import numpy as np

from cloister.core.buckets import BucketedVectors
from cloister.core.errors import CloisterError, InvalidInput
from cloister.core.lattice import Bound
from cloister.core.questions import OpenedQuestion, Round
from cloister.core.randomness import NoiseRng
from cloister.core.trust import Aggregated, Central
from cloister.core.types import Floats, Ints
from cloister.testing.check import require, role_of
from cloister.testing.probes import UNIT, Probe, Shape, budget_of, length, narrow_shapes, spread, worst_vectors
from cloister.testing.stubs import Carried, Dealt, Handful, carrying, tables_of

SEED = NoiseRng.for_tests(30)
"""Two releases with the same noise are equal exactly when their summaries are."""


def _probes(oracle: Any) -> list[Probe]:
    shapes = (*narrow_shapes(role_of(oracle)), _medium(oracle))
    return [Probe.of(oracle, shape, budget_of(oracle.measure, 0.3)) for shape in shapes]


def _medium(oracle: Any) -> Shape:
    return Shape((20, 40)) if role_of(oracle) == "FrequencyOracle" else Shape((20, 40), Bound(1000, 3))


def _released(probe: Probe, summary: Any) -> Floats:
    return probe.values(probe.table(summary, SEED))


def rows_count_the_same_in_any_chunk_and_order(oracle: Any) -> None:
    """A row adds the same to a summary alone, in any chunk and in any order. The curator's encoder draws nothing; a
    person's draws belong to her number."""
    for probe in _probes(oracle):
        items, g = spread(probe.shape), np.random.default_rng(31)
        n = length(items)
        whole = _released(probe, _pieces(probe, items, [np.arange(n)]))
        order, cuts = g.permutation(n), [0, *sorted(int(c) for c in g.integers(0, n + 1, 5)), n]
        for how, pieces in (
            ("in another order", [order]),
            (f"in chunks {cuts}", [np.arange(a, b) for a, b in pairwise(cuts)]),
            ("one by one", [np.arange(n)[i : i + 1] for i in range(min(n, 60))] + [np.arange(n)[60:]]),
        ):
            same = np.array_equal(whole, _released(probe, _pieces(probe, items, pieces)))
            require(same, f"{probe.shape}: {how}, the same {n} rows give another summary")


def _pieces(probe: Probe, items: Ints | BucketedVectors, pieces: list[Ints]) -> Any:
    """Rows encoded in pieces, each by a machine with noise of its own, and merged."""
    merged = None
    for i, piece in enumerate(pieces):
        some = (
            BucketedVectors(items.buckets[piece], items.values[piece])
            if isinstance(items, BucketedVectors)
            else items[piece]
        )
        rng = SEED.child("machine", i) if probe.oracle.trust in (Central, Aggregated) else SEED
        summary = probe.summary(some, rng, piece.astype(np.uint64))
        merged = summary if merged is None else merged.merge(summary)
    return merged


def merging_is_associative_and_commutative(oracle: Any) -> None:
    """Summaries merge in any order to the same, and neither side of a merge changes, nor does decoding change a
    summary."""
    for probe in _probes(oracle):
        a, b, c = (probe.summary(spread(probe.shape, seed), SEED) for seed in (33, 34, 35))
        before = [_released(probe, s) for s in (a, b, c)]
        kept = [copy.deepcopy(s) for s in (a, b, c)]
        left, right, swapped = a.merge(b).merge(c), a.merge(b.merge(c)), b.merge(a).merge(c)
        require(
            np.array_equal(_released(probe, left), _released(probe, right)),
            f"{probe.shape}: (a + b) + c is not a + (b + c)",
        )
        require(np.array_equal(_released(probe, left), _released(probe, swapped)), f"{probe.shape}: a + b is not b + a")
        for name, summary, values, old in zip("abc", (a, b, c), before, kept, strict=True):
            same = np.array_equal(_released(probe, summary), values) and np.array_equal(_released(probe, old), values)
            require(same, f"{probe.shape}: merging or decoding changed the summary {name}")


def no_rows_are_valid_rows(oracle: Any) -> None:
    """Zero rows are encoded, absorbed, merged and decoded like any other, and add nothing; so are rows in no bucket,
    except that under Local trust a user in no bucket reports like any other."""
    for probe in _probes(oracle):
        empty = probe.items(np.zeros((0, len(probe.shape.sizes)), np.int64), np.zeros((0, probe.width), np.int64))
        nowhere = probe.items(np.full((5, len(probe.shape.sizes)), -1), np.ones((5, probe.width), np.int64))
        some = probe.summary(spread(probe.shape), SEED)
        for items in (empty, nowhere):
            nothing = probe.summary(items, SEED)
            require(
                np.isfinite(_released(probe, nothing)).all(), f"{probe.shape}: no rows give values that are not finite"
            )
            same = np.array_equal(_released(probe, some), _released(probe, some.merge(nothing)))
            silent = items is empty or oracle.trust in (Central, Aggregated)
            require(same or not silent, f"{probe.shape}: merging with what no row gave changes a summary")


def absorb_refuses_what_no_encoder_sends(oracle: Any) -> None:
    """A report of another shape or type is refused with an error of cloister, not added up."""
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
            require(False, f"a report that is {name} raises {type(error).__name__} instead of Refused")
        require(False, f"a report that is {name} is absorbed")


def _report(probe: Probe) -> Any:
    items = spread(probe.shape)
    return probe.channel.encode(items, np.arange(length(items), dtype=np.uint64), SEED)


def _damaged(report: Any) -> Iterator[tuple[str, Any]]:
    """The report with each of its arrays in another type or shape."""
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
    """A row whose vector is longer than the bound is clipped to it on its way in: no released sum moves further."""
    for shape in narrow_shapes("VectorSumOracle"):
        probe = Probe.of(oracle, shape, budget_of(oracle.measure, 1.0))
        bound = shape.bound
        assert bound is not None
        for vector in worst_vectors(bound):
            change = _carried(probe, vector * 50)
            for level, some in enumerate(probe.by_level(change)):
                l1, l2 = float(np.abs(some).sum()), float(np.sqrt((some**2).sum()))
                require(
                    l2 <= bound.l2 * (1 + 1e-9) and l1 <= bound.l1 * (1 + 1e-9),
                    f"{shape}, level {level}: a row with the vector {vector * 50} moves the sums by L2 {l2:.6g} and "
                    f"L1 {l1:.6g}",
                )


def _carried(probe: Probe, vector: Ints) -> Floats:
    """What a row with this vector moves on its way through ``encode_rows``, in lattice steps, on the mean of many
    releases."""
    bound, domain = probe.shape.bound, carrying(probe.width)
    assert bound is not None
    cells = Dealt(probe.shape.sizes)
    round = Round(0, probe.oracle.trust, domain, (OpenedQuestion(cells, Carried(cells, bound), None, probe.channel),))
    row, changes = np.concatenate([[0], vector])[None].astype(np.float64) * domain.unit, []
    for i in range(16):
        one, other = (Handful(rows, len(rows)).gather(round, SEED)[0] for rows in (row[:0], row))
        noise = SEED.child(i)
        changes.append(probe.values(probe.table(other, noise)) - probe.values(probe.table(one, noise)))
    return np.asarray(np.mean(changes, axis=0)) / UNIT


def a_bucket_always_answers_the_same(oracle: Any) -> None:
    """The same id gives the same value however often, with whatever other ids and in whatever order it is asked."""
    for probe in _probes(oracle):
        table, g = (
            probe.table(probe.summary(spread(probe.shape), SEED), NoiseRng.for_tests(36)),
            np.random.default_rng(37),
        )
        for level, size in enumerate(probe.shape.sizes):
            some = g.integers(0, size, 7)
            first = table.at(some, level)
            everything = table.at(np.arange(size), level)
            require(
                np.array_equal(everything[some], first),
                f"{probe.shape}, level {level}: asked again, buckets answer anew",
            )
            require(table.at(some[:0], level).shape[0] == 0, f"{probe.shape}: no ids give values")


def tables_neither_pickle_nor_print(oracle: Any) -> None:
    """A table can hold exact figures: it refuses to be pickled or copied deeply, and its text shows no value."""
    probe = Probe.of(oracle, _medium(oracle), budget_of(oracle.measure, 0.3))
    texts = set()
    for seed in (38, 39):
        table = probe.table(probe.summary(spread(probe.shape, seed), SEED), NoiseRng.for_tests(seed))
        texts.add(re.sub(r"0x[0-9a-fA-F]+", "", f"{table!r} {table!s}"))
        for name, travel in (("pickle", pickle.dumps), ("copy.deepcopy", copy.deepcopy)):
            try:
                travel(table)
            except TypeError:
                continue
            require(False, f"{name} of a table works: refuse it in __reduce__ with a TypeError")
    require(len(texts) == 1, "the text of a table shows what is in it")


def sessions_answer_real_ids_only(oracle: Any) -> None:
    """Asked through a session, a table answers for its buckets and refuses ids and levels that do not exist."""
    shape = _medium(oracle)
    size = shape.sizes[1]
    for table in tables_of(oracle, shape, rounds=1, rows=200):
        table.at(np.arange(size), 1)
        for ids, level in (([size], 1), ([-1], 1), ([0], 2), ([0], -1), ([[0]], 0)):
            try:
                table.at(np.array(ids, np.int64), level)
            except InvalidInput:
                continue
            require(False, f"bucket {ids} of level {level} was answered; there are {shape.sizes}")


ROWS = (
    rows_count_the_same_in_any_chunk_and_order,
    merging_is_associative_and_commutative,
    no_rows_are_valid_rows,
    absorb_refuses_what_no_encoder_sends,
    a_bucket_always_answers_the_same,
    tables_neither_pickle_nor_print,
    sessions_answer_real_ids_only,
)
"""For oracles of every trust model."""

CENTRAL_SUMS = (a_vector_beyond_the_bound_is_clipped,)
"""For Central vector-sum oracles."""
