"""Reports in files and streams count the same however they are cut; what is mutated is counted, and ends nothing."""

from __future__ import annotations

import io
import os
from pathlib import Path

import numpy as np
import pytest

from cloister.collection.plan.plan import CollectionPlan
from cloister.collection.server import reports
from cloister.collection.wire import batches
from cloister.collection.wire.batches import BatchForm
from cloister.core.errors import InvalidInput
from tests.collection.server.collected import encoded, gathered, same, small_plan, written

N = 400


@pytest.fixture(scope="module")
def tallied() -> CollectionPlan:
    return small_plan("tallied", N)


def test_reports_batches_files_and_streams_cut_anyhow_give_the_same(
    tallied: CollectionPlan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With doubles among them, in files, as bytes, and together."""
    monkeypatch.setattr(reports, "PIECE", 40)
    monkeypatch.setattr(batches, "CHUNK", 100)
    whole, early = encoded(tallied, np.arange(N)), encoded(tallied, np.arange(50))
    written(tmp_path / "a.reports", early)
    written(tmp_path / "b.reports", whole)
    single = [whole.form.report(int(u), a.tobytes()) for u, a in zip(whole.users, whole.answers, strict=True)]
    rest = whole.form.batch(whole.users[300:], whole.answers[300:])
    everything = early.to_bytes() + whole.to_bytes()
    found = gathered(tallied, whole.to_bytes())[0]
    for given, files in (
        (tmp_path, 2),
        ([tmp_path / "a.reports", *single[:300], rest], 1),
        (everything, 0),
        (iter([bytearray(everything), io.BytesIO(b"")]), 0),
    ):
        again, intake = gathered(tallied, given)
        assert same(found, again)
        assert (intake.accepted, intake.refused, intake.files) == (N, {"duplicate": 50}, files)
    with pytest.raises(InvalidInput, match="reports are paths, then bytes or open binary files: not a PosixPath"):
        gathered(tallied, [single[0], tmp_path])


def test_a_file_that_grows_counts_as_far_as_it_is_whole_and_what_is_left_is_said(
    tallied: CollectionPlan, tmp_path: Path
) -> None:
    whole, path = encoded(tallied, np.arange(N)), tmp_path / "round-001-000000.reports"
    first, last = (whole.form.batch(whole.users[s], whole.answers[s]) for s in (slice(0, 300), slice(300, N)))
    path.write_bytes(first + last[:-7])
    _, intake = gathered(tallied, tmp_path)
    assert intake.accepted == 300
    assert intake.lines() == [f"skipped {len(last) - 7:,} bytes at the ends of files: no complete batch (yet)"]

    def grow(read: int) -> None:
        with path.open("ab") as file:
            file.write(last[-7:])

    _, intake = gathered(tallied, tmp_path, progress=grow)
    assert intake.accepted == 300, "what is whole when a file is begun counts"
    assert gathered(tallied, tmp_path)[1].accepted == N
    assert gathered(tallied, (first + last)[:-1])[1].refused == {"damaged": 1}, "bytes in memory do not grow"


def test_a_flipped_bit_costs_its_batch_and_bytes_of_another_kind_the_rest_of_their_file(
    tallied: CollectionPlan, tmp_path: Path
) -> None:
    whole = encoded(tallied, np.arange(N))
    pieces = [whole.form.batch(whole.users[i : i + 50], whole.answers[i : i + 50]) for i in range(0, N, 50)]
    bad = bytearray(pieces[1])
    bad[30] ^= 4
    other = BatchForm("f" * 64, 1, whole.form.width).batch(whole.users[:5], whole.answers[:5])
    contents = {
        "damaged": pieces[0] + bad + pieces[2],
        "another plan": pieces[3] + other + pieces[4],
        "no reports": b"hello",
        "then nothing known": pieces[5] + b"\0" + pieces[6],
    }
    for name, content in contents.items():
        (tmp_path / f"{name}.reports").write_bytes(content)
    found, intake = gathered(tallied, tmp_path)
    assert same(found, gathered(tallied, b"".join(pieces[i] for i in (0, 2, 3, 5)))[0])
    assert (intake.accepted, intake.refused) == (50 * 4, {"damaged": 2, "another plan": 1, "no reports": 1})
    assert intake.first == {reason: str(tmp_path / f"{reason}.reports") for reason in intake.refused}


def test_a_file_that_is_cut_while_it_is_read_is_no_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At the border of a batch, too, where what is left looks whole."""
    plan, path, each = small_plan("tallied", 20_000), tmp_path / "a.reports", 4000  # beyond what an open file buffers
    whole = encoded(plan, np.arange(20_000))
    pieces = [whole.form.batch(whole.users[i : i + each], whole.answers[i : i + each]) for i in range(0, 20_000, each)]
    monkeypatch.setattr(batches, "CHUNK", len(pieces[0]))
    monkeypatch.setattr(reports, "PIECE", each)
    path.write_bytes(b"".join(pieces))
    with pytest.raises(InvalidInput, match="changed while it was read"):
        gathered(plan, path, progress=lambda n: os.truncate(path, 2 * len(pieces[0])))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with names")
def test_a_pipe_by_name_is_refused_before_anybody_waits_for_it(tallied: CollectionPlan, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.reports")
    with pytest.raises(InvalidInput, match="is not a regular file: give -"):
        gathered(tallied, tmp_path / "a.reports")
