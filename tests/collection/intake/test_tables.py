"""Reports as a table: what stands in it is what was sent."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cloister.collection.intake.tables import write_table
from cloister.collection.plan.transcript import Transcript
from cloister.collection.shuffler.shuffler import shuffle
from cloister.collection.wire.answers import layout_of
from cloister.core.errors import InvalidInput
from tests.collection.rounds_fakes import advanced, answered, planned, prepared
from tests.collection.server.collected import encoded, small_plan as local_plan, written
from tests.collection.shuffled_plans import FEW, folder_of, sent, small_plan
from tests.in_process import ran

pytest.importorskip("pyarrow")

import pyarrow.parquet as pq

N = 300


def test_every_answer_stands_in_its_row_and_nothing_where_nothing_was_asked(tmp_path: Path) -> None:
    plan = local_plan("kept", N)
    theirs = encoded(plan, range(N))
    path = written(tmp_path / "a.reports", theirs)
    done = write_table(Transcript(plan), path, tmp_path / "a.parquet")
    table = pq.read_table(tmp_path / "a.parquet")
    assert (done.round, done.rows, done.intake.lines()) == (1, N, [])
    assert (tmp_path / "a.parquet").stat().st_mode & 0o777 == 0o600
    assert table["user"].to_pylist() == list(range(N))
    asked = layout_of(plan.round()).asked_masks(theirs.users)
    for j, (report, who) in enumerate(zip(theirs.reports, asked, strict=True)):
        found = table[f"q{j}.answers"].to_pylist()
        assert [value is not None for value in found] == who.tolist()
        assert [value for value in found if value is not None] == report.columns()["answers"].tolist()


def test_messages_have_their_sender_before_the_shuffle_and_none_after_it(tmp_path: Path) -> None:
    plan = small_plan(rows=FEW)
    theirs = sent(plan)
    shuffle(plan, folder_of(tmp_path / "reports", theirs), tmp_path / "shuffled")
    tables = []
    for name in ("reports", "shuffled"):
        done = write_table(Transcript(plan), tmp_path / name, tmp_path / f"{name}.parquet")
        assert (done.rows, done.intake.lines()) == (FEW, [])
        tables.append(pq.read_table(tmp_path / f"{name}.parquet"))
    before, after = tables
    assert sorted(before["sender"].to_pylist()) == list(range(FEW))
    assert after["sender"].null_count == FEW
    names = [name for name in before.column_names if name != "sender"]
    rows = [sorted(map(json.dumps, table.select(names).to_pylist())) for table in tables]
    assert rows[0] == rows[1]


def test_what_is_no_report_is_said_and_the_rest_is_shown(tmp_path: Path) -> None:
    plan = local_plan("tallied", N)
    plan.write(tmp_path / "plan", "")
    written(tmp_path / "r" / "a.reports", encoded(plan, range(N)))
    (tmp_path / "r" / "b.reports").write_bytes(b"text")
    done = ran("reports plan r --out t.parquet --json", tmp_path)
    said = json.loads(done.stdout)
    assert (said["round"], said["rows"], said["refused"]["no reports"]) == (1, N, 1)
    assert done.stderr.count("refused 1 files") == 1


def test_reports_of_a_round_that_is_closed_are_shown_too(tmp_path: Path) -> None:
    prepared(tmp_path, planned())
    path, count = answered(tmp_path)
    assert path is not None
    advanced(tmp_path)
    standing, target = Transcript.read(tmp_path / "plan"), tmp_path / "t.parquet"
    assert write_table(standing, path, target, 1).rows == count
    late = write_table(standing, path, target)
    assert (late.round, late.rows, late.intake.files, late.intake.earlier) == (2, 0, 0, 1)


def test_a_table_takes_the_place_of_no_report_and_of_no_plan(tmp_path: Path) -> None:
    plan = local_plan("tallied", N)
    plan.write(tmp_path / "plan", "")
    path = written(tmp_path / "own.parquet", encoded(plan, range(N)))
    before, said = path.read_bytes(), (tmp_path / "plan" / "plan.json").read_text()
    for target in (path, tmp_path / "plan" / "plan.json", tmp_path / "own.reports"):
        with pytest.raises(InvalidInput, match="give another Parquet file"):
            write_table(Transcript(plan), path, target)
    assert (path.read_bytes(), (tmp_path / "plan" / "plan.json").read_text()) == (before, said)
