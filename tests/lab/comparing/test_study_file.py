"""Studies that go on, and files that are no studies."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from cloister.core.errors import CloisterError, Damaged, InvalidInput
from cloister.lab.comparing import comparison
from tests.lab.comparing.studies import ROWS, study


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """Where a study is kept."""
    return tmp_path / "study.jsonl"


def test_a_study_goes_on_where_it_was_cut_off(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed after its third run: three are kept, three are made, and nothing twice."""
    made = 0
    run = comparison.Bench.run

    class Killed(BaseException):
        pass

    def dies(self: Any, trial: Any) -> Any:
        nonlocal made
        made += 1
        if made == 4:
            raise Killed
        return run(self, trial)

    monkeypatch.setattr(comparison.Bench, "run", dies)
    with pytest.raises(Killed):
        study(runs=6, out=out)
    kept = [json.loads(line) for line in out.read_text().splitlines()]
    first = [entry["nicv"] for entry in kept if "run" in entry]
    steps = list[tuple[int, int]]()
    found = study(runs=6, out=out, progress=lambda done, total: steps.append((done, total)))
    assert (made, len(first), len(found.cells[0].nicv)) == (4 + 3, 3, 6)
    assert list(found.cells[0].nicv[:3]) == first
    assert steps == [(3, 6), (4, 6), (5, 6), (6, 6)]


def test_a_line_that_a_crash_cut_short_is_dropped(out: Path) -> None:
    first = study(out=out).cells[0].nicv
    whole = out.read_bytes()
    for cut in (1, 20, len(whole) - 30):
        out.write_bytes(whole[:-cut])
        again = study(out=out).cells[0].nicv
        assert again[0] == first[0] or cut > 20
        assert len(again) == out.read_bytes().count(b'"run"') == 2


def test_more_methods_budgets_and_runs_join_a_study(out: Path) -> None:
    first = study(out=out).cells[0].nicv
    found = study(out=out, runs=3, epsilons=[1, 2], methods=["fastlloyd:rounds=1", "fastlloyd"])
    assert [cell.nicv[:2] == first for cell in found.cells] == [False, True, False, False]
    assert {len(cell.nicv) for cell in found.cells} == {3}


OTHER: dict[str, dict[str, Any]] = {
    "k": {"k": 2},
    "delta": {"delta": 1e-7},
    "bounds": {"bounds": (-2, 2)},
    "sha256": {"rows": ROWS[1:]},
    "scale": {"scale": "bounds"},
    "public rows": {"public_rows": 601},
}


def test_a_study_of_other_conditions_does_not_go_on(out: Path) -> None:
    study(out=out)
    kept = out.read_bytes()
    for what, given in OTHER.items():
        with pytest.raises(InvalidInput, match=f"other conditions .*{what}"):
            study(out=out, **given)
        assert out.read_bytes() == kept


def test_a_file_that_is_no_study_is_left_as_it_is(out: Path) -> None:
    for content in (b"my notes", b"my notes\n", b'{"format": "other"}\n'):
        out.write_bytes(content)
        with pytest.raises(InvalidInput, match="not a cloister study"):
            study(out=out)
        assert out.read_bytes() == content


def test_a_study_that_somebody_edited_is_damaged(out: Path) -> None:
    study(out=out)
    out.write_bytes(out.read_bytes().replace(b'"run": 1', b'"ran": 1'))
    with pytest.raises(Damaged, match="cannot be read"):
        study(out=out)


def test_two_processes_do_not_write_one_study(out: Path) -> None:
    import fcntl

    with out.open("ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(InvalidInput, match="in use by another process"):
            study(out=out)


@pytest.mark.thorough
def test_a_worker_that_dies_loses_no_finished_run(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study(out=out)
    monkeypatch.setattr(comparison, "_hold", _dies)
    with pytest.raises(CloisterError, match="fewer workers"):
        study(out=out, runs=5, workers=2)
    monkeypatch.undo()
    assert len(study(out=out).cells[0].nicv) == 2


def _dies(*_: Any) -> None:
    os._exit(9)
