"""Reports on their way: what is sent comes back, what nobody sends is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq
import pytest

from cloister.collection.wire import reports as wire
from cloister.collection.wire.columns import plan_of, report_types
from cloister.core.budget import Budget
from cloister.core.clustering import Problem
from cloister.core.domains import Ball
from cloister.core.encoding import encode_rows
from cloister.core.errors import InvalidInput, Refused
from cloister.core.questions import Round
from cloister.core.randomness import NoiseRng, PublicRng
from cloister.core.registry.compose import compose
from cloister.core.registry.registry import registry
from cloister.core.session import next_round

N, D = 500, 6


def opened(**components: str) -> Round[Any]:
    problem = Problem(3, Ball((0.0,) * D, 1.0), N, Budget("pure", 2.0))
    method = compose(registry(), "Method", "one-round", components, {}).value
    return next_round(method, problem, PublicRng.from_seed(1))


@pytest.fixture(
    params=["optimised-local-hashing", "hadamard-response", "optimised-unary", "subset-selection", "explicit-histogram"]
)
def round_(request: pytest.FixtureRequest) -> Round[Any]:
    vectors = "explicit-histogram-vector" if request.param == "explicit-histogram" else "hadamard-vector"
    return opened(counts=request.param, sums=vectors)


def encoded(round: Round[Any], users: Any) -> tuple[Any, ...]:
    rows = np.random.default_rng(2).normal(0, 0.3, (len(users), D))
    return encode_rows(round, rows, users, NoiseRng.for_tests(3))


def batch_of(round: Round[Any]) -> pa.RecordBatch:
    users = np.arange(N, dtype=np.uint64)
    return wire.to_batch(encoded(round, users), users, wire.schema(round, "ab" * 32))


def test_what_is_sent_comes_back(round_: Round[Any]) -> None:
    users = np.random.default_rng(0).permutation(N).astype(np.uint64)
    reports = encoded(round_, users)
    batch = wire.to_batch(reports, users, wire.schema(round_, "ab" * 32))
    assert batch.num_rows == N
    assert np.array_equal(batch.column(0).to_numpy(), users)
    for sent, back in zip(reports, wire.from_batch(batch, round_), strict=True):
        for name, values in sent.columns().items():
            assert np.array_equal(values, back.columns()[name])
            assert values.dtype == back.columns()[name].dtype
    for slice_ in (batch.slice(7, 100), batch.slice(3, 0), batch.slice(499)):
        assert sum(len(r.users) for r in wire.from_batch(slice_, round_)) == slice_.num_rows


def test_the_schema_says_what_the_contract_says() -> None:
    round = opened()
    found = wire.schema(round, "ab" * 32)
    assert found.metadata == {b"cloister.plan": b"ab" * 32, b"cloister.format": b"1"}
    assert found.field(0).equals(pa.field("user", pa.uint64(), nullable=False))
    assert found.names[1:3] == ["q0.question", "q0.answers"]
    assert found.field("q0.question").type == pa.uint64()
    assert found.field("q1.answers").type == pa.binary(1)
    assert plan_of(found) == "ab" * 32
    for metadata in (None, {}, {b"cloister.plan": b"x"}, {b"cloister.format": b"2", b"cloister.plan": b"x"}):
        assert plan_of(found.with_metadata(metadata)) is None


def test_who_is_not_asked_is_null(round_: Round[Any]) -> None:
    batch = batch_of(round_)
    for number, who in enumerate(wire.asked(round_, np.arange(N, dtype=np.uint64))):
        for name in (n for n in batch.schema.names if n.startswith(f"q{number}.")):
            assert np.array_equal(batch.column(name).is_valid().to_numpy(zero_copy_only=False), who)
    assert wire.sound(batch, round_).all()


def test_rows_of_two_bytes_are_little_endian() -> None:
    round = opened(sums="explicit-histogram-vector")
    users = np.arange(N, dtype=np.uint64)
    reports = encoded(round, users)
    batch = wire.to_batch(reports, users, wire.schema(round, "00"))
    last = reports[-1].columns()
    sent = batch.column(f"q{len(reports) - 1}.answers").drop_null()
    assert b"".join(sent.to_pylist()) == last["answers"].astype(last["answers"].dtype.newbyteorder("<")).tobytes()


@pytest.mark.parametrize("kind", ["parquet", "stream"])
def test_files_bring_back_what_was_written(round_: Round[Any], kind: str) -> None:
    batch, sink = batch_of(round_), pa.BufferOutputStream()
    if kind == "parquet":
        pq.write_table(pa.Table.from_batches([batch]), sink)
        (back,) = pq.read_table(pa.BufferReader(sink.getvalue())).combine_chunks().to_batches()
    else:
        with pa.ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch)
        (back,) = pa.ipc.open_stream(sink.getvalue()).read_all().to_batches()
    assert back.equals(batch)
    for sent, found in zip(wire.from_batch(batch, round_), wire.from_batch(back, round_), strict=True):
        assert all(np.array_equal(values, found.columns()[name]) for name, values in sent.columns().items())


def changed(batch: pa.RecordBatch, name: str, values: Any) -> pa.RecordBatch:
    return batch.set_column(batch.schema.names.index(name), pa.field(name, values.type), values)


def test_columns_that_no_encoder_sends_are_refused(round_: Round[Any]) -> None:
    batch = batch_of(round_)
    names = batch.schema.names
    width = batch.schema.field(names[2]).type.byte_width
    wrong = [
        batch.drop_columns([names[1]]),
        batch.select(names[::-1]),
        batch.append_column("more", pa.nulls(N, pa.uint8())),
        batch.rename_columns(["users", *names[1:]]),
        changed(batch, "user", pa.array(range(N), pa.int64())),
        changed(batch, "user", pa.array([None, *range(N - 1)], pa.uint64())),
        changed(batch, names[2], pa.nulls(N, pa.binary())),
        changed(batch, names[2], pa.nulls(N, pa.binary(width + 1))),
        changed(batch, names[1], pa.nulls(N, pa.uint32())),
        changed(batch, names[1], pa.array(["x"] * N)),
        changed(batch, "user", pa.array(range(N), pa.uint64()).dictionary_encode()),
        pa.record_batch({}),
        pa.record_batch({"user": pa.array(range(N), pa.uint64())}),
    ]
    for one in wrong:
        with pytest.raises(Refused) as error:
            wire.from_batch(one, round_)
        assert "\n" not in str(error.value)


def test_rows_that_answer_what_they_are_not_asked_are_told_apart(round_: Round[Any]) -> None:
    batch = batch_of(round_)
    for name in batch.schema.names[1:]:
        column = batch.column(name)
        valid = column.is_valid().to_numpy(zero_copy_only=False).copy()
        place = int(np.flatnonzero(valid)[3])
        emptied = pa.array([None if i == place else v for i, v in enumerate(column.to_pylist())], column.type)
        other = int(np.flatnonzero(~valid)[3])
        filled = pa.array(
            [column[place].as_py() if i == other else v for i, v in enumerate(column.to_pylist())], column.type
        )
        for values, at in ((emptied, place), (filled, other)):
            one = changed(batch, name, values)
            assert np.flatnonzero(~wire.sound(one, round_)).tolist() == [at]
            with pytest.raises(Refused, match="not asked"):
                wire.from_batch(one, round_)
            kept = one.filter(pa.array(wire.sound(one, round_)))
            assert sum(len(r.users) for r in wire.from_batch(kept, round_)) == N - 1


def test_a_column_that_lies_about_its_nulls_is_refused() -> None:
    round = opened()
    batch = batch_of(round)
    column = batch.column("q0.answers")
    lying = pa.Array.from_buffers(column.type, N, column.buffers(), null_count=0)
    with pytest.raises(Refused):
        wire.from_batch(changed(batch, "q0.answers", lying), round)


def test_reports_that_do_not_travel_are_named() -> None:
    problem = Problem(3, Ball((0.0,) * D, 1.0), N, Budget("pure", 2.0))
    method = compose(registry(), "Method", "su-lloyd", {}, {}).value
    with pytest.raises(InvalidInput, match="the reports of question 1 cannot be sent"):
        report_types(next_round(method, problem, PublicRng.from_seed(1)))
