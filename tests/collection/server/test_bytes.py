"""Reports in files and streams count the same however they are cut; what is mutated is counted, and ends nothing."""

from __future__ import annotations

import io
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from cloister.collection.plan.plan import CollectionPlan
from cloister.collection.server import reports
from cloister.collection.server.aggregator import decode
from cloister.collection.wire import batches
from cloister.collection.wire.batches import BatchForm
from cloister.core.errors import InvalidInput, Refused
from tests.collection.server.collected import KINDS, encoded, gathered, same, small_plan, written

N = 400


@pytest.fixture(scope="module", params=list(KINDS))
def plan(request: pytest.FixtureRequest) -> CollectionPlan:
    return small_plan(request.param, N)


@pytest.fixture(scope="module")
def tallied() -> CollectionPlan:
    return small_plan("tallied", N)


@pytest.mark.parametrize("seed", range(8))
def test_files_and_streams_cut_anyhow_give_the_same_totals_and_refusals(
    plan: CollectionPlan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """With doubles among them."""
    rng = np.random.default_rng(seed)
    monkeypatch.setattr(reports, "PIECE", int(rng.integers(1, 300)))
    monkeypatch.setattr(batches, "CHUNK", int(rng.integers(1, 200)))
    for name in "abcd":
        some = encoded(plan, rng.choice(N, rng.integers(1, N), replace=False), int(rng.integers(3)))
        for form, cuts in (("whole", []), ("cut", np.sort(rng.integers(0, len(some.users), 3)))):
            (tmp_path / form).mkdir(exist_ok=True)
            pieces = zip(np.split(some.users, cuts), np.split(some.answers, cuts), strict=True)
            (tmp_path / form / f"{name}.reports").write_bytes(b"".join(some.form.batch(*piece) for piece in pieces))
    found, intake = gathered(plan, tmp_path / "whole")
    everything = b"".join(path.read_bytes() for path in sorted((tmp_path / "cut").iterdir()))
    ways = (tmp_path / "cut", everything, io.BytesIO(everything), [everything], iter([bytearray(everything), b""]))
    for given in ways:
        again, other = gathered(plan, given)
        assert same(found, again)
        assert (other.accepted, other.questions, other.refused) == (intake.accepted, intake.questions, intake.refused)


def test_single_reports_and_batches_and_files_go_together(tallied: CollectionPlan, tmp_path: Path) -> None:
    whole = encoded(tallied, np.arange(N))
    written(tmp_path / "a.reports", encoded(tallied, np.arange(50)))
    single = [whole.form.report(int(u), a.tobytes()) for u, a in zip(whole.users, whole.answers, strict=True)]
    found, intake = gathered(
        tallied, [tmp_path, *single[50:300], whole.form.batch(whole.users[300:], whole.answers[300:])]
    )
    assert same(found, gathered(tallied, whole.to_bytes())[0])
    assert (intake.accepted, intake.files, intake.lines()) == (N, 1, [])
    with pytest.raises(InvalidInput, match="first of all, paths: not a PosixPath"):
        gathered(tallied, [single[0], tmp_path])
    with pytest.raises(InvalidInput, match="not a StringIO"):
        gathered(tallied, io.StringIO("text"))


def test_ten_thousand_mutated_reports_are_all_counted_by_reason(tallied: CollectionPlan) -> None:
    whole, rng = encoded(tallied, np.arange(N)), np.random.default_rng(3)
    good = [whole.form.report(int(u), a.tobytes()) for u, a in zip(whole.users, whole.answers, strict=True)]

    def mutated() -> Iterator[bytes]:
        for i in range(10_000):
            data = bytearray(good[int(rng.integers(N))])
            at = int(rng.integers(len(data)))
            if i % 2:
                data[at] ^= int(rng.integers(1, 256))
            else:
                del data[max(1, at) :]
            yield bytes(data)

    _, intake = gathered(tallied, mutated())
    assert intake.accepted + intake.refused.total() == 10_000
    assert set(intake.refused) == {"another plan", "no reports", "damaged", "out of range", "impossible", "duplicate"}
    assert intake.refused["damaged"] >= 5_000
    assert 0 < intake.accepted < 1_000
    assert len(intake.lines()) == 6


def test_ten_thousand_mutated_batches_never_count_and_never_crash(tallied: CollectionPlan) -> None:
    rng = np.random.default_rng(4)
    some = encoded(tallied, np.arange(20))
    rest = encoded(tallied, np.arange(20, N))
    whole = some.to_bytes()

    def mutated() -> Iterator[bytes]:
        for _ in range(10_000):
            data = bytearray(whole)
            for _ in range(int(rng.integers(1, 4))):
                at = int(rng.integers(len(data)))
                if rng.integers(2):
                    data[at] ^= int(rng.integers(1, 256))
                else:
                    data[at : at + int(rng.integers(4))] = rng.bytes(int(rng.integers(4)))
            if bytes(data) != whole:
                yield bytes(data)
        yield rest.to_bytes()

    found, intake = gathered(tallied, mutated())
    assert same(found, gathered(tallied, rest.to_bytes())[0])
    assert intake.accepted == N - 20
    assert intake.refused.total() > 9_000
    assert set(intake.refused) == {"another plan", "no reports", "damaged"}


def test_a_file_that_grows_counts_as_far_as_it_is_whole_and_what_is_left_is_said(
    tallied: CollectionPlan, tmp_path: Path
) -> None:
    whole, path = encoded(tallied, np.arange(N)), tmp_path / "round-001-000000.reports"
    first, last = (whole.form.batch(whole.users[s], whole.answers[s]) for s in (slice(0, 300), slice(300, N)))
    path.write_bytes(first + last[:-7])
    _, intake = gathered(tallied, tmp_path)
    assert (intake.accepted, intake.refused) == (300, Counter())
    left = f"left alone {len(last) - 7:,} bytes at the ends of files: no whole batch, or not yet"
    assert intake.lines() == [left]
    gathered(tallied, tmp_path, strict=True)

    def grow(read: int) -> None:
        with path.open("ab") as file:
            file.write(last[-7:])

    _, intake = gathered(tallied, tmp_path, progress=grow)
    assert intake.accepted == 300, "what is whole when a file is begun counts"
    assert gathered(tallied, tmp_path)[1].accepted == N
    assert gathered(tallied, (first + last)[:-1])[1].refused == Counter(damaged=1), "bytes in memory do not grow"


def test_a_flipped_bit_costs_its_batch_and_bytes_of_another_kind_the_rest_of_their_file(
    tallied: CollectionPlan, tmp_path: Path
) -> None:
    whole, paths = encoded(tallied, np.arange(N)), [tmp_path / f"{i}.reports" for i in range(4)]
    pieces = [whole.form.batch(whole.users[i : i + 50], whole.answers[i : i + 50]) for i in range(0, N, 50)]
    bad = bytearray(pieces[1])
    bad[30] ^= 4
    paths[0].write_bytes(pieces[0] + bytes(bad) + pieces[2])
    other = BatchForm("f" * 64, 1, whole.form.width).batch(whole.users[:5], whole.answers[:5])
    paths[1].write_bytes(pieces[3] + other + pieces[4])
    paths[2].write_bytes(b"hello")
    paths[3].write_bytes(pieces[5] + b"\0" + pieces[6])
    _, intake = gathered(tallied, tmp_path)
    assert intake.accepted == 50 * 4
    assert intake.refused == {"damaged": 2, "another plan": 1, "no reports": 1}
    assert intake.first == {"damaged": str(paths[0]), "another plan": str(paths[1]), "no reports": str(paths[2])}
    with pytest.raises(Refused, match=r"0\.reports' is one of the files or batches that are damaged"):
        gathered(tallied, tmp_path, strict=True)


def test_batches_of_earlier_rounds_are_skipped_and_said(tallied: CollectionPlan, tmp_path: Path) -> None:
    whole, earlier = encoded(tallied, np.arange(N)), "e" * 64
    (tmp_path / "round-001-000000.reports").write_bytes(
        BatchForm(earlier, 1, 3).batch(whole.users, np.zeros((N, 3), "u1"))
    )
    (tmp_path / "round-002-000000.reports").write_bytes(whole.to_bytes())
    _, intake = gathered(tallied, tmp_path, earlier=[earlier], strict=True)
    assert (intake.accepted, intake.files, intake.earlier) == (N, 1, 1)
    assert intake.lines() == ["left alone 1 files of rounds that are closed"]


def test_decode_takes_bytes(tallied: CollectionPlan) -> None:
    sent = encoded(tallied, np.arange(N)).to_bytes()
    done, other = decode(tallied, sent), decode(tallied, iter([sent[:0], io.BytesIO(sent)]))
    assert np.array_equal(done.result.centers, other.result.centers)
    assert done.result.details["reports"]["accepted"] == N
    with pytest.raises(InvalidInput, match="no report can be used"):
        decode(tallied, b"")


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
    with pytest.raises(InvalidInput, match="is no file: give -"):
        gathered(tallied, tmp_path / "a.reports")
