"""One hash over public data: equal values agree everywhere, other values do not."""

from __future__ import annotations

import importlib
import inspect
import os
import pkgutil
import subprocess
import sys
from collections import Counter
from typing import Any

import attrs
import numpy as np
import pytest

import cloister
from cloister.accounting.total import Total
from cloister.core import plain_data
from cloister.core.buckets import Space
from cloister.core.budget import Budget, Share
from cloister.core.domains import Ball, Box
from cloister.core.nearest import NearestCenter
from cloister.core.plain_data import digest
from cloister.core.randomness import PublicRng
from cloister.core.trust import Central, Local

SOMETHING = """
import numpy as np
from cloister.core.budget import Budget, Share
from cloister.core.plain_data import digest
from cloister.core.domains import Ball, Box
from cloister.core.nearest import NearestCenter
from cloister.core.randomness import PublicRng
from cloister.core.trust import Central
share = Share(PublicRng(b"k" * 32), 1, 0.25, 0.5)
near = NearestCenter(np.arange(12).reshape(4, 3), 2**20, 77)
print(digest({
    "words": ("a", b"b", None, True, 1, 1.5, float("inf"), -0.0), "trust": Central, "near": near,
        "offsets": near.offsets(),
    "box": Box((0.1, -1.0), (0.3, 1e30)), "ball": Ball((0.0,), 1 / 3), "budget": Budget("zcdp", 0.1, share),
    3: np.linspace(0, 1, 5), "set": dict.fromkeys("zyx", 0),
}))
"""


def test_equal_values_have_one_digest_in_every_process(capsys: pytest.CaptureFixture[str]) -> None:
    exec(SOMETHING, {})
    here = capsys.readouterr().out
    assert len(here) == 65
    other = {**os.environ, "PYTHONHASHSEED": "1"}
    assert subprocess.check_output([sys.executable, "-c", SOMETHING], text=True, env=other) == here


def test_a_digest_is_the_same_in_every_version() -> None:
    """Golden: a published plan is checked by machines that run another version of Python or NumPy."""
    value = ("a", 1, 2.5, None, True, np.array([[1, -2]]), Space((2, 3)), {"b": b"c"})
    assert digest(value) == "ae0511c85f8e260e732ec5ad56d34fdda6c100025d65be2f6b696a4f62f5eb86"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (np.arange(6).reshape(2, 3), np.asfortranarray(np.arange(6).reshape(2, 3))),
        (np.arange(6, dtype="<i8"), np.arange(12, dtype=">i8")[::2] // 2),
        (np.array([0.5, np.nan]), np.array([0.5, np.nan])),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        ((np.int64(5), np.float64(1.5), np.bool_(True)), (5, 1.5, True)),
        (Box([0], [1]), Box((0.0,), (1.0,))),
    ],
)
def test_equal_values_have_equal_digests(one: Any, other: Any) -> None:
    assert digest(one) == digest(other)


@attrs.frozen
class One:
    a: Any
    b: Any = 0


@attrs.frozen
class Two:
    a: Any
    b: Any = 0


KEYS = PublicRng(b"k" * 32), PublicRng(b"l" * 32)
DIFFERENT = [
    *(1, 1.0, True, "1", b"1", None, 0, 0.0, "", b"", float("nan"), float("inf"), 2**70, "a\nb", "('a', 'b')"),
    *((), (1,), ("1",), (1, 1), ((1,), 1), (1, (1,)), ((1, 1),), ((), ()), ({},), ("a", "b")),
    *({}, {1: 1}, {"1": 1}, {1: "1"}),
    *(One(1), One(0, 1), Two(1), One(One(1)), One, Two, Central, Local),
    *(np.array(values) for values in (1, [1], [[1]], [1.0], [True], [1, 0], [[1, 0]], [[1], [0]], [0, 1])),
    *(np.array([1], np.int32), np.array([], int), np.array([], float)),
    *(Box((0.0,), (1.0,)), Box((0.0,), (1.0 + 2**-52,)), Ball((0.0,), 1.0)),
    *(Budget(measure, 1.0) for measure in ("pure", "zcdp")),
    *(Budget("pure", 1.0, Share(key, 0, 0.0, 1.0)) for key in KEYS),
    *(NearestCenter(np.array([[at]]), 5) for at in (1, 2)),
    NearestCenter(np.array([[1]]), 5, 5),
    *(Total(1.0, rows_per_user=rows) for rows in (None, 1, 2)),
]


def test_different_values_have_different_digests() -> None:
    digests = [digest(value) for value in DIFFERENT]
    assert len(set(digests)) == len(digests)


def renamed(cls: type, **names: str) -> Any:
    """A class of the same fields, elsewhere."""
    made = type(cls.__name__, (cls,), {})
    for name, value in {"__module__": cls.__module__, "__qualname__": cls.__qualname__, **names}.items():
        setattr(made, name, value)
    return attrs.frozen(made)


def test_a_class_that_moves_within_its_package_keeps_its_digest() -> None:
    here = renamed(One, __module__="package.one", __qualname__="Moved")
    before = digest((here(1), here))
    plain_data._TAGGED.clear()  # another process
    there = renamed(One, __module__="package.folder.two", __qualname__="Moved")
    assert digest((there(1), there)) == before


def test_two_classes_of_one_tag_are_refused_unless_one_says_its_own_or_is_of_another_package() -> None:
    first, second, stranger = (
        renamed(One, __module__=module, __qualname__="Twice") for module in ("house.one", "house.two", "south.one")
    )
    told = renamed(One, __module__="house.three", __qualname__="Twice", digest_tag="house.ThreesTwice")
    assert len({digest(first(1)), digest(told(1)), digest(stranger(1))}) == 3
    with pytest.raises(TypeError, match=r"house\.two\.Twice and house\.one\.Twice are both digested as 'house\.Twice'"):
        digest(second(1))


NO_ROUNDS = (
    "cloister.plugins.populations",
    "cloister.collection",
    "cloister.lab.phones",
)
"""Where rows, reports and files of answers are handled, and nothing that a round holds."""


def test_no_two_classes_of_cloister_share_a_tag_but_those_that_hold_rows_and_reports() -> None:
    """What rounds hold has tags of its own: channels, bucketings, domains, trust markers. Summaries, reports and parts
    of files have no digest."""
    modules = [info.name for info in pkgutil.walk_packages(cloister.__path__, "cloister.")]
    found = [thing for module in modules for thing in vars(importlib.import_module(module)).values()]
    classes = {
        cls for cls in found if inspect.isclass(cls) and cls.__module__.startswith("cloister.") and attrs.has(cls)
    }
    rows = {
        cls
        for cls in classes
        if hasattr(cls, "merge") or hasattr(cls, "columns") or cls.__module__.startswith(NO_ROUNDS)
    }
    times = Counter(vars(cls).get("digest_tag", cls.__qualname__) for cls in classes - rows)
    assert len(times) > 150
    assert [name for name, n in times.items() if n > 1] == []


def test_what_is_no_public_data_is_refused() -> None:
    for value in (np.array([object()]), object(), {1, 2}, lambda: 0, 1j, (1, object()), iter(())):
        with pytest.raises(TypeError, match="has no digest"):
            digest(value)
