"""What a newcomer stumbles over: options that have to combine, and texts that have to say it once."""

from __future__ import annotations

import numpy as np
import pytest

from cloister.core.errors import CloisterError, InvalidInput
from cloister.run.explaining import explain
from cloister.run.fit import fit, source
from cloister.run.request import Request, prepare

ROWS = np.random.default_rng(3).normal(0, 0.2, (20_000, 2))


def test_unknown_bounds_need_no_public_number_of_rows() -> None:
    result = fit(Request(k=2, epsilon=1, delta=1e-6, bounds="unknown"), source(ROWS, None, "refuse"))
    assert result.privacy.count_share > 0
    assert np.abs(result.centers).max() < 1


def test_a_statement_and_its_json_name_what_auto_picked_once() -> None:
    result = fit(Request(k=2, epsilon=1, delta=1e-6, bounds="-1:1", rows=20_000), source(ROWS, None, "refuse"))
    picked = result.details["auto"]["words"]
    assert result.privacy.text().count(picked) == 1
    assert [picked in note for note in result.privacy.as_dict()["notes"]].count(True) == 1


def test_what_no_candidate_can_do_is_said_once() -> None:
    with pytest.raises(InvalidInput) as refused:
        prepare(Request(k=300, epsilon=1, bounds="-1:1", rows=200), ["a", "b"])
    assert str(refused.value).count("ask for fewer centres") == 1


def test_a_count_that_is_mostly_noise_is_warned_of_and_another_is_not() -> None:
    said = [
        fit(Request(k=2, epsilon=epsilon, bounds="-1:1"), source(ROWS, None, "refuse")).privacy.text()
        for epsilon in (1.0, 1e-4)
    ]
    assert ["the count of the rows has a standard error" in text for text in said] == [False, True]


@pytest.mark.parametrize("scale", ["foo", "1,2,3"])
def test_a_scale_that_is_refused_is_named_as_it_was_given(scale: str) -> None:
    with pytest.raises(InvalidInput, match=f"scale is '{scale}'"):
        prepare(Request(k=2, epsilon=1, bounds="-1:1", rows=200, scale=scale), ["a", "b"])


def test_a_trust_that_is_no_text_is_an_error_of_ours() -> None:
    with pytest.raises(CloisterError, match="no trust '3'"):
        Request(k=2, epsilon=1, trust=3)  # type: ignore[arg-type]


def test_noise_of_sums_in_a_frame_does_not_depend_on_the_callers_units() -> None:
    errors = [
        [asked.error for asked in explain(request, ["a", "b"]).asked if asked.kind == "sums"]
        for request in (
            Request(k=2, epsilon=1, delta=1e-6, rows=20_000, bounds=f"0:{wide},0:{10 * wide}") for wide in (1, 1024)
        )
    ]
    assert errors[0] == pytest.approx(errors[1])
