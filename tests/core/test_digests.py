"""Text behind keys and digests by rules that other languages can follow; one hash over public data: equal values agree
everywhere, other values do not."""

from __future__ import annotations

import math
from typing import Any

import attrs
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from cloister.accounting.privacy_target import PrivacyTarget
from cloister.core import plain_data
from cloister.core.buckets import BundleArrays, Space, describe_part, json_integers
from cloister.core.budget import Budget, Share
from cloister.core.domains import Ball, Box
from cloister.core.errors import Refused
from cloister.core.nearest import NearestCenter
from cloister.core.plain_data import digest, parsed, path, plain
from cloister.core.randomness import PublicRng
from cloister.core.trust import Central, Local


def test_a_digest_is_the_same_in_every_version() -> None:
    """Golden: a published plan is checked by machines that run another version of Python or NumPy."""
    value = ("a", 1, 2.5, None, True, np.array([[1, -2]]), Space((2, 3)), {"b": b"c"})
    assert digest(value) == "ae0511c85f8e260e732ec5ad56d34fdda6c100025d65be2f6b696a4f62f5eb86"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (np.arange(6).reshape(2, 3), np.asfortranarray(np.arange(6, dtype=">i8").reshape(2, 3))),
        ({"a": 1, "b": math.nan}, {"b": math.nan, "a": 1}),
        ((np.int64(5), np.float64(1.5), np.bool_(True)), (5, 1.5, True)),
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
    *(PrivacyTarget(1.0, rows_per_user=rows) for rows in (None, 1, 2)),
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


def test_what_is_no_public_data_is_refused() -> None:
    for value in (np.array([object()]), object(), {1, 2}, lambda: 0, 1j, (1, object()), iter(())):
        with pytest.raises(TypeError, match="has no digest"):
            digest(value)


EXACT = settings(derandomize=True, deadline=None, max_examples=250)
plain_values = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.binary(),
    st.text(),
    st.characters(max_codepoint=300),
    st.text(st.sampled_from("'\"\\\n\r\t\x00\x7f\x80\xa0\xad\u0378\ud800\U000e0001aé✓🙂")),
)


@given(plain_values)
@EXACT
def test_a_plain_value_is_written_as_repr_writes_it(value: Any) -> None:
    assert plain(value) == repr(value)


@pytest.mark.parametrize("name", ["it's", "back\\slash", "naïve", "line\n", "\x7f"])
def test_a_name_that_other_languages_could_write_otherwise_is_no_name(name: str) -> None:
    with pytest.raises(ValueError, match="cannot name a key"):
        PublicRng.from_seed(1).child("a", name)


def test_only_whole_numbers_and_text_are_names() -> None:
    for value in (1.0, None, b"a", ("a",)):
        with pytest.raises(TypeError):
            path([value])  # type: ignore[list-item]
    assert path([np.int64(3), True, "a"]) == "(3, 1, 'a')"


def test_what_is_nested_deeper_than_python_reads_is_no_json() -> None:
    for text in (b"[" * 100_000, b'{"a":' * 100_000):
        with pytest.raises(ValueError, match="nested too deeply"):
            parsed(text)


# descriptions for devices that run no Python


def test_integers_that_many_readers_would_round_are_text() -> None:
    assert json_integers([0, 2**53 - 1, 2**53, -(2**60)]) == [0, 2**53 - 1, str(2**53), str(-(2**60))]


def test_an_object_that_cannot_be_described_is_refused_with_what_to_do() -> None:
    with pytest.raises(Refused, match=r"One cannot be described .* ask the author of its plugin"):
        describe_part(One(1), BundleArrays())
