"""Selection of a table's columns, and the reason why each other column is left out.

Which columns a result has is released, so that no row may decide it: columns are chosen by their names and declared
types alone, never by cells.

* A table on disk that names its columns: those that were asked for by name or pattern; or else those that bounds name,
  and categories. If nothing names any, the error lists them.
* Data frames and arrays: all, each of which must hold numbers; or else as above.
* A pattern (``*``, ``?``) takes columns of numbers. It never takes identifiers and dates, judged by name and declared
  type, nor the index that pandas wrote as a column. A name takes any column that holds numbers.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias, final

import attrs

from cloister.core.errors import InvalidInput, UnknownName
from cloister.rows.categories import categories_of
from cloister.rows.keywords import Texts
from cloister.rows.options import Reading
from cloister.rows.selection import Selection, few

Kind: TypeAlias = Literal[
    "numbers", "booleans", "text", "lists", "dates", "spans", "wrapped", "untyped", "cells", "other"
]
"""Declared kind of a column. ``spans``: of time. ``wrapped``: numbers of a type that is not read, such as pandas'
Sparse. ``untyped``: its type is not known, or any may be in it. ``cells``: the format has no types (CSV), and a
column is read as what it is asked for as.
"""

IDENTIFIERS = re.compile(
    "id|ids|mrn|ssn|uuid|guid|key|rowid|userid|personid|patientid|customerid|email|phone|telephone|"
    "passport|iban|surname|firstname|lastname|fullname|username"
)
"""Words that end the name of an identifier. 'id' may also begin it; 'index' and 'name' are identifiers alone."""

NUMBERED = re.compile(
    "patient|person|user|customer|client|member|employee|student|case|record|account|insurance|policy|"
    "security|passport|phone|card|licence|license"
)
"""Words after which 'number', 'no' or 'nr' is an identifier: a patient's number is, a number of visits is not."""

MOMENTS = frozenset({"date", "datetime", "time", "timestamp", "dob", "birthdate", "birthday"})
"""Words that end the name of a date; all but 'time' may also begin it."""

INDEX = re.compile(r"__index_level_\d+__|Unnamed: ?\d+|")
"""Names that pandas gives an index which it writes as a column."""

CATEGORIES = (
    "Only a column whose values are few and publicly known, as wards are, is a category (--category ward=A,B,C, "
    "categories=): never names, or numbers that tell people apart"
)
"""Advice on columns of text, which may all be identifiers."""


@final
@attrs.frozen
class TableColumn:
    """Column of a table, as its schema declares it.

    Args:
        name: in the table.
        kind: of its cells.
        declared: whether the type is the schema's own: those of a data frame may come from cells.
        index: whether pandas wrote its index there.
        convert: advice on how a type that is not read becomes numbers, with its name.
    """

    name: str
    kind: Kind
    declared: bool = True
    index: bool = False
    convert: str = ""

    @property
    def numeric(self) -> bool:
        """Whether the column can be used as numbers."""
        return self.kind in ("numbers", "booleans", "cells")

    @property
    def barred(self) -> str:
        """Reason why no pattern takes the column, by its name alone; empty if one may."""
        words = [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+", self.name)]
        first, last = (words[0], words[-1]) if words else ("", "")
        if self.index or INDEX.fullmatch(self.name):
            return "pandas' index"
        if IDENTIFIERS.fullmatch(last) or first == "id" or words in (["index"], ["name"]):
            return "id-like"
        if last in ("number", "no", "nr") and len(words) > 1 and NUMBERED.fullmatch(words[-2]):
            return "id-like"
        moment = last in MOMENTS or first in MOMENTS - {"time"} or (last == "at" and len(words) > 1)
        return "a date" if moment else ""

    @property
    def what(self) -> str:
        """Description for people; empty for a plain column without a declared type."""
        kinds = {
            "booleans": "booleans",
            "text": "text",
            "lists": "lists",
            "dates": "a date",
            "spans": "a span of time",
            "wrapped": "numbers of a type that is not read",
            "untyped": "of no type",
            "cells": "",
        }
        return self.barred or kinds.get(self.kind, "numbers" if self.kind == "numbers" else "of another type")


def select(table: Sequence[TableColumn], reading: Reading, everything: bool = False) -> Selection:
    """Choose columns by these arguments alone: no cell is looked at.

    Args:
        table: all columns.
        reading: ``columns`` are names or patterns, or positions in a table without names; those of ``categories`` are
            used, too; where ``columns`` is None, ``bounded`` ones are. The ``user_column`` is not clustered by, nor
            are ``described`` ones that nothing else names; one of ``Texts`` is never taken as numbers where nothing
            names any.
        everything: whether all columns are meant where nothing names any.

    Raises:
        UnknownName: there is no such column.
        InvalidInput: a column cannot be used, or is not the only one of its name; or nothing says which are meant.
    """
    asked_names, users, bounded = reading.names, reading.user_column, reading.bounded
    listed = categories_of(reading.categories)
    candidates = _without_user_column(users, asked_names, table)
    names = [column.name for column in candidates]
    encoded = [category.column for category in listed]
    for name in encoded:
        _check_name("category", name, names)
    if users is not None and asked_names is None and users in (bounded or ()):
        raise InvalidInput(
            f"column '{users}' names the users, and has bounds: leave it out of the bounds, or name the columns to "
            f"cluster by (--columns)"
        )
    asked_for = Selection(()).with_described(reading.described or ())
    described, texts = _described(asked_for.described, candidates, users, encoded), asked_for.texts
    keyword_columns = [text.column for text in texts]
    for name in keyword_columns:
        _check_words(name, {column.name: column for column in candidates}, users)
    taken = (
        _by_name(candidates, asked_names, encoded)
        if (asked_names is not None)
        else _by_bounds([c for c in candidates if c.name not in keyword_columns], bounded, encoded, everything)
    )
    if asked_names is not None:
        taken += [name for name in encoded if name not in taken and name not in described]
    beside = [name for name in described if name not in taken]
    used = [*taken, *beside]
    for name in used:
        _check(candidates[names.index(name)], name in encoded)
        if names.count(name) > 1:
            raise InvalidInput(f"more than one column is called '{name}': rename them")
    selection = Selection(
        tuple(used),
        listed,
        tuple(c.name for c in candidates if c.kind == "booleans" and c.name in used),
        tuple(_left_out(table, [*used, *keyword_columns], users, asked_names)),
        not everything,
        described,
        len(beside),
        texts,
    )
    if len(set(selection.features)) < len(selection.features):
        twice = next(name for name in selection.features if selection.features.count(name) > 1)
        raise InvalidInput(f"a column and a category's value are both called '{twice}': rename the column")
    return selection


def select_by_name(reading: Reading) -> Selection | None:
    """Choose columns as ``select`` does, without a table that has them; None if nothing names any.

    Raises:
        InvalidInput: there is a pattern, which needs a table's columns; or as ``select``.
    """
    names = reading.names
    if not (names or reading.bounded or reading.categories):
        return None
    if names is not None and not (names and all(names)):
        raise InvalidInput("a column has no name: give --columns a,b,c")
    if pattern := next((name for name in names or () if re.search(r"[*?]", name)), None):
        raise InvalidInput(f"'{pattern}' is a pattern of a table's columns, and no rows are given: name the columns")
    described = [column.column if isinstance(column, Texts) else column for column in reading.described or ()]
    users = [reading.user_column] if reading.user_column else []
    columns = dict.fromkeys([*(names or ()), *(reading.bounded or ()), *(reading.categories or ()), *described, *users])
    return select([TableColumn(name, "cells") for name in columns], reading)


USED, TOLD = "--columns (columns=)", "--describe (describe=)"
"""Options that name columns."""


def not_numbers(name: str, option: str = USED, convert: str = "") -> str:
    """Return a message on a column of text, the same whether its type or a cell has told.

    Whether its values tell people apart is not looked up in the rows, since that would branch on an exact figure (law
    7). So no column of text is said to be a category: the message says what a category is, unless the name bars the
    column.

    Args:
        name: of the column.
        option: the one that named it.
        convert: advice on how a type that may hold numbers becomes numbers.
    """
    message = f"column '{name}' does not hold numbers: leave it out of {option}"
    message += f", or, if its cells are numbers, {convert}" if convert else ""
    return message if TableColumn(name, "text").barred else f"{message}. {CATEGORIES}"


def not_plain_numbers(name: str) -> str:
    """Return the message on a column of a CSV file one of whose cells is no number, as ``not_numbers``."""
    message = (
        f"column '{name}' does not hold numbers: a cell is no plain number (a point for decimals; no thousands, "
        f"%, words): pandas reads such files (docs/howto/hospital.md)"
    )
    return message if TableColumn(name, "text").barred else f"{message}. {CATEGORIES}"


def _by_name(table: Sequence[TableColumn], patterns: Sequence[str], encoded: Sequence[str]) -> list[str]:
    """Return the columns that names and patterns take, in order, each once."""
    names, taken = [column.name for column in table], list[str]()
    if not patterns:
        raise InvalidInput(f"no column was asked for: choose from {few(names)}")
    for name in patterns:
        if name in names or not re.search(r"[*?]", name):
            _check_name("column", name, names)
            if patterns.count(name) > 1:
                raise InvalidInput(f"column '{name}' was asked for more than once: name it once")
            taken.append(name)
        else:
            taken += _matched(table, name, encoded)
    return list(dict.fromkeys(taken))


def _matched(table: Sequence[TableColumn], pattern: str, encoded: Sequence[str]) -> list[str]:
    """Return the columns of numbers that a pattern takes.

    A column of another type is passed over if its schema declares the type, and otherwise refused: one other cell, and
    it would be one of numbers.

    Raises:
        InvalidInput: the pattern takes no column, or one whose type may follow from its cells.
    """
    expression = re.compile(re.escape(pattern).replace(r"\*", ".*").replace(r"\?", "."), re.DOTALL)
    matches = [c for c in table if expression.fullmatch(c.name) and (not c.barred or c.name in encoded)]
    for column in matches:
        if not column.numeric and (not column.declared or column.kind == "untyped") and column.name not in encoded:
            _check(column, False)
    taken = [column.name for column in matches if column.numeric or column.name in encoded]
    if not taken:
        raise InvalidInput(f"no column of numbers matches '{pattern}': there are {_listing(table)}")
    return taken


def _by_bounds(
    table: Sequence[TableColumn], bounded: Sequence[str] | None, encoded: Sequence[str], everything: bool
) -> list[str]:
    """Return the columns that bounds and categories name, as the table orders them; all if nothing names any."""
    names = [column.name for column in table]
    for name in bounded or ():
        if name not in names:
            raise UnknownName("column", name, names, "(it has bounds; --columns would say which columns to use)")
    if bounded is None and everything:
        if not names:
            raise InvalidInput("there are no columns")
        return list(names)
    chosen = {*(bounded or ()), *encoded}
    if not chosen:
        example = [column.name for column in table if column.kind in ("numbers", "booleans") and not column.barred][:3]
        raise InvalidInput(
            f"which columns? There are {_listing(table)}. Give --columns {','.join(example) or 'NAME,NAME'} "
            f"(columns=), a pattern such as --columns '*' for all numbers that are neither id-like nor dates, or "
            f"bounds by name (a .toml or .json file, or a mapping){_category_advice(table)}"
        )
    return list(dict.fromkeys(name for name in names if name in chosen))


def _check(column: TableColumn, encoded: bool, option: str = USED) -> None:
    """Raise InvalidInput if a column's type does not suit its use. Args: option, that named the column."""
    if encoded:
        if column.kind in ("dates", "spans", "lists", "other"):
            raise InvalidInput(
                f"column '{column.name}' is {column.what}: categories are texts, whole numbers or booleans"
            )
    elif column.kind in ("text", "untyped"):
        raise InvalidInput(not_numbers(column.name, option, column.convert))
    elif column.kind == "wrapped":
        raise InvalidInput(f"column '{column.name}' holds numbers {column.convert}, or leave it out of {option}")
    elif not column.numeric:
        raise InvalidInput(
            f"column '{column.name}' does not hold numbers but is {column.what}: turn it into a number, or leave it "
            f"out of {option}"
        )


def _described(
    described: Sequence[str], table: Sequence[TableColumn], users: str | None, encoded: Sequence[str]
) -> tuple[str, ...]:
    """Return the columns that groups are described by.

    Raises:
        UnknownName: there is no such column.
        InvalidInput: one tells people apart, or holds neither numbers nor a category.
    """
    columns = {column.name: column for column in table}
    for name in described:
        _check_described(name, columns, users)
        _check(columns[name], name in encoded, TOLD)
    return tuple(dict.fromkeys(described))


def _check_words(name: str, columns: Mapping[str, TableColumn], users: str | None) -> None:
    """Raise UnknownName or InvalidInput as ``_described``, or if a column holds no words."""
    _check_described(name, columns, users)
    if columns[name].kind not in ("text", "lists", "cells", "untyped"):
        raise InvalidInput(
            f"column '{name}' does not hold texts or lists but {columns[name].what}, and has no words: give it to "
            f"{TOLD}"
        )


def _check_described(name: str, columns: Mapping[str, TableColumn], users: str | None) -> None:
    if name == users:
        raise InvalidInput(f"column '{name}' names users, and describes nobody: leave it out of what is described")
    _check_name("described column", name, list(columns))
    if columns[name].barred == "id-like":
        raise InvalidInput(f"column '{name}' tells people apart by its name, and describes no group: leave it out")


def _check_name(role: str, name: str, names: Sequence[str]) -> None:
    if name not in names:
        raise UnknownName(role, name, names)


def _without_user_column(users: str | None, asked: list[str] | None, table: Sequence[TableColumn]) -> list[TableColumn]:
    """Return all columns but the one that names users.

    Raises:
        UnknownName: there is no such column.
        InvalidInput: there is more than one, or it was asked for.
    """
    names = [column.name for column in table]
    if users is None:
        return list(table)
    _check_name("user column", users, names)
    if names.count(users) > 1:
        raise InvalidInput(f"more than one column is called '{users}': rename them")
    if users in (asked or ()):
        raise InvalidInput(
            f"column '{users}' names users and is not clustered by: leave it out of --columns (columns=)"
        )
    return [column for column in table if column.name != users]


def _left_out(
    table: Sequence[TableColumn], used: Sequence[str], users: str | None, asked_names: list[str] | None
) -> list[tuple[str, str]]:
    """Return each other column with the reason.

    It is its type, its name if a pattern could have taken it, or that nobody named it.
    """
    patterns = any(re.search(r"[*?]", name) for name in asked_names or ())
    left_out = list[tuple[str, str]]()
    for column in table:
        if column.name == users:
            left_out.append((column.name, "names the users"))
        elif column.name not in used:
            by_type = (
                column.what if column.kind in ("text", "lists", "dates", "spans", "wrapped", "untyped", "other") else ""
            )
            by_name = column.barred if patterns or column.barred != "id-like" else ""
            left_out.append((column.name, by_type or by_name or "not listed"))
    return left_out


def _listing(table: Sequence[TableColumn]) -> str:
    """Return a text that lists the columns, each with what it is."""
    return few([f"{column.name} ({column.what})" if column.what else column.name for column in table]) or "no columns"


def _category_advice(table: Sequence[TableColumn]) -> str:
    """Return a sentence on categories, if the name of some column of text allows that it is one."""
    return f". {CATEGORIES}" if any(c.kind == "text" and not c.barred for c in table) else ""
