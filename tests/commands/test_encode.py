"""``cloister plan`` and ``cloister encode``, run as people run them."""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cloister.collection.client.encode_files import RowTable, collect, piece_rows
from cloister.collection.client.encoder import PlanEncoder, State, read
from cloister.collection.plan import durable_files
from cloister.collection.plan.canonical_json import hash_of
from cloister.collection.plan.plan import CollectionPlan
from cloister.collection.plan.publish import publish
from cloister.collection.wire.batches import Parsed, form_of
from cloister.core.errors import CloisterError, InvalidInput
from cloister.core.randomness import NoiseRng
from cloister.rows.options import Reading
from cloister.run.request import Request
from tests.in_process import ran, refused

NAMES = [*"abcxy"]
D, N = len(NAMES), 1200
ROWS = np.random.default_rng(0).normal(0, 0.3, (1000, D))
WANTED = f"-k 3 --epsilon 2 --rows {N} --bounds ball:1 --columns {','.join(NAMES)}"


@pytest.fixture(scope="module")
def plan() -> CollectionPlan:
    request = Request(k=3, method="one-round", epsilon=2.0, bounds="ball:1", rows=N, seed=1)
    return publish(request, columns=NAMES)


@pytest.fixture
def folder(tmp_path: Path, plan: CollectionPlan) -> Path:
    plan.write(tmp_path / "plan", "")
    numbers = np.random.default_rng(1).permutation(N)[:1000]
    table = pa.table({"name": ["a"] * 1000, **{n: ROWS[:, i] for i, n in enumerate(NAMES)}, "id": numbers})
    pq.write_table(table, tmp_path / "mine.parquet")
    np.save(tmp_path / "mine.npy", ROWS)
    return tmp_path


def sent(folder: Path, plan: CollectionPlan) -> Parsed:
    """The reports of the one file there."""
    (path,) = [p for p in folder.iterdir() if p.name.startswith("part-")]
    found = form_of(plan.hash, plan.round()).parse(path.read_bytes())
    assert (found.unread, found.damaged, found.error) == (0, 0, None)
    return found


def test_from_rows_to_reports(tmp_path: Path) -> None:
    pq.write_table(pa.table(dict(zip(NAMES, ROWS.T, strict=True))), tmp_path / "mine.parquet")
    done = ran(f"plan {WANTED} --out plan", tmp_path)
    assert "(replace one row) epsilon = 2, Local trust" in done.stdout
    assert "WARNING: at this n, epsilon and d (1,200, 2, 5) expect no better than one centre" not in done.stdout
    done = ran("encode plan mine.parquet --out reports", tmp_path)
    assert done.stderr == (
        "WARNING: no state remembers these reports: encoding the same rows again, under any plan, spends again\n"
    )
    plan = read(tmp_path / "plan")
    found = sent(tmp_path / "reports", plan)
    assert done.stdout.startswith(f"1,000 reports under plan {plan.hash[:16]}, each epsilon = 2, in reports/part-")
    assert found.users.tolist() == list(range(1000))


def test_json_for_programs(folder: Path, plan: CollectionPlan) -> None:
    said = json.loads(ran(f"plan {WANTED} --out other --json", folder).stdout)
    assert said.pop("liars")["shares"]
    assert said == json.loads((folder / "other" / "plan.json").read_text())
    said = json.loads(ran("encode plan mine.npy --out r --columns 0,1,2,3,4 --json", folder).stdout)
    assert (said["plan"], said["reports"], said["epsilon"]) == (plan.hash, 1000, 2.0)
    assert (folder / said["file"]).suffix == ".reports"


def encoded(folder: Path, plan: CollectionPlan, *paths: str, **options: Any) -> Parsed:
    encoder = PlanEncoder(plan, noise=options.pop("noise", None))
    state = options.pop("state", None)
    table = RowTable(encoder, [str(folder / p) for p in paths], **options)
    out = folder / f"out-{len(list(folder.iterdir()))}"
    path, count = collect(encoder, table, out, state)
    assert list(out.iterdir()) == [path]
    found = sent(out, plan)
    assert len(found.users) == count
    return found


def test_files_of_reports_and_their_folder_are_read_by_their_owner_alone(
    folder: Path, plan: CollectionPlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Messages for a shuffler are next to rows, also while they are written."""
    modes, flush = list[int](), durable_files.flush

    def spied(file: Any) -> None:
        assert not list(folder.glob("new/r/part-*"))  # as finished files are called
        modes.append(os.fstat(file.fileno()).st_mode & 0o777)
        flush(file)

    monkeypatch.setattr(durable_files, "flush", spied)
    encoder, before = PlanEncoder(plan), os.umask(0)
    try:
        path, _ = collect(encoder, RowTable(encoder, [str(folder / "mine.parquet")]), folder / "new" / "r")
    finally:
        os.umask(before)
    assert path is not None
    assert (modes, path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o777) == ([0o600], 0o600, 0o700)


def test_a_file_is_in_the_order_of_user_numbers_and_each_person_has_her_own(
    folder: Path, plan: CollectionPlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seeded, so that each person's report says whose row was encoded."""
    monkeypatch.setattr("cloister.collection.client.encode_files.CELLS", 0)  # several pieces
    assert piece_rows(D) == 1024
    monkeypatch.setattr("cloister.collection.client.encode_files.piece_rows", lambda *_: 100)
    numbers, noise = pq.read_table(folder / "mine.parquet")["id"].to_numpy(), NoiseRng.for_tests(1)
    for reading, users in ((Reading(), np.arange(1000)), (Reading(user_column="id"), numbers)):
        found = encoded(folder, plan, "mine.parquet", reading=reading, noise=noise)
        assert found.users.tolist() == sorted(users.tolist())
        assert np.array_equal(found.answers, PlanEncoder(plan, noise=noise).encode(ROWS, users).answers)


def test_rows_of_a_database_are_their_own_whatever_order_they_come_in(
    folder: Path, plan: CollectionPlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A person's number is what the table says, and nothing of where her row stands. Seeded, as above."""
    duckdb = pytest.importorskip("duckdb")
    pytest.importorskip("ibis")
    monkeypatch.chdir(folder)
    with duckdb.connect("lake.db") as lake:
        lake.execute("CREATE TABLE people AS SELECT * FROM 'mine.parquet' ORDER BY hash(id)")
    numbers, noise = pq.read_table(folder / "mine.parquet")["id"].to_numpy(), NoiseRng.for_tests(1)
    expected = PlanEncoder(plan, noise=noise).encode(ROWS, numbers).answers
    for copied in (False, True):
        reading = Reading(user_column="id", table="people", materialise=copied)
        table = RowTable(PlanEncoder(plan, noise=noise), ["duckdb:///lake.db"], reading)
        with contextlib.closing(table):
            collect(table._encoder, table, folder / f"r{copied}")
        assert np.array_equal(sent(folder / f"r{copied}", plan).answers, expected)
    asked = "encode plan duckdb:///lake.db --table people --out r"
    assert "no order that could number their users" in refused(asked, folder)
    assert "1,000 reports" in ran(f"{asked} --user-column id", folder).stdout


def test_rows_with_missing_cells_are_refused_or_their_users_report_as_everybody_does(
    folder: Path, plan: CollectionPlan
) -> None:
    """A report that is not there would say for certain that a cell is missing."""
    rows = ROWS.copy()
    rows[3, 1], rows[500, 0] = np.nan, np.inf
    pq.write_table(pa.table(dict(zip(NAMES, rows.T, strict=True))), folder / "holes.parquet")
    with pytest.raises(CloisterError, match="missing or infinite"):
        encoded(folder, plan, "holes.parquet", state=State(folder / "state"))
    assert not (folder / "state").exists()
    found = encoded(folder, plan, "holes.parquet", reading=Reading(missing="drop")).users.tolist()
    assert found == list(range(1000))


def test_several_files_are_one_table_whose_user_numbers_follow_the_first_one(
    folder: Path, plan: CollectionPlan
) -> None:
    pq.write_table(pa.table(dict(zip(NAMES, ROWS[:50].T, strict=True))), folder / "more.parquet")
    np.savetxt(folder / "more.csv", ROWS[:50], delimiter=",", header=",".join(NAMES), comments="")
    assert encoded(folder, plan, "more.parquet", "more.csv", first=200).users.tolist() == list(range(200, 300))


def test_a_state_makes_the_same_file_again(folder: Path) -> None:
    run = "encode plan mine.parquet --out a --state mine.state --json"
    one = json.loads(ran(run, folder).stdout)["file"]
    done = ran(run, folder)
    assert done.stderr == "a already holds 1 files of reports: people who are in two files count once at most\n"
    assert (folder / one).read_bytes() == (folder / json.loads(done.stdout)["file"]).read_bytes()


def test_what_a_terminal_would_obey_is_shown_as_text(folder: Path) -> None:
    """A plan's words and the names of files are other people's."""
    path = folder / "plan" / "plan.json"
    facts = json.loads(path.read_text())
    facts |= {"cloister": "1\n\x1b[2Jall is well", "digest": "00" * 32}
    facts["hash"] = hash_of({name: fact for name, fact in facts.items() if name != "hash"})
    path.write_text(json.dumps(facts))
    told = refused("encode plan mine.parquet --out r", folder)
    assert r"made by cloister 1\n\x1b[2Jall is well: round 0 is not the one" in told


AVERAGED = "--method one-round --with sums=ldp-average"


def test_a_plan_promises_no_delta_that_it_does_not_need(folder: Path) -> None:
    """Neither on its page nor to a lifetime."""
    for more, delta in (("", 0.0), (AVERAGED, 0.0625)):
        told = ran(f"plan {WANTED} --delta 0.0625 {more} --out needs{delta}", folder).stdout
        assert ("epsilon = 2, delta = 0.0625, Local trust" in told) == bool(delta)
        assert json.loads((folder / f"needs{delta}" / "plan.json").read_text())["delta"] == delta


def test_a_plan_that_hides_little_is_warned_of_on_both_sides(folder: Path) -> None:
    shape = f"{WANTED} --rows 1000"
    warning = "WARNING: a report of epsilon = 9 hides little: it may be e^9 = 8,103 times as likely"
    assert warning in ran(f"plan {shape} --epsilon 9 --out loud", folder).stdout
    assert warning in ran("encode loud mine.parquet --out r", folder).stderr
    warning = "a report of delta = 0.25 may tell its row as it is with that probability: some 250 of 1,000 people"
    assert f"WARNING: {warning}" in ran(f"plan {shape} --epsilon 1 --delta 0.25 {AVERAGED} --out sure", folder).stdout
    told = refused("encode sure mine.parquet --out r --state s --lifetime 3", folder)
    assert f"WARNING: {warning}" in told
    assert "the lifetime delta of 0.001 of 1,000 of these people" in told
    ran("encode sure mine.parquet --out r --state other --lifetime 3 --lifetime-delta 0.3", folder)


@pytest.mark.parametrize("state", ["", "--state new.state"])
def test_one_persons_row_is_not_user_0_by_default(folder: Path, state: str) -> None:
    pq.write_table(pq.read_table(folder / "mine.parquet").slice(0, 1), folder / "hers.parquet")
    told = refused(f"encode plan hers.parquet --out r {state}", folder)
    assert "a single row needs a user number: give it with --first" in told
    assert not (folder / "r").exists()
    for first in (0, 7):
        ran(f"encode plan hers.parquet --out r{first} {state} --first {first}", folder)
        assert sent(folder / f"r{first}", read(folder / "plan")).users.tolist() == [first]


def test_a_round_that_has_no_bytes_is_refused_before_anybody_is_charged(folder: Path, plan: CollectionPlan) -> None:
    encoder, state = PlanEncoder(plan), State(folder / "state")
    encoder.round = attrs.evolve(encoder.round, index=255)
    table = RowTable(encoder, [str(folder / "mine.parquet")], first=0)
    with pytest.raises(InvalidInput, match="rounds 1 to 255"):
        collect(encoder, table, folder / "out", state)
    assert state.spent(0) == 0
    assert not (folder / "out").exists()
