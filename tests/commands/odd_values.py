"""Odd values for a fuzzer that knows structure: files and options with one value that nobody expects there."""

from __future__ import annotations

import copy
import json
import random
import re
import shlex
import shutil
import sqlite3
import traceback
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from tests.commands.bad_inputs_folder import GOOD
from tests.in_process import cloister

HUGE = "1" + "0" * 400
"""A whole number that no double holds."""

LONG = "1" * 5000
"""One that Python makes no whole number of: it has more than 4,300 digits."""

NUMBERS = (
    *("inf", "-inf", "nan", "1e400", "-1", "0", HUGE, f"-{HUGE}", LONG, str(2**64), str(10**30)),
    *("", "x", "1_0", "0.5"),
)
"""What each option that takes a number is given."""

VALUES: tuple[Any, ...] = (
    *(None, True, "", "x", "\ud800", "\x00", "x" * 5000, [], {}, [[]], {"": 0}, [None], ["a", 1]),
    *(0, -1, 0.5, -0.0, 1e308, -1e308, 5e-324, 2**31, 2**63, 2**64, 10**30, int(HUGE), -int(HUGE)),
    *(float("inf"), float("-inf"), float("nan")),
)
"""What stands in place of a value of a JSON file."""

TEXTS = (
    "1e999",
    "-1e999",
    HUGE,
    "NaN",
    "Infinity",
    "[" * 3000,
    "tru",
    '"\\ud800"',
    "'",
    "01",
    LONG,
    '{"a": 1, "a": 2}',
)
"""What stands there as text, though some of it is no JSON."""

TOML = (
    *(
        "inf",
        "nan",
        "-inf",
        "1e400",
        HUGE,
        LONG,
        "-1",
        "0",
        "true",
        '""',
        "[]",
        "{}",
        "[[1]]",
        "[1, inf]",
        "2020-01-01",
    ),
    "[" * 3000,
    "'",
)

CELLS: tuple[Any, ...] = (
    *(
        None,
        "",
        "x",
        -1,
        0.5,
        10**18,
        1e308,
        float("inf"),
        float("-inf"),
        b"\xff\xfe",
        "\x00",
        "[" * 3000,
        "[1",
        "1e999",
    ),
    *(HUGE, '{"a": NaN}', "[1, 2]", "null"),
)
"""What stands in a cell of an SQLite file."""


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The paths to all values of a JSON document but the whole."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in inner:
        yield (*path, key)
        yield from places(each, (*path, key))


def changed(document: Any, rng: random.Random, values: tuple[Any, ...] = VALUES) -> Any:
    """A JSON document with one value exchanged, left out or added. Those of rare names are as likely as those of long
    lists."""
    made = copy.deepcopy(document)
    by_name = dict[Any, list[tuple[Any, ...]]]()
    for path in places(made):
        by_name.setdefault(tuple("" if isinstance(key, int) else key for key in path), []).append(path)
    *outer, last = rng.choice(by_name[rng.choice(list(by_name))])
    holder = made
    for key in outer:
        holder = holder[key]
    kind = rng.randrange(10)
    if kind == 0:
        del holder[last]
    elif kind == 1 and isinstance(holder, list):
        holder.append(copy.deepcopy(rng.choice([*values, holder[last]])))
    elif kind == 1:
        holder[f"{last}x"] = rng.choice(values)
    else:
        holder[last] = copy.deepcopy(rng.choice(values))
    return made


def changed_text(document: Any, rng: random.Random) -> bytes:
    """The text of a JSON document with one odd value, or some odd bytes."""
    mark = "@odd@"
    text = json.dumps(changed(document, rng, (mark,)))
    text = text.replace(f'"{mark}"', rng.choice(TEXTS))
    return changed_bytes(text.encode(), rng) if rng.random() < 0.3 else text.encode()


def changed_bytes(content: bytes, rng: random.Random) -> bytes:
    """Bytes that are cut, or of which some are exchanged."""
    at = rng.randrange(len(content) + 1)
    odd = rng.choice([b"\xff", b"\x00", b"\xef\xbb\xbf", b"\xed\xa0\x80", rng.randbytes(8), b""])
    return content[:at] + odd + (content[at + len(odd) :] if rng.random() < 0.7 else b"")


def changed_toml(text: str, rng: random.Random) -> bytes:
    """The text of a TOML file with one odd value."""
    if rng.random() < 0.1:
        return changed_bytes(text.encode(), rng)
    found = list(re.finditer(r'"[^"\n]*"|-?\d[\d.e-]*|\[[^\[\]\n]*\]', text))
    one = rng.choice(found)
    return (text[: one.start()] + rng.choice(TOML) + text[one.end() :]).encode()


def changed_cell(path: Path, rng: random.Random) -> None:
    """Exchange a cell of an SQLite file, past whatever its tables check."""
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("pragma foreign_keys = off")
        database.execute("pragma ignore_check_constraints = on")
        names = [name for (name,) in database.execute("select name from sqlite_schema where type = 'table'")]
        filled = [n for n in names if database.execute(f"select count(*) from {n}").fetchone()[0]]
        table = rng.choice(filled)
        column = rng.choice([name for _, name, *_ in database.execute(f"pragma table_info({table})")])
        number = rng.randrange(database.execute(f"select count(*) from {table}").fetchone()[0])
        old = database.execute(f"select {column} from {table} limit 1 offset {number}").fetchone()[0]
        with suppress(sqlite3.IntegrityError):  # not null, or one of two equal keys
            database.execute(f"update {table} set {column} = ? where {column} is ?", [rng.choice(CELLS), old])


MADE = "new", "encoded", "shuffled", "odd-certs", "odd-plugin"
"""What accepted lines make, and others would be refused for."""


def wrong(words: list[str], folder: Path) -> str | None:
    """What is wrong with how a command line ends, if anything is."""
    for name in MADE:
        shutil.rmtree(folder / name, ignore_errors=True)
    shown = " ".join(word if len(word) < 50 else f"{word[:40]}..." for word in words)
    try:
        done = cloister(*words, folder=folder)
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        return f"{shown}: {type(error).__name__} {str(error)[:80]!r} ({Path(last.filename).name}:{last.lineno})"
    fine = done.returncode in (0, 2) or (done.returncode == 4 and "already in use" in done.stderr)
    if not fine or "Traceback" in done.stderr or "set_int_max_str_digits" in done.stderr:
        return f"{shown}: {done.returncode} {done.stderr[-200:]!r}"
    return None


def words_of(line: str, **more: Any) -> list[str]:
    """The words of a line, with good options for those in braces."""
    for name, options in {**GOOD, **more}.items():
        line = line.replace(f"{{{name}}}", str(options))
    return shlex.split(line)
