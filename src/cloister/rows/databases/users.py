"""Which rows of every user are kept, in a database: ``rows.users``, where rows have no order.

**The choice.** A row counts if it can be used and names a user: a rule that looks at the row alone. The counted rows
of a user have *places* 0, 1, ..., n - 1, in the order of their cells. With s = s(key, name), a public hash of 31 bits,
kept are the rows at the places p where (p m + s) mod n < m. In n steps of m around a circle of n points, each of the m
rounds comes once to one of the first m points: so m rows are kept, or all if n <= m.

**Proof that it is hers alone.** Places are counted among her own rows, and by their cells; so are n and her name, and s
is a function of her name and the key. No other row enters, and neither does the order in which an engine holds or reads
rows. Hence what is kept of D and of D without one user differs by that user's kept rows, at most m, for every key,
known or not. Rows that tie in the order have the same cells, so that it does not matter which of them is kept. Her
cells do enter, unlike over files, and may: what may not is another user's row.

**What is fair about it.** Every row is kept with the same probability m / n over keys (but for n / 2^31), equal ones
too: a value that many of her rows have is kept as often as it should be. The kept rows lie evenly in the order of the
first column (systematic sampling), so that not all sets of m rows are equally likely.

**In every round the same.** Cells are compared as numbers, never as text, which a session's settings might change. The
hash is the engine's own: another version of it may keep other rows, and then a run that goes on is refused, since its
rows have other hashes.

**Names.** A user's name is a whole number or a text; in a column of text 7 and 7.0 are one name. A column has one type,
so that equal names are equal cells of ``USER``: numbers, or texts by their bytes, since a session's collation may take
Bo and bo for one. Two names never meet.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ibis

from cloister.core.lattice import CAP
from cloister.rows.databases.dialect import Dialect, same
from cloister.rows.databases.stage import Expr, floored, integer, number

USER, NAMED, ODD, ROWS, KEPT = "user", "named", "odd", "many", "kept"
"""Columns: the name of a row's user, NULL if it names nobody; whether it names somebody; whether it is no name, so that
all is refused; how many rows a user has; whether the row is kept."""

EXACT = {16: 2**11, 32: 2**24, 64: 2**53}
"""Whole floats of so many bits up to here are the numbers that were meant."""

DIGITS = "0123456789"

UNNUMBERED = (
    "rows in a database have no places by which their users could be numbered, and here each answer belongs to one: "
    "name the column that holds a name of her own for every row, such as a primary key (--user-column NAME, "
    "user_column=), or choose central components (--trust central)"
)
"""Said of rows without names."""

SEVERAL = (
    "two rows name one user, and here every row is a person who answers by herself: choose a user column in which no "
    "name comes twice, or a view that holds one row of each user, or central components (--trust central)"
)
"""Said of names that are not one row's."""


def named(column: Expr, dialect: Dialect) -> dict[str, Expr] | None:
    """``USER``, ``NAMED`` and ``ODD`` of a column that names users; None if its type names nobody."""
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
        there = text.notnull() & ~same(text, "", dialect)  # which takes less time than a name
        return {USER: ibis.ifelse(there, _of_text(text, dialect), ibis.null("string")), NAMED: there, ODD: never}
    return None


def _of_float(column: Expr, exact: int, dialect: Dialect) -> dict[str, Expr]:
    double: Expr = column.cast("float64")
    if dialect.finite is not None:  # by which NaN is known
        double = ibis.ifelse(dialect.finite(column) | column.isinf(), double, ibis.null("float64"))
    inside: Expr = double.between(number(1 - exact), number(exact - 1))
    integral = inside.ifelse(floored(double) == double, False).fill_null(False)
    there = double.notnull() & ~double.isnan()
    user = (integral & there).ifelse(double, ibis.null("float64")).cast("int64")
    return {USER: user, NAMED: integral & there, ODD: there & ~integral}


def _of_decimal(text: Expr, dialect: Dialect) -> dict[str, Expr]:
    """The digits before the point, if only zeros come after it. PostgreSQL's decimals may be NaN, or infinite."""
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
    """Digits without the '.0' that they may end in; other texts as they are."""

    def equal(part: Expr, other: str) -> Expr:
        return same(part, other, dialect)

    without_digits = text.translate(DIGITS, "")
    positive = equal(without_digits, ".") & ~equal(text, ".0")
    negative = equal(without_digits, "-.") & equal(text.left(1), "-") & ~equal(text, "-.0")
    short = (positive | negative).ifelse(text.substr(0, text.length() - 2), text)
    return equal(text.right(2), ".0").ifelse(short, text)


def told_apart(name: Expr, dialect: Dialect) -> Expr:
    """Type that two names of users differ in: numbers, or the bytes of texts."""
    return dialect.utf8(name) if name.type().is_string() else name


def of_each(table: Any, marks: Sequence[str], dialect: Dialect) -> Any:
    """A row for every user: ``ROWS``, how many she has, and the sums of these columns over them.

    Args: table, rows that all count, with ``USER``.
    """
    sums = {name: table[name].sum() for name in marks}
    return table.group_by(hers=told_apart(table[USER], dialect)).aggregate(**{ROWS: table.count()}, **sums)


def all_kept(table: Any) -> Any:
    """The same rows, with ``KEPT``, where no user has more than are kept."""
    return table.mutate(**{KEPT: ibis.literal(value=True)})


def chosen(table: Any, features: tuple[str, ...], max_rows: int, key: bytes, dialect: Dialect) -> Any:
    """The same rows, all of which count, with ``KEPT``: true in at most ``max_rows`` rows of each user.

    Args: table, with ``features`` and ``USER``; key, public; dialect, of an engine that has a hash.
    """
    assert dialect.hashed is not None
    max_rows = min(max_rows, CAP)
    hers = told_apart(table[USER], dialect)
    per_user = ibis.window(group_by=hers)
    ordered = ibis.window(group_by=hers, order_by=[table[name] for name in features])
    start = dialect.hashed([table[USER].cast("string").concat(f" {key.hex()}")])
    place = ibis.row_number().over(ordered)
    placed = dialect.fence(table.mutate(place=place, many=table.count().over(per_user), start=start))
    step = ibis.least(placed["many"], integer(max_rows))  # all are kept where it is n; p m + s is below 2^63
    is_kept = (placed["place"] * step + placed["start"]) % placed["many"] < step
    return dialect.fence(placed.mutate(**{KEPT: is_kept}).drop("place", "many", "start"))
