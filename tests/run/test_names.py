"""Names of groups: by number, once each, kept with the result; what is none is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cloister.commands.taking import result_from
from cloister.core.errors import InvalidInput
from cloister.run.result import Result
from tests.showing.report.pages import made


def test_text_and_files_give_the_same_names(tmp_path: Path) -> None:
    made().save(tmp_path / "r.json")
    (tmp_path / "names.toml").write_text('0 = "Frail"\n2 = "Young"\n')
    (tmp_path / "names.json").write_text(json.dumps({"0": "Frail", "2": "Young"}))
    for given in (" 2 = Young ,0 = Frail ", str(tmp_path / "names.toml"), str(tmp_path / "names.json")):
        assert result_from(tmp_path / "r.json", given).called == ["0 Frail", "1", "2 Young"]
    assert made().named({0: "Frail", "2": "Young"}).called == ["0 Frail", "1", "2 Young"]


def test_names_are_saved_with_the_result_and_change_no_figure(tmp_path: Path) -> None:
    plain, named = made(), made().named({1: "Old"})
    named.save(tmp_path / "r.json")
    again = Result.load(tmp_path / "r.json")
    assert again.called == ["0", "1 Old", "2"]
    assert np.array_equal(again.centers, plain.centers)
    assert again.privacy == plain.privacy
    assert plain.called == ["0", "1", "2"]


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({3: "Frail"}, "no group '3'.* are 0 to 2"),
        ({"00": "Frail"}, "no group '00'"),
        ({"\u0663": "Frail"}, "no group"),
        ({0: "  "}, "'  ' is no name of group 0"),
        ({0: "1"}, "'1' is no name"),
        ({0: "a\x1bb"}, "is no name"),
        ({0: 3}, "3 is no name"),
        ({0: "x" * 41}, "at most 40 characters"),
        ({0: "a", "0": "b"}, "a second name of group 0"),
        ({0: "a", 2: " a"}, "a second group named 'a'"),
    ],
)
def test_wrong_names_are_refused_in_one_line(given: Any, says: str) -> None:
    with pytest.raises(InvalidInput, match=says) as caught:
        made().named(given)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("meant", [None, 3, ["a"], "abc", {"a": 1}, ["a\x1b", "b", "c"], ["a", 3, "c"]])
def test_another_meaning_of_the_detail_names_nothing(meant: Any) -> None:
    assert made(details={"group_names": meant}).called == ["0", "1", "2"]
