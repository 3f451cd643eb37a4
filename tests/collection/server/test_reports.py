"""Reports from files: what counts, what is refused, and that order and partition do not matter."""

from __future__ import annotations

import types
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq
import pytest

from cloister.collection.intake.sent import TRIES
from cloister.collection.plan.plan import CollectionPlan
from cloister.collection.server import reports
from cloister.collection.server.reports import Collected
from cloister.collection.wire import files as report_files, reports as wire
from cloister.collection.wire.answers import AnswerLayout
from cloister.collection.wire.listing import Unusable
from cloister.core.encoding import absorb
from cloister.core.errors import InvalidInput, Refused
from cloister.core.questions import Round
from cloister.core.types import AnyArray, Ids
from tests.collection.server.collected import KINDS, NOISE, encoded, gathered, same, small_plan, tables

N = 400


@pytest.fixture(scope="module", params=list(KINDS))
def plan(request: pytest.FixtureRequest) -> CollectionPlan:
    return small_plan(request.param, N)


@pytest.fixture(scope="module")
def round_(plan: CollectionPlan) -> Round[Any]:
    return plan.round()


@pytest.fixture(scope="module")
def sent(plan: CollectionPlan, round_: Round[Any]) -> pa.RecordBatch:
    return batch_of(plan, round_, 2)


def batch_of(plan: CollectionPlan, round: Round[Any], seed: int) -> pa.RecordBatch:
    done = encoded(plan, np.arange(N, dtype=np.uint64), seed)
    return wire.to_batch(done.reports, done.users, wire.schema(round, plan.hash))


def write(path: Path, *batches: pa.RecordBatch, schema: pa.Schema | None = None) -> Path:
    if path.suffix == ".parquet":
        with pq.ParquetWriter(path, schema or batches[0].schema, write_page_checksum=True) as file:
            for batch in batches:
                file.write_batch(batch)
    else:
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, schema or batches[0].schema) as writer:
            for batch in batches:
                writer.write_batch(batch)
    return path


def expected(round: Round[Any], batch: pa.RecordBatch) -> list[Any]:
    return tables(round, absorb(round, wire.from_batch(batch, round)))


def changed(batch: pa.RecordBatch, column: int, values: pa.Array) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(
        [values if i == column else c for i, c in enumerate(batch.columns)], schema=batch.schema
    )


def users_of(batch: pa.RecordBatch, users: Any) -> pa.RecordBatch:
    return changed(batch, 0, pa.array(users, pa.uint64()))


def test_the_answers_are_those_of_all_reports(
    plan: CollectionPlan, round_: Round[Any], sent: pa.RecordBatch, tmp_path: Path
) -> None:
    told = list[int]()
    found, intake = gathered(plan, write(tmp_path / "a.parquet", sent), progress=told.append)
    assert same(found, expected(round_, sent))
    assert (intake.accepted, intake.files, intake.lines(), sum(told)) == (N, 1, [], N)
    who = wire.asked(round_, np.arange(N, dtype=np.uint64))
    assert intake.questions == [int(w.sum()) for w in who]


@pytest.mark.parametrize("seed", range(6))
def test_order_and_partition_do_not_matter(
    plan: CollectionPlan,
    round_: Round[Any],
    sent: pa.RecordBatch,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    seed: int,
) -> None:
    rng = np.random.default_rng(seed)
    monkeypatch.setattr(reports, "PIECE", int(rng.integers(1, 300)))
    monkeypatch.setattr(report_files, "BATCH", int(rng.integers(1, 300)))
    monkeypatch.setattr(report_files, "HELD", int(rng.choice([0, 2**25])))  # all files are read twice, or none
    mixed = sent.take(pa.array(rng.permutation(N)))
    cuts = np.sort(rng.integers(0, N, 7))
    for i, (low, high) in enumerate(zip([0, *cuts], [*cuts, N], strict=True)):
        write(tmp_path / f"{rng.integers(10**9)}.{('parquet', 'arrow')[i % 2]}", mixed.slice(low, high - low))
    found, intake = gathered(plan, tmp_path)
    assert same(found, expected(round_, sent))
    assert (intake.accepted, intake.lines()) == (N, [])


def test_a_folder_has_finished_files_and_others(
    plan: CollectionPlan, round_: Round[Any], sent: pa.RecordBatch, tmp_path: Path
) -> None:
    write(tmp_path / "a.parquet", sent.slice(0, 100))
    write(tmp_path / ".b.parquet", sent.slice(100, 100))
    (tmp_path / "c.parquet.tmp").write_bytes(b"x")
    (tmp_path / "README.txt").write_text("hello")
    (tmp_path / "more.parquet").mkdir()
    _, intake = gathered(plan, [tmp_path, tmp_path / "a.parquet"])
    assert (intake.accepted, intake.files, intake.others) == (100, 1, 2)
    assert intake.lines() == ["left alone 2 files of another kind"]


def test_files_of_no_use_are_counted_and_the_others_count(
    plan: CollectionPlan, round_: Round[Any], sent: pa.RecordBatch, tmp_path: Path
) -> None:
    good = write(tmp_path / "e.parquet", sent)
    schema = sent.schema
    other = schema.with_metadata({**schema.metadata, b"cloister.plan": b"00" * 32})
    write(tmp_path / "a.parquet", sent.replace_schema_metadata(other.metadata), schema=other)
    write(tmp_path / "b.arrow", sent.replace_schema_metadata(None))
    fewer = sent.drop_columns([schema.names[-1]])
    write(tmp_path / "c.arrow", fewer)
    (tmp_path / "d.parquet").write_bytes(good.read_bytes()[:-1])
    (tmp_path / "f.arrow").write_bytes(b"")
    (tmp_path / "g.parquet").write_bytes(b"PAR1PAR1")
    (tmp_path / "h.arrow").write_bytes(good.read_bytes())
    found, intake = gathered(plan, [tmp_path])
    assert same(found, expected(round_, sent))
    assert intake.refused == {"another plan": 1, "no reports": 2, "damaged": 4}
    assert intake.lines() == [
        f"refused 1 files or batches of reports that answer another plan (the first: '{tmp_path / 'a.parquet'}')",
        f"refused 2 files that hold no reports of this form (the first: '{tmp_path / 'b.arrow'}')",
        f"refused 4 files or batches that are damaged or cut short (the first: '{tmp_path / 'd.parquet'}')",
    ]
    for name in "abcdfgh":
        (path,) = tmp_path.glob(f"{name}.*")
        with pytest.raises(Refused) as error:
            gathered(plan, path, strict=True)
        assert str(path) in str(error.value)
        assert "\n" not in str(error.value)
        with pytest.raises(InvalidInput, match="no report can be used; refused 1 files"):
            gathered(plan, path)


def malformed(sent: pa.RecordBatch, bad: Sequence[int] = (7, 8, 300)) -> dict[str, tuple[pa.RecordBatch, int]]:
    """Batches with refused rows, by reason."""
    users = list(range(N))
    beyond = [N + 2**62 if u in bad else u for u in users]
    nobody = [None if u in bad else u for u in users]
    stamps = sent.schema.names.index("q0.question"), sent.schema.names.index("q1.question")
    first = sent.column(stamps[0]).to_pylist()
    emptied = pa.array([None if u in bad else v for u, v in enumerate(first)], pa.uint64())
    filled = pa.array([1 if u in bad else v for u, v in enumerate(first)], pa.uint64())
    wrong = sent
    for at, name in enumerate(sent.schema.names):
        if name.endswith("question"):
            given = sent.column(at).to_pylist()
            wrong = changed(
                wrong, at, pa.array([v and (v ^ 1 if u in bad else v) for u, v in enumerate(given)], pa.uint64())
            )
    not_asked = sum(first[u] is not None for u in bad), sum(first[u] is None for u in bad)
    return {
        "out of range": (users_of(sent, beyond), len(bad)),
        "out of range ": (users_of(_nullable(sent), nobody), len(bad)),
        "not as asked": (changed(sent, stamps[0], emptied), not_asked[0]),
        "not as asked ": (changed(sent, stamps[0], filled), not_asked[1]),
        "impossible": (wrong, len(bad)),
    }


def _nullable(batch: pa.RecordBatch) -> pa.RecordBatch:
    schema = pa.schema([f.with_nullable(True) for f in batch.schema], metadata=batch.schema.metadata)
    return pa.RecordBatch.from_arrays(batch.columns, schema=schema)


def test_rows_that_nobody_sends_are_counted_and_the_others_count(
    plan: CollectionPlan, round_: Round[Any], sent: pa.RecordBatch, tmp_path: Path
) -> None:
    for reason, (batch, count) in malformed(sent).items():
        path = write(tmp_path / "a.parquet", batch)
        found, intake = gathered(plan, path)
        assert dict(intake.refused) == ({reason.strip(): count} if count else {}), reason
        assert intake.accepted == N - count
        if reason.startswith("out"):
            kept = sent.filter(pa.array([u not in (7, 8, 300) for u in range(N)]))
            assert same(found, expected(round_, kept))
        if count:
            with pytest.raises(Refused, match=r"'.*a\.parquet' has reports"):
                gathered(plan, path, strict=True)


@pytest.mark.parametrize(("number", "counts"), [(N - 1, 1), (N, 0), (N + 1, 0)])
def test_numbers_are_below_how_many_users_there_are(
    plan: CollectionPlan, sent: pa.RecordBatch, number: int, counts: int, tmp_path: Path
) -> None:
    """Whatever such a user is asked, her report has a report's form: her number alone is refused."""
    form = next(i for i in range(1, N - 1) if np.array_equal(*_asked(plan, [i, number])))
    batches = sent.slice(0, 1), users_of(sent.slice(form, 1), [number])
    _, intake = gathered(plan, write(tmp_path / "a.parquet", *batches))
    assert (intake.accepted, dict(intake.refused)) == (1 + counts, {} if counts else {"out of range": 1})


def _asked(plan: CollectionPlan, users: Sequence[int]) -> AnyArray:
    """Whether each of two users (2, questions) is asked each question."""
    return np.stack(wire.asked(plan.round(), np.array(users, np.uint64)), axis=1)


def test_a_refused_report_does_not_use_a_number_up(
    plan: CollectionPlan, round_: Round[Any], sent: pa.RecordBatch, tmp_path: Path
) -> None:
    """Also where the good one follows within one piece."""
    for reason, (batch, count) in malformed(sent).items():
        if not reason.startswith("out"):
            write(tmp_path / "a.parquet", batch)
            write(tmp_path / "b.parquet", sent)
            found, intake = gathered(plan, tmp_path)
            assert same(found, expected(round_, sent))
            assert (intake.accepted, intake.refused[reason.strip()], intake.refused["duplicate"]) == (
                N,
                count,
                N - count,
            )


@pytest.mark.parametrize("compression", [None, "zstd", "lz4"])
def test_an_arrow_file_that_does_not_fit_in_memory_is_refused_before_it_is_unpacked(
    plan: CollectionPlan,
    round_: Round[Any],
    sent: pa.RecordBatch,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    compression: Any,
) -> None:
    """Zeros are compressed fifty thousand times: one such file ended the server's process."""
    options = pyarrow.ipc.IpcWriteOptions(compression=compression)
    for name, batches in (
        ("a", [sent.slice(0, 200), sent.slice(200)]),
        ("b", [pa.Table.from_batches([sent] * 30).combine_chunks().to_batches()[0]]),
    ):
        with (
            pa.OSFile(str(tmp_path / f"{name}.arrow"), "wb") as sink,
            pa.ipc.new_file(sink, sent.schema, options=options) as writer,
        ):
            for batch in batches:
                writer.write_batch(batch)
    monkeypatch.setattr(report_files, "MAX_BATCH_BYTES", 2 * sent.nbytes)
    monkeypatch.setattr(pyarrow.ipc, "open_file", _whole_files_only(pyarrow.ipc.open_file))
    found, intake = gathered(plan, tmp_path)
    assert same(found, expected(round_, sent))
    assert (intake.accepted, intake.refused) == (N, {"damaged": 1})


def test_a_row_group_that_does_not_fit_in_memory_is_refused_before_it_is_unpacked(
    plan: CollectionPlan, round_: Round[Any], sent: pa.RecordBatch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its pages can be as large as it is, and of zeros a hundred thousand times smaller in the file."""
    many = pa.Table.from_batches([sent] * 30)
    pq.write_table(many, tmp_path / "a.parquet", use_dictionary=False, data_page_size=2**30, compression="zstd")
    pq.write_table(many, tmp_path / "b.parquet", row_group_size=N)
    group = pq.read_metadata(tmp_path / "a.parquet").row_group(0)
    most = sum(group.column(j).total_uncompressed_size for j in range(group.num_columns)) // 2
    monkeypatch.setattr(report_files, "MAX_GROUP_BYTES", most)
    found, intake = gathered(plan, tmp_path)
    assert same(found, expected(round_, sent))
    assert (intake.accepted, intake.refused) == (N, {"damaged": 1, "duplicate": 29 * N})


def _whole_files_only(true: Any) -> Any:
    """Opened for its schema and length, but no batch is taken from it."""

    def opened(*given: Any, **more: Any) -> Any:
        reader = true(*given, **more)
        return types.SimpleNamespace(schema=reader.schema, num_record_batches=reader.num_record_batches)

    return opened


def test_an_arrow_file_with_any_byte_changed_never_ends_the_process(
    plan: CollectionPlan, round_: Round[Any], sent: pa.RecordBatch, tmp_path: Path
) -> None:
    with (
        pa.OSFile(str(tmp_path / "true.arrow"), "wb") as sink,
        pa.ipc.new_file(sink, sent.schema, options=pyarrow.ipc.IpcWriteOptions(compression="zstd")) as writer,
    ):
        writer.write_batch(sent.slice(0, 40))
    content, g, path = (tmp_path / "true.arrow").read_bytes(), np.random.default_rng(3), tmp_path / "x" / "a.arrow"
    path.parent.mkdir()
    schema = wire.schema(round_, plan.hash)
    for position in g.integers(0, len(content), 400).tolist():
        path.write_bytes(content[:position] + bytes([int(g.integers(0, 256))]) + content[position + 1 :])
        try:
            rows = sum(batch.num_rows for batch in report_files.batches(str(path), schema))
        except Unusable:
            continue
        assert rows <= N


def test_floods_of_reports_that_nobody_sends_take_few_looks(
    plan: CollectionPlan, round_: Round[Any], sent: pa.RecordBatch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file of some kilobytes can hold a million of them: of one number, or one of each."""
    looks, true = [0], AnswerLayout.reports

    def counted(layout: AnswerLayout, users: Ids, answers: AnyArray) -> tuple[Any, ...]:
        looks[0] += 1
        return true(layout, users, answers)

    monkeypatch.setattr(AnswerLayout, "reports", counted)
    (wrong, _) = malformed(sent, list(range(N)))["impossible"]
    one = wrong.slice(7, 1)
    write(tmp_path / "a.parquet", *[one] * 2000)
    write(tmp_path / "b.parquet", sent)
    _, intake = gathered(plan, tmp_path)
    assert looks[0] <= 3 * TRIES
    assert intake.accepted == N - 1  # who can send so many in her place could send one that counts
    assert intake.refused == {"impossible": 2001}
    looks[0] = 0
    write(tmp_path / "a.parquet", wrong)
    _, intake = gathered(plan, tmp_path)
    assert looks[0] <= 5
    assert (intake.accepted, intake.refused) == (N, {"impossible": N})


def test_a_user_counts_once(plan: CollectionPlan, round_: Round[Any], sent: pa.RecordBatch, tmp_path: Path) -> None:
    write(tmp_path / "b.parquet", sent.slice(50), sent.slice(0, 60))
    write(tmp_path / "a.arrow", sent.slice(0, 300), sent.slice(200))
    found, intake = gathered(plan, tmp_path)
    assert same(found, expected(round_, sent))
    assert (intake.accepted, dict(intake.refused)) == (N, {"duplicate": 350 + 60 + 100})
    with pytest.raises(Refused, match=r"a\.arrow' has reports of users who have reported already"):
        gathered(plan, tmp_path, strict=True)


def test_of_two_answers_the_one_in_the_first_file_by_name_counts(
    plan: CollectionPlan, round_: Round[Any], sent: pa.RecordBatch, tmp_path: Path
) -> None:
    other = batch_of(plan, round_, 9)
    one, two = write(tmp_path / "a.parquet", other), write(tmp_path / "b.parquet", sent)
    for order in ([one, two], [two, one], tmp_path, f"{tmp_path}/*"):
        assert same(gathered(plan, order)[0], expected(round_, other))


def test_a_file_that_changes_while_it_is_read_is_no_result(
    plan: CollectionPlan, round_: Round[Any], sent: pa.RecordBatch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(report_files, "HELD", 0)
    monkeypatch.setattr(reports, "PIECE", 10)
    monkeypatch.setattr(report_files, "BATCH", 10)
    path = write(tmp_path / "a.parquet", sent)
    with pytest.raises(InvalidInput, match="changed while it was read: nothing was counted"):
        gathered(plan, path, progress=lambda n: path.touch())
    shorter = path.read_bytes()[:300]
    with pytest.raises(InvalidInput, match="changed while it was read: nothing was counted"):
        gathered(plan, path, progress=lambda n: path.write_bytes(shorter) and None)


def test_there_must_be_files(plan: CollectionPlan, tmp_path: Path) -> None:
    for path, said in (
        (tmp_path, "there are no files of reports"),
        (f"{tmp_path}/*.arrow", "there are no files of reports"),
        (tmp_path / "a.parquet", "cannot be opened"),
        ([], "there are no files"),
    ):
        with pytest.raises(InvalidInput, match=said):
            Collected(path, plan.hash, plan.rows)


def test_a_plan_for_more_users_than_memory_is_refused_in_words(
    plan: CollectionPlan, round_: Round[Any], sent: pa.RecordBatch, tmp_path: Path
) -> None:
    write(tmp_path / "a.parquet", sent)
    with pytest.raises(InvalidInput, match="more memory than there is"):
        Collected(tmp_path, plan.hash, 2**62).gather(round_, NOISE)
