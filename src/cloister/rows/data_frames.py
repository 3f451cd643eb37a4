"""Data frames as narwhals has them, whatever their columns are called.

A column is known by its name as text: 0 is '0'. Names that pandas keeps in several levels, and one that is not the only
one of its kind, are no names.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cloister.core.errors import InvalidInput


def frame_of(rows: Any) -> Any:
    """Rows as a data frame of narwhals; None if they are none that is in memory.

    Raises: InvalidInput: two columns have one name, or names have several levels.
    """
    import narwhals as nw
    from narwhals.exceptions import DuplicateError

    try:
        found = nw.from_native(rows, eager_only=True, pass_through=True)
    except DuplicateError:
        names = getattr(rows, "column_names", None)  # of pyarrow, whose columns are cells
        _refuse_twice([str(name) for name in (rows.columns if names is None else names)])
        raise InvalidInput("more than one column has the same name: rename them") from None
    if not isinstance(found, nw.DataFrame):
        return None
    if any(isinstance(name, tuple) for name in found.columns):
        raise InvalidInput(
            "columns have names of several levels: join them first, as in rows.columns = ['_'.join(map(str, name)) for "
            "name in rows.columns]"
        )
    _refuse_twice([str(name) for name in found.columns])
    return found


def _refuse_twice(names: Sequence[str]) -> None:
    seen = set[str]()
    for name in names:
        if name in seen:
            raise InvalidInput(f"more than one column is called '{name}': rename them")
        seen.add(name)


def picked(frame: Any, columns: Sequence[str], named: bool = False) -> Any:
    """A data frame of these columns alone, as its own library has it.

    Args: frame (of narwhals), named (whether all names become texts, which they also do where some are: scikit-learn
        takes no others beside them).
    """
    import narwhals as nw

    own = {str(name): name for name in frame.columns}
    some = frame.select(nw.col(*(own[name] for name in columns)))
    if named or any(isinstance(own[name], str) for name in columns):
        some = some.rename({own[name]: name for name in columns})
    return some.to_native()
