"""Parsing of public bounds: one pair, one per column, names, a file, a ball."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from cloister.core.domains import Ball, Box, check_ends
from cloister.core.doubles import as_float
from cloister.core.errors import InvalidInput, cause, nearest
from cloister.core.frames import UNKNOWN
from cloister.core.plain_data import parsed, parsed_toml
from cloister.rows.columns import TOLD
from cloister.rows.keywords import HALF
from cloister.rows.selection import SHOWN, Selection

HELP = (
    "give one pair (-1:1), one pair per column (0:120,0:1), a .toml or .json file with a pair per column name, or "
    "ball:RADIUS; take them from what is publicly known of the columns, never from the rows, or say 'unknown'"
)


FILES = ".toml", ".json"

UNSTATED = "unknown"
"""Stands for a pair that nobody can state; a part of the budget finds the column's range."""


def domain_of(bounds: Any, columns: Sequence[str]) -> Box | Ball:
    """Convert bounds to the domain of these columns.

    Args:
        bounds: a Box or Ball; text as on the command line; a pair; a sequence of pairs; a mapping of column names to
            pairs (unused columns are ignored), of "lower" and "upper" to sequences, or of "center" to a sequence and
            "radius" to a number. If a column has one of these names, an unambiguous mapping is still read. A pair may
            be "unknown" (``core.frames.UNKNOWN``). Two arrays for two columns are refused if they could be lower and
            upper ends as well as pairs.
        columns: their names.

    Raises:
        InvalidInput: missing, ambiguous, reversed, equal or non-finite bounds, or ones that do not fit the columns.
    """
    d = len(columns)
    if bounds is None or (isinstance(bounds, str) and not bounds.strip()):
        raise InvalidInput(f"no bounds: {HELP}")
    written = isinstance(bounds, str)
    if isinstance(bounds, str):
        bounds = _from_text(bounds, d)
    if isinstance(bounds, (Box, Ball)):
        if bounds.dimension != d:
            raise InvalidInput(f"the bounds are for {bounds.dimension} columns, the data have {d}")
        return bounds
    if isinstance(bounds, Mapping):
        return _from_mapping(_by_text(bounds), columns)
    return _from_sequence(bounds, columns, certain=written)


def named_in(bounds: Any) -> tuple[str, ...] | None:
    """Return the columns that bounds name, in a mapping or a file of one; None for bounds that name none.

    Raises:
        InvalidInput: the file cannot be read.
    """
    if isinstance(bounds, str) and bounds.endswith(FILES):
        bounds = table_from(Path(bounds))
    if not isinstance(bounds, Mapping) or set(bounds) in ({"lower", "upper"}, {"center", "radius"}):
        return None
    return tuple(str(name) for name in bounds)


def domain_for(bounds: Any, chosen: Selection) -> Box | Ball:
    """Return the domain of a table's features.

    Numbers are as for ``domain_of``; features of categories, and booleans that a mapping does not name, have [0, 1].

    Raises:
        InvalidInput: as ``domain_of``; or bounds that do not go with categories.
    """
    if isinstance(bounds, str) and bounds.endswith(FILES):
        bounds = table_from(Path(bounds))
    if bounds is None and set(chosen.numbers) <= set(chosen.booleans):
        bounds = {}
    if isinstance(bounds, Mapping) and set(bounds) not in ({"lower", "upper"}, {"center", "radius"}):
        bounds = {**dict.fromkeys(chosen.booleans, (0.0, 1.0)), **_by_text(bounds)}
        for name in chosen.used[len(chosen.clustered.used) :]:
            if name in chosen.numbers and name not in bounds:
                raise InvalidInput(
                    f"no bounds for column {name}, which groups are described by: add its range, or, where its values "
                    f"are few and publicly known (in CSV those of booleans are texts, too), list them as in --category "
                    f"{name}=true,false (categories=), or leave it out of {TOLD}"
                )
    if not chosen.categories and not chosen.texts:
        return domain_of(bounds, chosen.numbers)
    if not chosen.numbers and bounds:
        raise InvalidInput(
            f"the bounds are for columns of numbers, and there are only categories ({', '.join(chosen.used)}): name "
            f"the columns of numbers (--columns, columns=), or leave out the bounds"
        )
    box = domain_of(bounds, chosen.numbers) if chosen.numbers else None
    if isinstance(box, Ball):
        feature_kind = "categories" if chosen.categories else "words"
        raise InvalidInput(f"{feature_kind} need bounds per column, not a ball: give pairs for the columns of numbers")
    pairs = dict(zip(chosen.numbers, zip(box.lower, box.upper, strict=True), strict=True)) if box else {}
    pairs |= {name: (0.0, HALF - 1.0) for texts in chosen.texts for name in texts.features}
    pairs_of_features = [pairs.get(name, (0.0, 1.0)) for name in chosen.features]
    return Box(tuple(low for low, _ in pairs_of_features), tuple(high for _, high in pairs_of_features))


def _by_text(bounds: Mapping[Any, Any]) -> dict[str, Any]:
    """Return bounds by column name as text (0 becomes '0', as in data frames). Raises InvalidInput for duplicates."""
    names = [str(name) for name in bounds]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise InvalidInput(f"the bounds name column '{twice}' more than once: leave one out")
    return dict(zip(names, bounds.values(), strict=True))


def _from_text(text: str, d: int) -> Any:
    if text.startswith("ball:"):
        return Ball((0.0,) * d, _number(text[5:]))
    if text.endswith(FILES):
        return table_from(Path(text))
    if ":" in text or UNSTATED in text:
        parts = [part.strip() for part in text.replace(";", ",").split(",")]
        return [part if part == UNSTATED else _pair_of(part.split(":"), text) for part in parts]
    return _pair_of(text.split(","), text)


def _pair_of(parts: Sequence[str], text: str) -> tuple[float, float]:
    if len(parts) != 2:
        raise InvalidInput(f"bounds '{text}' are not a pair of numbers: {HELP}")
    return _number(parts[0]), _number(parts[1])


def _number(text: Any) -> float:
    try:
        return as_float(text)
    except (TypeError, ValueError):
        raise InvalidInput(f"'{text}' in the bounds is not a number: {HELP}") from None


def table_from(path: Path, contents: str = "bounds") -> Any:
    """Return the content of a .json file, or else a .toml file. Raises InvalidInput if it cannot be read."""
    kind = "JSON" if path.suffix == ".json" else "TOML"
    try:
        content = path.read_bytes()
        return parsed(content) if path.suffix == ".json" else parsed_toml(content)
    except OSError as error:
        raise InvalidInput(f"cannot read the {contents} file {path}: {cause(error)}") from error
    except ValueError as error:
        raise InvalidInput(f"the {contents} file {path} is not valid {kind}: {error}") from error


def _from_mapping(bounds: Mapping[str, Any], columns: Sequence[str]) -> Box | Ball:
    named = _named(bounds, columns)
    if set(bounds) == {"lower", "upper"} and not named:
        lower, upper = _list(bounds["lower"]), _list(bounds["upper"])
        if len(lower) != len(upper):
            raise InvalidInput(f"the bounds have {len(lower)} lower ends and {len(upper)} upper ones: {HELP}")
        return _from_sequence(list(zip(lower, upper, strict=True)), columns, certain=True)
    if set(bounds) == {"center", "radius"} and not named:
        middle = tuple(_number(value) for value in _list(bounds["center"]))
        return domain_of(Ball(middle, _number(bounds["radius"])), columns)
    check_named(bounds, columns, "bounds", HELP)
    return _box([_ends(bounds[name]) for name in columns], columns)


def check_named(table: Mapping[str, Any], columns: Sequence[str], contents: str, otherwise: str) -> None:
    """Raise InvalidInput, with the nearest other name, if a table lacks a column; it may have further ones."""
    missing = [name for name in columns if name not in table]
    if missing:
        further = [str(name) for name in table if name not in columns]
        candidates = nearest(missing[0], further)
        typo = f" (they have '{candidates[0]}': is that meant?)" if candidates else ""
        which, them = ("column", "it") if len(missing) == 1 else ("columns", "them")
        raise InvalidInput(
            f"no {contents} for {which} {', '.join(missing)}{typo}: leave {them} out with --columns, or {otherwise}"
        )


def _named(bounds: Mapping[str, Any], columns: Sequence[str]) -> bool:
    """Return True if the keys are column names: some are, and each value is a pair.

    Raises:
        InvalidInput: ambiguous (columns "lower" and "upper"): a guess could clip silently to other bounds.
    """
    called = [name for name in columns if name in bounds]
    if not called or not all(_is_pair(value) or value == UNSTATED for value in bounds.values()):
        return False
    if set(bounds) == {"lower", "upper"} and len(columns) == 2:
        both = f"columns are called {' and '.join(called)}" if len(called) > 1 else f"a column is called {called[0]}"
        raise InvalidInput(
            f"{both}, so that 'lower' and 'upper' in the bounds could be columns or the ends of all: give a list of "
            f"pairs in the order of the columns (0:120,0:250)"
        )
    return True


def _is_pair(value: Any) -> bool:
    try:
        return not isinstance(value, (str, bytes)) and len(value) == 2
    except TypeError:
        return False


def _ends(value: Any) -> tuple[Any, ...]:
    """Return a pair as given, or ``UNKNOWN``."""
    return UNKNOWN if isinstance(value, str) and value == UNSTATED else _list(value)


def _list(value: Any) -> tuple[Any, ...]:
    """Return several values as a tuple. Raises InvalidInput for a single value or a text."""
    if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
        raise InvalidInput(f"{value!r} in the bounds is one value where two or more belong: {HELP}")
    return tuple(value)


def _from_sequence(bounds: Any, columns: Sequence[str], certain: bool = False) -> Box:
    """Return the box of a sequence; ``certain`` says that its items are pairs, since a text or mapping gave them."""
    d = len(columns)
    try:
        items = [UNKNOWN if isinstance(item, str) and item == UNSTATED else item for item in bounds]
        if len(items) == 2 and all(not hasattr(item, "__len__") for item in items):
            items = [items]
        pairs = [tuple(item) for item in items]
    except TypeError:
        raise InvalidInput(f"bounds {bounds!r} are not understood: {HELP}") from None
    if not certain:
        _refuse_ends(pairs, d, _are_pairs(bounds, items))
    if len(pairs) == 1:
        pairs *= d
    if len(pairs) != d:
        named = f" ({', '.join(columns)})" if d <= SHOWN else ""
        raise InvalidInput(f"bounds for {len(pairs)} columns were given, the data have {d}{named}: {HELP}")
    return _box(pairs, columns)


def _are_pairs(bounds: Any, items: Sequence[Any]) -> bool:
    """Return True if items are written as pairs are: tuples, or lists in a list. Arrays may be either."""
    kinds = (list, tuple) if isinstance(bounds, list) else tuple
    return all(isinstance(item, kinds) for item in items) or any(item is UNKNOWN for item in items)


def _refuse_ends(items: Sequence[tuple[Any, ...]], d: int, written_as_pairs: bool) -> None:
    """Raise InvalidInput for what could be (lower ends, upper ends), the order in which other libraries take bounds.

    A guess could clip silently to other bounds.
    """
    if [len(item) for item in items] != [d, d]:
        return
    ends = [[_number(value) for value in item] for item in items]
    pairs = d == 2 and all(low < high for low, high in ends)
    if (pairs and written_as_pairs) or not all(low < high for low, high in zip(*ends, strict=True)):
        return
    raise InvalidInput(
        f"the bounds {'could be one pair per column, or' if pairs else 'seem to be'} the lower ends of all {d} columns "
        f"and then their upper ends: give a list with one pair (lower, upper) per column, as in list(zip(lower, "
        f"upper)), or {{'lower': lower, 'upper': upper}}"
    )


def _box(pairs: Sequence[Any], columns: Sequence[str]) -> Box:
    for pair in pairs:
        if len(pair) != 2:
            raise InvalidInput(f"{pair!r} in the bounds is not a pair (lower, upper): {HELP}")
    lower, upper = [_number(p[0]) for p in pairs], [_number(p[1]) for p in pairs]
    if not all(math.isfinite(v) for v in lower + upper):
        raise InvalidInput(f"bounds must be finite numbers: {HELP}")
    check_ends(columns, lower, upper)
    return Box(tuple(lower), tuple(upper))
