"""Results that come back bit by bit, or not at all."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pytest

from cloister.commands.option_groups import result_from
from cloister.core.errors import Damaged, InvalidInput
from cloister.run.result import Result
from cloister.run.saving import checked_target, put
from cloister.run.statement import PrivacyStatement, Spend
from tests.showing.report.pages import made

STATEMENT = PrivacyStatement(
    "Central", 1 / 3, 1e-6, (Spend(0, "question 1 (counts)", "m", "gaussian", 0.1 + 0.2),), rows=1000
)
ODD = [0.1 + 0.2, 1 / 3, -0.0, 5e-324, 1.7976931348623157e308, -1e-17, 2.0**53 + 2]
RESULT = Result(
    np.array([ODD[:3], [ODD[3], ODD[4], 1.0]]),
    np.array([0.0, 1e6 + 1 / 7]),
    ("a", "grün", "c\n"),
    {"name": "fastlloyd", "options": {"rounds": None, "rate": 0.1}, "slots": {}},
    {"k": 2, "bounds": {"lower": [-1.0]}},
    STATEMENT,
    {"rounds": 3, "iterates": np.array([[ODD[5:]]]), "list": [1, 2]},
    "0.1.0",
)
ENDINGS = ["json", "npz"]


def saved(tmp_path: Path, ending: str, result: Result = RESULT) -> Path:
    path = tmp_path / f"result.{ending}"
    result.save(path)
    return path


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_result_comes_back_bit_by_bit(tmp_path: Path, ending: str) -> None:
    back = Result.load(str(saved(tmp_path, ending)))
    assert back.centers.tobytes() == RESULT.centers.tobytes()
    assert np.asarray(back.weights).tobytes() == np.asarray(RESULT.weights).tobytes()
    for name in ("columns", "method", "problem", "privacy", "version"):
        assert getattr(back, name) == getattr(RESULT, name)
    assert np.array(back.details["iterates"]).tobytes() == RESULT.details["iterates"].tobytes()
    assert (back.details["rounds"], back.details["list"]) == (3, [1, 2])
    odd = attrs.evolve(back, weights=None, centers=np.array([[np.nan, np.inf, -np.inf]]))
    again = Result.load(saved(tmp_path, ending, odd))
    assert again.weights is None
    assert np.array_equal(again.centers, odd.centers, equal_nan=True)


def test_a_file_is_read_without_cloister_too(tmp_path: Path) -> None:
    with np.load(saved(tmp_path, "npz"), allow_pickle=False) as arrays:
        for name in ("centers", "weights"):
            assert np.array_equal(arrays[name], getattr(RESULT, name))
    plain = json.loads(saved(tmp_path, "json").read_text())["result"]
    assert plain["centers"] == RESULT.centers.tolist()
    assert plain["privacy"]["headline"] == STATEMENT.headline


def flipped(data: bytes, bit: int) -> bytes:
    changed = bytearray(data)
    changed[bit // 8] ^= 1 << (bit % 8)
    return bytes(changed)


@pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")
@pytest.mark.parametrize(("ending", "seed", "most"), [("json", 0, 65), ("npz", 2, 48)])
def test_a_damaged_file_is_found_out(tmp_path: Path, ending: str, seed: int, most: int) -> None:
    """What is read is what was written: of 50 files with one bit changed and 20 that end early (never without the last
    byte alone, which may be a line end), each is an error, or a change (of the case of an e, say) that changes
    nothing."""
    path, g = saved(tmp_path, ending), np.random.default_rng(seed)
    data, found = path.read_bytes(), 0
    bits, ends = g.choice(8 * len(data), 50, replace=False), g.choice(np.arange(1, len(data) - 1), 20, replace=False)
    for changed in [flipped(data, int(bit)) for bit in bits] + [data[: int(end)] for end in ends]:
        path.write_bytes(changed)
        try:
            assert Result.load(path).as_dict() == RESULT.as_dict()
        except Damaged:
            found += 1
    assert found > most


@pytest.mark.parametrize(
    "change",
    [
        {"format": "other"},
        {"centers": [1.0, 2.0]},
        {"weights": [1.0]},
        {"centers": [["x", "y", "z"]]},
        {"columns": ["a", 1, "c"]},
        {"method": "fastlloyd"},
        {"problem": [1]},
        {"problem": {"k": 0}},
        {"problem": {"rows": 2**63}},
        {"problem": {"described": []}},
        {"problem": {"categories": {"c": ["a", 1.5]}}},
        {"problem": {"categories": {"c": "ab"}}},
        {"problem": {"categories": {"c": []}}},
        {"problem": {"words": {"column": 1}}},
        {"details": []},
    ],
)
def test_a_file_with_other_content_is_no_result(tmp_path: Path, change: dict[str, Any]) -> None:
    """A seal finds accidents; whoever writes a file of this kind needs none. (More stands in ``bad_inputs``.)"""
    path = tmp_path / "made.json"
    path.write_text(json.dumps({**RESULT.as_dict(), **change}))
    with pytest.raises(Damaged):
        Result.load(path)


def test_a_file_with_categories_of_text_and_numbers_and_words_is_a_result(tmp_path: Path) -> None:
    problem = {"k": 2, "rows": 9, "categories": {"c": ["a", 1]}, "words": {"column": "w"}}
    path = tmp_path / "made.json"
    path.write_text(json.dumps({**RESULT.as_dict(), "problem": problem}))
    assert Result.load(path).problem == problem


@pytest.mark.parametrize("denied", ["target", "folder"])
def test_a_place_without_permission_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, denied: str) -> None:
    """Asked of the system through ``os.access``, which says yes to root: here it says no."""
    path = saved(tmp_path, "json")
    forbidden = path if denied == "target" else tmp_path
    monkeypatch.setattr(os, "access", lambda place, mode: Path(place) != forbidden)
    with pytest.raises(InvalidInput, match="no permission"):
        checked_target(path)


def test_a_link_in_the_place_of_a_temporary_file_is_never_written_through(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever else may write in the folder puts links where names are guessed: by the process, which anybody sees, or
    by luck, whatever is drawn."""
    theirs = tmp_path / "theirs.txt"
    theirs.write_text("not yours")
    (tmp_path / f".result.json.{os.getpid()}.tmp").symlink_to(theirs)
    checked_target(tmp_path / "result.json")
    saved(tmp_path, "json")
    assert theirs.read_text() == "not yours"
    monkeypatch.setattr("cloister.run.saving.secrets.token_hex", lambda size: "guessed")
    (tmp_path / ".result.json.guessed.tmp").symlink_to(theirs)
    for write in (checked_target, lambda target: put(target, b"mine")):
        with pytest.raises(InvalidInput, match=r"cannot write .*File exists"):
            write(tmp_path / "result.json")
    assert theirs.read_text() == "not yours"


# names of groups


def test_text_and_files_give_the_same_names_which_are_saved_with_the_result(tmp_path: Path) -> None:
    made().save(tmp_path / "r.json")
    (tmp_path / "names.toml").write_text('0 = "Frail"\n2 = "Young"\n')
    (tmp_path / "names.json").write_text(json.dumps({"0": "Frail", "2": "Young"}))
    for given in (" 2 = Young ,0 = Frail ", str(tmp_path / "names.toml"), str(tmp_path / "names.json")):
        assert result_from(tmp_path / "r.json", given).called == ["0 Frail", "1", "2 Young"]
    made().named({0: "Frail", "2": "Young"}).save(tmp_path / "named.json")
    assert Result.load(tmp_path / "named.json").called == ["0 Frail", "1", "2 Young"]


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({3: "Frail"}, "no group '3'.* are 0 to 2"),
        ({"00": "Frail"}, "no group '00'"),
        ({"\u0663": "Frail"}, "no group"),
        ({0: "  "}, "'  ' is no name of group 0"),
        ({0: "a\x1bb"}, "is no name"),
        ({0: "x" * 41}, "at most 40 characters"),
    ],
)
def test_wrong_names_are_refused_in_one_line(given: Any, says: str) -> None:
    with pytest.raises(InvalidInput, match=says) as caught:
        made().named(given)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_crash_while_writing_leaves_the_old_result_and_no_litter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str
) -> None:
    path = saved(tmp_path, ending)

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(InvalidInput, match=r"cannot write .*No space left on device"):
        attrs.evolve(RESULT, version="2").save(path)
    monkeypatch.undo()
    assert Result.load(path).version == RESULT.version
    assert os.listdir(tmp_path) == [path.name]
    attrs.evolve(RESULT, version="2").save(path)
    assert Result.load(path).version == "2"
