"""Contribution bounding in a database, where rows have no order: which rows of every user are kept.

**Choice.** A row counts if it is usable and names a user: a rule that looks at the row alone. The counted rows of a
user have *places* 0, 1, ..., n - 1, in the order of their cells. With s = s(key, name), a public hash of 31 bits, the
rows at the places p where (p m + s) mod n < m are kept. In n steps of m around a circle of n points, each of the m
rounds comes once to one of the first m points: so m rows are kept, or all if n <= m.

**Proof that it depends on the user's own rows only.** Places and n are counted among the user's own rows, and places
are ordered by their cells; s is a function of the name and the key. No other row enters, and neither does the order in
which an engine holds or reads rows. Hence what is kept of D and of D without one user differs by that user's kept rows,
at most m, for every key, known or not. Rows that tie in the order have the same cells, so that it does not matter which
of them is kept. A user's own cells do enter, unlike over files, and may: what may not is another user's row.

**Fairness.** Over keys, every row is kept with the same probability m / n (up to n / 2^31), equal ones too: a value
that many of a user's rows have is kept as often as it should be. The kept rows lie evenly in the order of the first
column (systematic sampling), so that not all sets of m rows are equally likely.

**Consistency across rounds.** Cells are compared as numbers, never as text, which session settings might change. The
hash is the engine's own: another version of it may keep other rows; resuming is then refused, since the rows have other
hashes.

**Names.** A user's name is an integer or a text; in a text column 7 and 7.0 are one name. A column has one type, so
that equal names are equal cells of ``USER``: numbers, or texts by their bytes, since a session's collation may equate
Bo and bo. Different names never collide.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ibis

from cloister.core.lattice import CAP
from cloister.rows.databases.dialect import Dialect, same
from cloister.rows.databases.stage import Expr, floored, integer, number

USER, NAMED, ODD, ROWS, KEPT = "user", "named", "odd", "many", "kept"
"""Columns added to rows of users.

The user's name (NULL if none); whether there is one; whether it is invalid, so that all rows are refused; the number of
the user's rows; whether the row is kept.
"""

EXACT = {16: 2**11, 32: 2**24, 64: 2**53}
"""Integers below this, in floats of so many bits, are exact."""

DIGITS = "0123456789"

UNNUMBERED = (
    "rows in a database have no places by which their users could be numbered, but here every row is a person "
    "who answers alone: name a column with a unique value per row, such as a primary key (--user-column NAME, "
    "user_column=), or choose central components (--trust central)"
)
"""Message for rows without user names."""

SEVERAL = (
    "two rows name one user, but here every row is a person who answers alone: choose a user column without "
    "duplicates, a view with one row per user, or central components (--trust central)"
)
"""Message for user names that occur twice."""


def named(column: Expr, dialect: Dialect) -> dict[str, Expr] | None:
    """Return ``USER``, ``NAMED`` and ``ODD`` of a user column; None if its type cannot name users."""
    kind = column.type()
    never = ibis.literal(value=False)
    if kind.is_integer():
        return {USER: column, NAMED: column.notnull(), ODD: never}
    if kind.is_floating():
        return _of_float(column, EXACT[8 * kind.nbytes], dialect)
    if kind.is_decimal():
        return _of_decimal(dialect.text(column), dialect)
    if kind.is_string() or kind.is_uuid():
        text = dialect.text(column)
        there = text.notnull() & ~same(text, "", dialect)  # faster than comparing the name
        return {USER: ibis.ifelse(there, _of_text(text, dialect), ibis.null("string")), NAMED: there, ODD: never}
    return None


def _of_float(column: Expr, exact: int, dialect: Dialect) -> dict[str, Expr]:
    double: Expr = column.cast("float64")
    if dialect.finite is not None:  # comparisons do not detect NaN
        double = ibis.ifelse(dialect.finite(column) | column.isinf(), double, ibis.null("float64"))
    inside: Expr = double.between(number(1 - exact), number(exact - 1))
    integral = inside.ifelse(floored(double) == double, False).fill_null(False)
    there = double.notnull() & ~double.isnan()
    user = (integral & there).ifelse(double, ibis.null("float64")).cast("int64")
    return {USER: user, NAMED: integral & there, ODD: there & ~integral}


def _of_decimal(text: Expr, dialect: Dialect) -> dict[str, Expr]:
    """Return the digits before the point, if only zeros follow; PostgreSQL's decimals may be NaN, or infinite."""
    point = text.find(".")
    stem = (point < 0).ifelse(text, text.substr(0, point))
    alone = same(text.replace("0", ""), stem.replace("0", "").concat("."), dialect)
    zeros = (point < 0).ifelse(True, alone)
    missing = text.isnull() | same(text, "NaN", dialect)
    integral = ~missing & zeros & ~same(text, "Infinity", dialect) & ~same(text, "-Infinity", dialect)
    return {
        USER: integral.ifelse(stem, ibis.null("string")),
        NAMED: integral.fill_null(False),
        ODD: ~(integral | missing).fill_null(False),
    }


def _of_text(text: Expr, dialect: Dialect) -> Expr:
    """Strip the '.0' at the end of a number; leave other texts unchanged."""

    def equal(part: Expr, other: str) -> Expr:
        return same(part, other, dialect)

    without_digits = text.translate(DIGITS, "")
    positive = equal(without_digits, ".") & ~equal(text, ".0")
    negative = equal(without_digits, "-.") & equal(text.left(1), "-") & ~equal(text, "-.0")
    short = (positive | negative).ifelse(text.substr(0, text.length() - 2), text)
    return equal(text.right(2), ".0").ifelse(short, text)


def comparable(name: Expr, dialect: Dialect) -> Expr:
    """Return what distinguishes two user names: numbers, or the bytes of texts."""
    return dialect.utf8(name) if name.type().is_string() else name


def count_per_user(table: Any, marks: Sequence[str], dialect: Dialect) -> Any:
    """Return a row per user: the number of the user's rows (``ROWS``), and the sums of the columns ``marks`` over them.

    The table has ``USER``, and rows that all count.
    """
    sums = {name: table[name].sum() for name in marks}
    return table.group_by(hers=comparable(table[USER], dialect)).aggregate(**{ROWS: table.count()}, **sums)


def mark_all_kept(table: Any) -> Any:
    """Mark all rows as ``KEPT``, where no user exceeds the limit."""
    return table.mutate(**{KEPT: ibis.literal(value=True)})


def choose_rows(table: Any, features: tuple[str, ...], max_rows: int, key: bytes, dialect: Dialect) -> Any:
    """Add ``KEPT``, which is true in at most ``max_rows`` rows of each user.

    All rows of the table count, and the engine has a hash. The key is public.
    """
    assert dialect.hashed is not None
    max_rows = min(max_rows, CAP)
    hers = comparable(table[USER], dialect)
    per_user = ibis.window(group_by=hers)
    ordered = ibis.window(group_by=hers, order_by=[table[name] for name in features])
    start = dialect.hashed([table[USER].cast("string").concat(f" {key.hex()}")])
    place = ibis.row_number().over(ordered)
    placed = dialect.fence(table.mutate(place=place, many=table.count().over(per_user), start=start))
    step = ibis.least(placed["many"], integer(max_rows))  # n keeps all rows; p m + s stays below 2^63
    is_kept = (placed["place"] * step + placed["start"]) % placed["many"] < step
    return dialect.fence(placed.mutate(**{KEPT: is_kept}).drop("place", "many", "start"))
