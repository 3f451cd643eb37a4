"""Reports that are counted in parts give what one process finds, to the last bit, whatever the parts."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cloister.collection.intake import parts
from cloister.collection.intake.parts import divided
from cloister.collection.intake.sieve import Intake
from cloister.collection.plan.plan import CollectionPlan
from cloister.collection.server.aggregator import decode
from cloister.core.errors import InvalidInput, Refused
from cloister.rows.workers.dask_cluster import Dask
from cloister.rows.workers.engine import Engine, Processes
from tests.collection.server.collected import KINDS, encoded, gathered, same, small_plan

N = 2000


class Apart:
    """Parts in this process, as if it were others: backwards, since any order will do."""

    apart, elsewhere = True, False

    def close(self) -> None:
        """Nothing to end."""

    def run(self, fn: Any, some: Any) -> Iterator[Any]:
        return map(fn, reversed(list(some)))


@pytest.fixture(scope="module")
def plan() -> CollectionPlan:
    return small_plan("tallied", N)


def contest(plan: CollectionPlan, folder: Path, seed: int) -> Path:
    """Files in which numbers stand once, twice and often, with other and with impossible answers."""
    rng = np.random.default_rng(seed)
    folder.mkdir()
    for name in "abcdef":
        some = encoded(plan, rng.choice(N, int(rng.integers(1, N)), replace=False), seed=int(rng.integers(1000)))
        users, answers = some.users.copy(), some.answers.copy()
        rng.shuffle(users[: len(users) // 3])
        users[:: int(rng.integers(5, 50))] = N + 5
        answers[:: int(rng.integers(5, 50))] = 255
        twice = rng.integers(0, len(users), len(users) + 100)
        data = [some.form.batch(users[s], answers[s]) for s in np.array_split(twice, int(rng.integers(1, 40)))]
        if rng.integers(2):
            data[0] = data[0][:-1] + bytes([data[0][-1] ^ 1])
        (folder / f"{name}.reports").write_bytes(b"".join(data) + data[-1][: int(rng.integers(len(data[-1])))])
    return folder


@pytest.mark.thorough
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(6))
def test_parts_of_any_size_give_what_one_pass_gives(
    kind: str, seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = small_plan(kind, N)
    folder = contest(plan, tmp_path / "reports", seed)
    expected, intake = gathered(plan, folder)
    assert intake.refused["duplicate"] > 0
    for size in (1, 3000, 2**26):
        monkeypatch.setattr(parts, "PART", size)
        found, other = gathered(plan, folder, engine=Apart())
        assert same(found, expected)
        assert (other.accepted, other.questions, other.refused) == (intake.accepted, intake.questions, intake.refused)
        assert (other.files, other.unfinished, _unnamed(other)) == (intake.files, intake.unfinished, _unnamed(intake))


def test_a_flood_of_lies_with_one_number_comes_out_the_same_in_parts(
    plan: CollectionPlan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only so many lies of one number are looked at in one piece: so pieces must not depend on the parts."""
    some, rng, path = encoded(plan, np.arange(5)), np.random.default_rng(1), tmp_path / "a.reports"
    size = len(some.form.batch(some.users[:1], some.answers[:1]))
    monkeypatch.setattr("cloister.collection.intake.sieve.TRIES", 4)
    monkeypatch.setattr("cloister.collection.wire.batches.CHUNK", 17 * size)
    monkeypatch.setattr("cloister.collection.server.reports.PIECE", 10)
    for part in (23, 40) * 5:
        users = rng.integers(0, 5, 200)
        said = np.where(rng.random((200, 1)) < 0.9, 255, some.answers[users]).astype(np.uint8)
        path.write_bytes(
            b"".join(some.form.batch(one, answer) for one, answer in zip(users[:, None], said[:, None], strict=True))
        )
        monkeypatch.setattr(parts, "PART", part * size)
        (expected, intake), (found, other) = gathered(plan, path), gathered(plan, path, engine=Apart())
        assert (other.accepted, other.refused) == (intake.accepted, intake.refused)
        assert same(found, expected)


def _unnamed(intake: Intake) -> list[str]:
    """What is said without the files, of which another one may come first where numbers are contested."""
    return [re.sub(r" \(the first: .*\)", "", line) for line in intake.lines()]


def test_a_strict_intake_refuses_in_parts_too(plan: CollectionPlan, tmp_path: Path) -> None:
    folder = contest(plan, tmp_path / "reports", 1)
    with pytest.raises(Refused, match=r"has reports|is one of the files"):
        gathered(plan, folder, engine=Apart(), strict=True)


def test_files_are_divided_where_batches_begin_and_small_ones_are_put_together(
    plan: CollectionPlan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    some = encoded(plan, np.arange(N))
    batches = [some.form.batch(some.users[i : i + 100], some.answers[i : i + 100]) for i in range(0, N, 100)]
    size = len(batches[0])
    (tmp_path / "a.reports").write_bytes(b"".join(batches) + b"torn")
    for name in "bcd":
        (tmp_path / f"{name}.reports").write_bytes(batches[0])
    paths = [str(tmp_path / f"{name}.reports") for name in "abcd"]
    for chunk in (size, 3 * size // 2, 2**22):
        monkeypatch.setattr("cloister.collection.wire.batches.CHUNK", chunk)
        found = list(divided(paths, some.form, 3 * size))
        assert [part.number for part in found] == list(range(len(found)))
        spans = [(s.name[-9], s.start, s.stop) for part in found for s in part.stretches]
        ends = [*range(3 * size, 20 * size, 3 * size), 20 * size + 4]
        assert spans == [
            *(("a", start, end) for start, end in zip([0, *ends], ends, strict=False)),
            *((name, 0, size) for name in "bcd"),
        ]
        assert [len(part.stretches) for part in found] == [1] * 6 + [2, 2]


def test_a_file_that_is_another_one_in_the_second_pass_is_no_result(plan: CollectionPlan, tmp_path: Path) -> None:
    some, path = encoded(plan, np.arange(N)), tmp_path / "a.reports"
    path.write_bytes(some.in_batches())

    class Changing(Apart):
        def run(self, fn: Any, given: Any) -> Iterator[Any]:
            yield from super().run(fn, given)
            path.write_bytes(self.content)

    for content in (some.form.batch(some.users[:9], some.answers[:9]), bytes(len(some.in_batches()))):
        engine = Changing()
        engine.content = content
        with pytest.raises(InvalidInput, match="changed while it was read"):
            gathered(plan, path, engine=engine)
        path.write_bytes(some.in_batches())


@pytest.mark.parametrize("when", ["before the others count", "before the contested count"])
def test_files_that_hold_other_numbers_in_a_later_pass_are_no_result(
    when: str, plan: CollectionPlan, tmp_path: Path
) -> None:
    """With as many reports, and numbers of the same sum: a user would count twice, or for nothing."""
    one, two = tmp_path / "a.reports", tmp_path / "b.reports"

    def write(path: Path, users: list[int]) -> None:
        some = encoded(plan, sorted(users))
        path.write_bytes(some.form.batch(some.users, some.answers))

    class Changing(Apart):
        passes = 0

        def run(self, fn: Any, given: Any) -> Iterator[Any]:
            yield from super().run(fn, given)
            self.passes += 1
            if self.passes == (1 if when == "before the others count" else 2):
                write(one, [11, 12])

    write(one, [10, 13])
    write(two, [10, 11])
    with pytest.raises(InvalidInput, match="changed while it was read"):
        gathered(plan, [one, two], engine=Changing())


def test_streams_are_read_in_one_process(plan: CollectionPlan) -> None:
    with pytest.raises(InvalidInput, match="apply to files only"):
        gathered(plan, encoded(plan, np.arange(9)).to_bytes(), engine=Apart())


@pytest.fixture(scope="module")
def engines() -> Iterator[dict[str, Engine]]:
    found: dict[str, Engine] = {"processes": Processes(2), "dask": Dask(2)}
    yield found
    for engine in found.values():
        engine.close()


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["processes", "dask"])
def test_every_engine_gives_what_one_process_gives_and_a_worker_killed_changes_nothing(
    name: str, plan: CollectionPlan, engines: dict[str, Engine], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parts, "PART", 10_000)
    folder, engine, killed = contest(plan, tmp_path / "reports", 2), engines[name], list[int]()
    expected, intake = gathered(plan, folder)

    def kill(_: int) -> None:
        if not killed:
            killed.extend(_workers(engine))
            os.kill(killed[0], signal.SIGKILL)

    for told in (None, kill):
        found, other = gathered(plan, folder, engine=engine, progress=told)
        assert same(found, expected)
        assert (other.accepted, other.refused, _unnamed(other)) == (intake.accepted, intake.refused, _unnamed(intake))
    assert killed


def _workers(engine: Engine) -> list[int]:
    if isinstance(engine, Dask):
        return list(engine.client().run(os.getpid).values())
    assert isinstance(engine, Processes)
    assert engine._pool is not None
    return list(engine._pool._processes)


@pytest.mark.thorough
def test_decode_takes_an_engine(plan: CollectionPlan, tmp_path: Path) -> None:
    folder = contest(plan, tmp_path / "reports", 3)
    one, two = decode(plan, folder), decode(plan, folder, engine="processes", workers=2)
    assert np.array_equal(one.result.centers, two.result.centers)
    assert one.result.details["reports"] == two.result.details["reports"]
