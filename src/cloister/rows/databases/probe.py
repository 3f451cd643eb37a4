"""Checks of an engine's arithmetic and text comparison before it is trusted: three queries over constants.

No row is read.

Rounds are exact if doubles follow IEEE 754, with every operation rounded once, and integers and their sums have 64
bits. An engine that computes in decimals, single precision or fused operations, or adds integers up in doubles, is
refused, whatever its documentation says. Users and categories are distinguished by the bytes of texts, whatever
collation the session, the database or a column has.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations, product
from typing import Any, TypeAlias

import ibis
import numpy as np

from cloister.core.errors import InvalidInput
from cloister.core.types import AnyArray, Ints
from cloister.rows.categories import Category
from cloister.rows.databases.dialect import HASHES, Dialect
from cloister.rows.databases.features import one_hot, usable
from cloister.rows.databases.stage import (
    Expr,
    clipped,
    floored,
    integer,
    number,
    rounded,
    selected,
    truncated,
    where_below,
)
from cloister.rows.databases.users import USER, comparable, named

Answer: TypeAlias = Callable[[Any], Any]
"""Function from an expression to an Arrow table."""

A = np.array([1.0, 0.1, 2.0**53 - 1, 94906265.0, 1 - 2.0**-53, 2.0**52 + 1, 3.0, 0.7, 1 - 2.0**53, 1e-200, 1e200, 49.0])
B = np.array([3.0, 0.2, 1.0, 94906267.0, 2.0**-53, 2.0**52 - 1, -10.0, 0.1, -1.0, 3e-9, -3e-9, 1 / 49])
"""Doubles whose sums, products and quotients are wrong in other arithmetic than IEEE 754's."""

TIES = np.array([0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 2.0**51 - 0.5, -(2.0**50) - 0.5, 0.5 - 2.0**-54, -0.1, 7.0, -7.0])
"""Doubles up to 2^51 halfway between two integers, and some that are not."""

WHOLE = np.array(
    [2**62, -(2**62), 2**62 - 512, 2**53, 2**53 - 1, -1, 0, 2**31, -(2**31) - 1, 2**32 + 1, 1, -(2**40)], float
)
"""Doubles that are cast to integers."""

LONG = np.array([2**61 + 1, 2**60 + 1, 2**53 + 1, 1, 1, 1, -1, 2**31, 2**32 + 1, 2**52 + 1, -(2**53) - 1, 3])
"""Integers whose sum no double holds."""

SHORT = np.array([2**31 - 1, 2**31 - 1, 2**31 - 1, 1 - 2**31, 2**30, 5, -5, -7, 1, 2**31 - 1, 2**31 - 1, 2**31 - 1])
"""32-bit integers whose sum exceeds 32 bits."""

IDS = np.array([-1, 0, 5, -1, 0, 5, -1, 0, 5, 2**40, 2**40, -1])
"""Bucket ids of the rows of constants."""

CELLS = (
    "1",
    "NaN",
    "Infinity",
    "-Infinity",
    None,
    "1.7976931348623157e308",
    "-1.7976931348623157e308",
    "0",
    "-0.0",
    "5e-324",
    "-1",
    "NaN",
)
"""Cells in their written form; one is NULL."""

WORDS = ("Bo", "bo", "b\u00f3", "bo\u0301", "bo ", "bo-", "7", "7.0", "7.0\u0301", "TRUE", "true", "Tru\u0435")
"""Texts that some collation equates, by case, accents, spaces, signs or looks.

Two pairs are one name, or one value: 7 and 7.0, TRUE and true.
"""

NAMES = ("Bo", "bo", "b\u00f3", "bo\u0301", "bo ", "bo-", "7", "7", "7.0\u0301", "TRUE", "true", "Tru\u0435")
"""User name of each of ``WORDS``."""

VALUES = ("bo", "7", "true")
"""Values of the test category."""

DOUBLES: dict[str, list[str]] = {
    **{
        name: [f"'{x!r}'" for x in values.tolist()]
        for name, values in (("a", A), ("b", B), ("tie", TIES), ("whole", WHOLE))
    },
    "cell": ["NULL" if cell is None else f"'{cell}'" for cell in CELLS],
}
TEXTS: dict[str, list[str]] = {"word": [f"'{word}'" for word in WORDS]}
INTEGERS: dict[str, list[str]] = {
    name: [f"'{i}'" for i in values] for name, values in (("i", range(len(A))), ("n", LONG), ("s", SHORT), ("id", IDS))
}
"""Columns of constants in SQL, as are ``DOUBLES`` and ``TEXTS``."""

EXCHANGED = (0.0, 1.0, -1.0, 2.0, 0.25)
"""Cells that rows exchange: boolean columns, signs, integers and quarters have few significant bits."""

HASHED: dict[str, list[str]] = {
    **{name: [f"'{row[j]!r}'" for row in product(EXCHANGED, repeat=3)] for j, name in enumerate(("x", "y", "z"))},
    "i": [f"'{i}'" for i in range(len(EXCHANGED) ** 3)],
}
"""Rows of three such cells, in every combination."""

FINITE = np.array([cell is not None and bool(np.isfinite(float(cell))) for cell in CELLS])


def check_engine(name: str, dialect: Dialect, backend: Any, answer: Answer) -> None:
    """Raise InvalidInput if the engine's arithmetic is not exact enough for rounds."""
    wrong = _wrong_in_rows(dialect, _constants(backend, DOUBLES | INTEGERS | TEXTS), answer)
    wrong = wrong or _wrong_in_groups(_constants(backend, INTEGERS), answer)
    wrong = wrong or _wrong_in_hashes(dialect, _constants(backend, HASHED), answer)
    if wrong:
        raise InvalidInput(
            f"{name} cannot be used, because rounds must be exact to the last bit: it gets {wrong} wrong; export the "
            f"rows to Parquet, and fit the files"
        )


def _constants(backend: Any, columns: Mapping[str, Sequence[str]]) -> Any:
    """Return a table of constants written as texts, so that the engine cannot compute before it runs the query."""
    types = {
        **dict.fromkeys([*DOUBLES, "x", "y", "z"], ("float64", "DOUBLE")),
        **dict.fromkeys(TEXTS, ("string", "TEXT")),
    }
    written_types = {name: types.get(name, ("int64", "BIGINT")) for name in columns}
    kinds = {name: kind for name, (kind, _) in written_types.items()}
    chosen = ", ".join(f"CAST({name} AS {written}) AS {name}" for name, (_, written) in written_types.items())
    values = ", ".join(f"({', '.join(row)})" for row in zip(*columns.values(), strict=True))
    query = f"SELECT {chosen} FROM (VALUES {values}) AS constants({', '.join(columns)})"
    return backend.sql(query, schema=kinds, dialect="duckdb")


def _wrong_in_rows(dialect: Dialect, t: Any, answer: Answer) -> str | None:
    """Return the operation on rows that the engine gets wrong; None if all are right."""
    trials = _trials(t) + _trials_of_texts(t, dialect)
    results = answer(t.select(i=t.i, **{f"t{j}": of for j, (_, of, _) in enumerate(trials)}))
    order = np.argsort(results["i"].to_numpy())
    wrong = [trial for j, (trial, _, expected) in enumerate(trials) if not _same(results[f"t{j}"], order, expected)]
    return wrong[0] if wrong else None


def _wrong_in_hashes(dialect: Dialect, t: Any, answer: Answer) -> str | None:
    """Return a description of faulty row hashes (rows of ``HASHED``); None if they are right."""
    if dialect.hashed is None:
        return None
    results = answer(t.select(i=t.i, hash=dialect.hashed([t.x, t.y, t.z])))
    hashes = results["hash"].to_numpy()[np.argsort(results["i"].to_numpy())]
    good = (
        hashes.dtype.kind in "iu" and len(hashes) == len(EXCHANGED) ** 3 and 0 <= hashes.min() <= hashes.max() < HASHES
    )
    return None if good and tells_exchanges(hashes.astype(np.int64)) else "hashes of rows"


def tells_exchanges(hashes: Ints) -> bool:
    """Return True if the sum of two rows' hashes changes whenever they exchange a cell.

    Args:
        hashes: of all rows of three of ``EXCHANGED``, in order.
    """
    cells = len(EXCHANGED)
    cube = hashes.reshape(cells, cells, cells)
    for column in range(3):
        by_cell = np.moveaxis(cube, column, 0).reshape(cells, -1)
        for one, other in combinations(by_cell, 2):
            if len(np.unique(one - other)) < len(one):
                return False
    return True


def _wrong_in_groups(t: Any, answer: Answer) -> str | None:
    """Return the grouped operation that the engine gets wrong; None if all are right."""
    sums = {"n": t.n.sum().cast("int64"), "s": t.s.cast("int32").sum().cast("int64"), "i": t.count()}
    results = answer(t.group_by(id=t.id).aggregate(**sums))
    order = np.argsort(results["id"].to_numpy())
    ids, bucket_of_row = np.unique(IDS, return_inverse=True)
    if not _same(results["id"], order, ids):
        return "groups"
    for name, values in {"n": LONG, "s": SHORT, "i": np.ones_like(IDS)}.items():
        expected = np.array([values[bucket_of_row == i].sum() for i in range(len(ids))])
        if not _same(results[name], order, expected):
            return "sums of integers"
    return None


def _same(column: Any, order: AnyArray, expected: AnyArray) -> bool:
    """Return True if an Arrow column has these values and this type; integers may come as decimals."""
    values = (column.cast("int64") if str(column.type).startswith("decimal") else column).to_numpy()
    return (
        values.dtype.kind == expected.dtype.kind
        and len(values) == len(order)
        and np.array_equal(values[order], expected)
    )


def _as_integer(condition: Expr) -> Expr:
    return ibis.ifelse(condition, 1, 0).cast("int64")


def _trials_of_texts(t: Any, dialect: Dialect) -> list[tuple[str, Expr, AnyArray]]:
    """Return trials of how users and category values are distinguished, in the form of ``_trials``."""
    names = named(t.word, dialect)
    assert names is not None
    name = comparable(names[USER], dialect)
    row_count = t.i.count().over(ibis.window(group_by=name)).cast("int64")
    category = Category("word", VALUES)
    features = category.one_hot(category.codes(WORDS))
    return [
        ("texts that name users", row_count, np.array([NAMES.count(name) for name in NAMES])),
        *(
            ("texts of categories", feature, expected)
            for feature, expected in zip(one_hot(t.word, category, dialect), features, strict=True)
        ),
    ]


def _trials(t: Any) -> list[tuple[str, Expr, AnyArray]]:
    """Return trials on every row: name, the engine's expression, and the expected values."""
    cuts, choices, doubles = np.array([-3, 0, 2]), np.array([5, -7, 2**40, 1]), np.array([0.1, 1.0, -3.5, 2.0**-1000])
    return [
        ("sums of doubles", t.a + t.b, A + B),
        ("differences of doubles", t.a - t.b, A - B),
        ("products of doubles", t.a * t.b, A * B),
        ("sums of products of doubles", t.a * t.b + t.tie, A * B + TIES),
        ("quotients of doubles", t.a / t.b, A / B),
        ("square roots", t.a.abs().sqrt(), np.sqrt(abs(A))),
        ("comparisons of doubles", _as_integer(t.a < t.b), (A < B).astype(int)),
        ("doubles rounded to integers", rounded(t.tie), np.rint(TIES)),
        ("doubles rounded down", floored(t.tie), np.floor(TIES)),
        ("doubles rounded towards zero", truncated(t.tie), np.trunc(TIES)),
        ("doubles as integers of 64 bits", t.whole.cast("int64"), WHOLE.astype(int)),
        ("integers as doubles", (t.n & (2**52 - 1)).cast("float64"), (LONG & (2**52 - 1)).astype(float)),
        ("bits of integers", t.n & (2**40 - 1), LONG & (2**40 - 1)),
        ("clipped doubles", clipped(t.tie, -1.5, 2.5), np.clip(TIES, -1.5, 2.5)),
        ("the least of doubles", ibis.least(t.tie, t.b, t.a), np.minimum(np.minimum(TIES, A), B)),
        ("the greatest of doubles", ibis.greatest(t.tie, t.b, t.a), np.maximum(np.maximum(TIES, A), B)),
        ("cases", where_below(t.tie, cuts, [*map(integer, choices)]), choices[np.searchsorted(cuts, TIES, "right")]),
        ("choices", selected(t.n & 3, doubles), doubles[LONG & 3]),
        ("missing and infinite cells", _as_integer(usable(t, ("cell",))), FINITE.astype(int)),
        *(("constants", rounded(number(tie)) + t.tie * number(0), np.full(len(A), np.rint(tie))) for tie in TIES[:6]),
        *(
            ("constants", number(x) * number(y) + t.tie * number(0), np.full(len(A), x * y))
            for x, y in zip(A, B, strict=True)
        ),
    ]
