"""Numbers that no double holds are refused, or infinite, wherever they are read."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import cloister
from cloister.core.doubles import as_float
from cloister.core.errors import InvalidInput
from cloister.core.plain_data import parsed, parsed_toml

HUGE = 10**400
LONG = 10**5000
"""With more digits than Python writes, not even in an error."""


def test_a_whole_number_beyond_all_doubles_is_infinite_as_a_double() -> None:
    assert (as_float(HUGE), as_float(-HUGE), as_float(2**1023)) == (math.inf, -math.inf, 2.0**1023)
    for wrong in (None, [], "x"):
        with pytest.raises((TypeError, ValueError)):
            as_float(wrong)


@pytest.mark.parametrize("number", [str(HUGE), f"-{HUGE}", "1e309", "-1e999", "1" * 5000])
def test_json_and_toml_with_a_number_that_no_double_holds_are_refused(number: str) -> None:
    for text in (f'{{"a": {number}}}', f'{{"a": [1, {{"b": [{number}]}}]}}', f"[{number}]", number):
        with pytest.raises(ValueError, match="too large"):
            parsed(text.encode())
    for text in (f"a = {number}", f"a = [1, {{ b = [{number}] }}]", f"[a.b]\nc = {number}"):
        with pytest.raises(ValueError, match="too large"):
            parsed_toml(text.encode())


def test_whole_numbers_that_doubles_round_are_read_to_the_last_digit() -> None:
    number = 2**64 + 1
    assert parsed(f"[{number}, 1e308]".encode()) == [number, 1e308]
    assert parsed_toml(f"a = {number}\nb = inf".encode()) == {"a": number, "b": math.inf}
    with pytest.raises(ValueError, match="NaN"):
        parsed(b"[NaN]")
    assert math.isnan(parsed(b"[NaN]", nan=True)[0])


def test_nesting_deeper_than_python_reads_is_refused() -> None:
    with pytest.raises(ValueError, match="nested too deeply"):
        parsed(b"[" * 100_000)
    with pytest.raises(ValueError, match="nested too deeply"):
        parsed_toml(b"a = " + b"[" * 100_000)


@pytest.mark.parametrize(
    "given",
    [
        {"bounds": (0, HUGE)},
        {"bounds": {"0": (0, HUGE), "1": (0, 1)}},
        {"bounds": {"center": (0, 0), "radius": HUGE}},
        {"epsilon": HUGE},
        {"delta": HUGE},
        {"rows": HUGE},
        {"n_clusters": HUGE},
        {"rows_per_user": HUGE},
        {"zoom": HUGE},
        {"scale": {"0": HUGE, "1": 1}},
        {"scale": [HUGE, 1]},
        {"start": {"0": [HUGE, 2], "1": [1, 2]}},
        {"method": "fastlloyd", "options": {"radius_scale": HUGE}},
        {"method": "fastlloyd", "options": {"rounds": HUGE}},
    ],
)
def test_estimators_refuse_numbers_beyond_all_doubles(given: dict[str, Any]) -> None:
    rows = np.random.default_rng(0).uniform(0, 1, (100, 2))
    fine = {"n_clusters": 2, "epsilon": 1, "delta": 1e-6, "bounds": (0, 1), "rows": 100}
    with pytest.raises(InvalidInput):
        cloister.KMeans(**{**fine, **given}).fit(rows)


@pytest.mark.parametrize(
    "given",
    [
        *({name: LONG} for name in ("rows", "n_clusters", "rows_per_user", "zoom", "threads", "random_state", "trust")),
        *({name: LONG} for name in ("missing", "method")),
        {"n_clusters": (2, -LONG)},
        {"scale": {"0": LONG, "1": 1}},
        {"start": [[LONG, 2], [1, 2]]},
        {"method": "fastlloyd", "options": {"rounds": -LONG}},
    ],
)
def test_estimators_name_the_parameter_whose_number_has_too_many_digits_to_quote(given: dict[str, Any]) -> None:
    fine = {"n_clusters": 2, "epsilon": 1, "delta": 1e-6, "bounds": (0, 1), "rows": 100}
    with pytest.raises(InvalidInput, match=f"{list(given)[-1]} has a whole number beyond 1.8e308"):
        cloister.KMeans(**{**fine, **given}).fit(np.zeros((100, 2)))


def test_no_option_is_infinite() -> None:
    fine = {"n_clusters": 2, "epsilon": 1, "delta": 1e-6, "bounds": (0, 1), "rows": 100}
    for name in ("radius_scale", "floor", "shrink"):
        with pytest.raises(InvalidInput, match="give a finite number"):
            cloister.KMeans(**fine, method="fastlloyd", options={name: math.inf}).fit(np.zeros((100, 2)))


def test_a_scaler_refuses_bounds_beyond_all_doubles() -> None:
    with pytest.raises(InvalidInput, match="must be finite"):
        cloister.PublicScaler((0, HUGE)).fit(np.zeros((3, 2)))
