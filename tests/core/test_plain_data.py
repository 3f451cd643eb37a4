"""Text behind keys and digests: Python's ``repr``, by rules that other languages can follow."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings, strategies as st

from cloister.core.plain_data import parsed, path, plain
from cloister.core.randomness import PublicRng

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
good = st.text(st.sampled_from([chr(c) for c in range(32, 127) if chr(c) not in "'\\"]))


@given(plain_values)
@EXACT
def test_a_plain_value_is_written_as_repr_writes_it(value: Any) -> None:
    assert plain(value) == repr(value)


@given(st.lists(st.one_of(good, st.integers())).map(tuple))
@EXACT
def test_a_path_is_written_as_repr_writes_it(names: tuple[str | int, ...]) -> None:
    assert path(names) == repr(names)


@given(st.floats(min_value=0, max_value=1e300, exclude_min=True))
@example(5e-324)
@example(2.0**-44)
@example(9e15)
@example(1e16)
@example(9999999999999998.0)
@example(1e-4)
@example(9.9e-5)
@EXACT
def test_floats_follow_the_rule_in_words(value: float) -> None:
    """The fewest digits that read back, the nearest of such; laid out by the power of the first."""
    _, digits, last = Decimal(repr(value)).normalize().as_tuple()
    assert isinstance(last, int)
    many, power, text = len(digits), len(digits) + last - 1, "".join(map(str, digits))

    def reading(step: Fraction) -> list[Fraction]:
        """Multiples of a step next to the value that read back as it."""
        near = (math.floor(Fraction(value) / step) + i for i in (-1, 0, 1, 2))
        return [n * step for n in near if float(n * step) == value]

    assert not reading(Fraction(10) ** (last + 1))
    best = min(reading(Fraction(10) ** last), key=lambda one: abs(one - Fraction(value)))
    assert abs(int(text) * Fraction(10) ** last - Fraction(value)) == abs(best - Fraction(value))
    if not -4 <= power < 16:
        laid = f"{text[0]}{'.' if many > 1 else ''}{text[1:]}e{'-' if power < 0 else '+'}{abs(power):02d}"
    elif power < 0:
        laid = f"0.{'0' * (-power - 1)}{text}"
    else:
        laid = f"{text[: power + 1]:0<{power + 1}}.{text[power + 1 :] or '0'}"
    assert plain(value) == laid
    assert plain(-value) == "-" + laid


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
