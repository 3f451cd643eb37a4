"""Ids that are of no bucket, and vectors that are not as promised, are refused before any oracle is given them: a
randomiser may send them as they are."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np
import pytest

from cloister.core.buckets import QuestionContext, Space
from cloister.core.encoding import encode_lattice, encode_owned, encode_rows, summarise_lattice
from cloister.core.errors import InvalidInput
from cloister.core.lattice import Bound
from cloister.core.questions import OpenedQuestion, Round, Rows
from cloister.core.randomness import NoiseRng
from cloister.core.registry.components import Spec
from cloister.core.registry.compose import compose
from cloister.core.registry.registry import registry
from cloister.testing.probes import budget_of
from tests.core.core_fakes import BOX, SEED

BUILT_IN = next(plugin.specs for plugin in registry().plugins if plugin.origin == "built in")
ORACLES = [spec for spec in BUILT_IN if spec.role in ("FrequencyOracle", "VectorSumOracle")]
SPACE = Space((3, 5))
N = 40
ROWS = np.random.default_rng(0).uniform(-1, 1, (N, 2))
USERS = np.arange(N, dtype=np.uint64)


@attrs.frozen(eq=False)
class Stranger:
    """A stranger's bucketing: every row is in the first buckets, but for what it says of the last one."""

    last: Any
    space: Space = SPACE

    def locate(self, rows: np.ndarray) -> np.ndarray:
        ids = np.zeros((len(rows), self.space.levels), np.int64)
        if len(rows):
            ids[-1] = self.last
        return ids


def a_round(spec: Spec, cells: Any) -> Round[Any]:
    oracle = compose(registry(), spec.role, spec.name, {}, {}).value
    bound = () if spec.role == "FrequencyOracle" else (Bound(BOX.max_norm, 2),)
    context = QuestionContext(100_000, BOX.unit, SEED)
    channel = oracle.open(cells.space, budget_of(oracle.measure, 1.0), context, *bound)
    vectors = None if spec.role == "FrequencyOracle" else Rows(cells, Bound(BOX.max_norm, 2))
    return Round(0, oracle.trust, BOX, (OpenedQuestion(cells, vectors, None, channel),))


@pytest.mark.parametrize("last", [(3, 0), (0, 5), (-2, 0), (0, 2**40), (-(2**63), 0)])
@pytest.mark.parametrize("spec", ORACLES, ids=lambda s: s.name)
def test_no_oracle_is_given_an_id_that_is_of_no_bucket(spec: Spec, last: tuple[int, int]) -> None:
    round, noise = a_round(spec, Stranger(last)), NoiseRng.for_tests(0)
    for encode in (encode_rows, encode_owned):
        with pytest.raises(InvalidInput, match="the bucketing Stranger returned an id outside its space") as error:
            encode(round, ROWS, USERS, noise)
        assert not any(str(number) in str(error.value) for number in last if number)  # it says nothing of the row
    for work in (encode_lattice, summarise_lattice):
        with pytest.raises(InvalidInput, match="Nothing was encoded"):
            work(round, BOX.snap(ROWS), USERS, noise)


@pytest.mark.parametrize("spec", ORACLES, ids=lambda s: s.name)
def test_the_last_bucket_and_none_are_ids(spec: Spec) -> None:
    for last in ((2, 4), (-1, -1), (2, -1)):
        encode_rows(a_round(spec, Stranger(last)), ROWS[:3], USERS[:3], NoiseRng.for_tests(0))


@attrs.frozen(eq=False)
class Odd:
    """What is no ids at all."""

    ids: np.ndarray
    space: Space = SPACE

    def locate(self, rows: np.ndarray) -> np.ndarray:
        return self.ids[: len(rows)]


def test_what_is_no_ids_is_refused() -> None:
    for shape, kind in (((N, 2), float), ((N, 1), int), ((N, 2), np.uint64), (N, int), ((3, 2), int)):
        with pytest.raises(InvalidInput, match="the bucketing Odd"):
            encode_rows(a_round(ORACLES[0], Odd(np.zeros(shape, kind))), ROWS, USERS, NoiseRng.for_tests(0))


@attrs.frozen(eq=False)
class Promising:
    """Vectors of two numbers, it says."""

    made: Any
    cells: Any = Stranger(0)
    bound = Bound(BOX.max_norm, 2)

    def values(self, rows: np.ndarray, buckets: np.ndarray) -> Any:
        return self.made(rows)


@pytest.mark.parametrize(
    ("made", "found"),
    [
        (lambda rows: rows[:, 0], r"\(n\) and type int64"),
        (lambda rows: rows / 2, r"\(n, 2\) and type float64"),
        (lambda rows: rows[1:], r"\(not n, 2\) and type int64"),
        (lambda rows: rows.tolist(), r"\(n, 2\) and type list"),
    ],
)
def test_vectors_of_another_shape_or_type_are_refused_by_name(made: Any, found: str) -> None:
    (spec,) = (spec for spec in ORACLES if (spec.name, spec.role) == ("discrete-gaussian", "VectorSumOracle"))
    round = a_round(spec, Stranger(0))
    round = attrs.evolve(round, parts=(attrs.evolve(round.parts[0], vectors=Promising(made)),))
    with pytest.raises(InvalidInput, match=rf"Promising\.values of n rows .*{found}; its bound promises \(n, 2\)"):
        encode_rows(round, ROWS, USERS, NoiseRng.for_tests(0))
