"""``cloister plan`` and ``cloister encode``, run as people run them."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from cloister.cli import app
from cloister.collection.client.encode_files import RowTable, collect, piece_rows
from cloister.collection.client.encoder import PlanEncoder, State, read
from cloister.collection.plan import canonical_json
from cloister.collection.plan.canonical_json import hash_of
from cloister.collection.plan.plan import CollectionPlan
from cloister.collection.plan.publish import publish
from cloister.collection.wire.answers import layout_of
from cloister.collection.wire.batches import Parsed, form_of
from cloister.core.errors import CloisterError, InvalidInput
from cloister.core.randomness import NoiseRng
from cloister.run.request import Request
from tests.in_process import PROGRAM, cloister, program
from tests.waiting import until

NAMES = ["age", "height", "income", "x", "y"]
D, N = len(NAMES), 1200
ROWS = np.random.default_rng(0).normal(0, 0.3, (1000, D))
WANTED = ("-k", "3", "--epsilon", "2", "--rows", str(N), "--bounds", "ball:1")


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
    assert (found.left, found.damaged, found.wrong) == (0, 0, None)
    return found


def test_from_rows_to_reports(tmp_path: Path) -> None:
    pq.write_table(pa.table(dict(zip(NAMES, ROWS.T, strict=True))), tmp_path / "mine.parquet")
    done = cloister("plan", *WANTED, "--columns", ",".join(NAMES), "--out", "plan", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "(replace one row) epsilon = 2, Local trust" in done.stdout
    assert "WARNING: at this n, epsilon and d (1,200, 2, 5) expect no better than one centre" not in done.stdout
    done = program("encode", "plan", "mine.parquet", "--out", "reports", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stderr == (
        "WARNING: no state: nothing remembers these reports. Encoding the same rows again, under this plan or "
        "another, spends again\n"
    )
    plan = read(tmp_path / "plan")
    found = sent(tmp_path / "reports", plan)
    assert done.stdout.startswith(f"1,000 reports under plan {plan.hash[:16]}, each epsilon = 2, in reports/part-")
    assert found.users.tolist() == list(range(1000))
    reports = layout_of(plan.round()).reports(found.users, found.answers)
    for part, report in zip(plan.round().parts, reports, strict=True):
        part.channel.absorb(report)


def test_json_for_programs(folder: Path) -> None:
    done = cloister("plan", *WANTED, "--dimension", "5", "--out", "other", "--json", folder=folder)
    said = json.loads(done.stdout)
    assert said.pop("liars")["shares"]
    assert said == json.loads((folder / "other" / "plan.json").read_text())
    done = cloister(
        "encode",
        "plan",
        "mine.npy",
        "--out",
        "r",
        "--columns",
        "0,1,2,3,4",
        "--json",
        folder=folder,
    )
    said = json.loads(done.stdout)
    assert said["plan"] == read(folder / "plan").hash
    assert (said["reports"], said["epsilon"]) == (1000, 2.0)
    assert (folder / said["file"]).suffix == ".reports"
    assert len(sent(folder / "r", read(folder / "plan")).users) == 1000


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


def test_the_file_has_the_reports_of_the_round(folder: Path, plan: CollectionPlan) -> None:
    noise = NoiseRng.for_tests(3)
    found = encoded(folder, plan, "mine.parquet", noise=noise)
    assert np.array_equal(found.answers, PlanEncoder(plan, noise=noise).encode(ROWS, np.arange(1000)).answers)


def test_files_of_reports_and_their_folder_are_read_by_their_owner_alone(
    folder: Path, plan: CollectionPlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Messages for a shuffler are next to rows, also while they are written."""
    modes, flush = list[int](), canonical_json.flush

    def spied(file: Any) -> None:
        modes.append(os.fstat(file.fileno()).st_mode & 0o777)
        flush(file)

    monkeypatch.setattr(canonical_json, "flush", spied)
    encoder, before = PlanEncoder(plan), os.umask(0)
    try:
        path, _ = collect(encoder, RowTable(encoder, [str(folder / "mine.parquet")]), folder / "new" / "r")
    finally:
        os.umask(before)
    assert path is not None
    assert (modes, path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o777) == ([0o600], 0o600, 0o700)


def test_user_numbers_follow_the_first_one(folder: Path, plan: CollectionPlan) -> None:
    assert encoded(folder, plan, "mine.parquet", first=200).users.tolist() == list(range(200, 1200))
    with pytest.raises(CloisterError, match="user numbers above 1199"):
        encoded(folder, plan, "mine.parquet", first=201)


@pytest.mark.parametrize("remember", [False, True])
def test_user_numbers_of_a_column_and_no_trace_of_the_order(
    folder: Path, plan: CollectionPlan, remember: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cloister.collection.client.encode_files.CELLS", 0)  # several pieces
    assert piece_rows(D) == 1024
    monkeypatch.setattr("cloister.collection.client.encode_files.piece_rows", lambda *_: 100)
    numbers = pq.read_table(folder / "mine.parquet")["id"].to_numpy()
    state = State(folder / "state") if remember else None
    found = encoded(folder, plan, "mine.parquet", reading={"users": "id"}, state=state)
    assert found.users.tolist() == sorted(numbers.tolist())
    if state is not None:
        assert np.array_equal(found.answers, PlanEncoder(plan).encode(ROWS * 0, numbers, state).answers)


def test_rows_of_a_column_of_users_are_their_own(folder: Path, plan: CollectionPlan) -> None:
    """Seeded, so that each person's report says whose row was encoded."""
    numbers, noise = pq.read_table(folder / "mine.parquet")["id"].to_numpy(), NoiseRng.for_tests(1)
    found = encoded(folder, plan, "mine.parquet", reading={"users": "id"}, noise=noise)
    assert np.array_equal(found.answers, PlanEncoder(plan, noise=noise).encode(ROWS, numbers).answers)


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
        reading = {"users": "id", "table": "people", "materialise": copied}
        table = RowTable(PlanEncoder(plan, noise=noise), ["duckdb:///lake.db"], reading)
        with contextlib.closing(table):
            collect(table._encoder, table, folder / f"r{copied}")
        assert np.array_equal(sent(folder / f"r{copied}", plan).answers, expected)
    asked = "encode", "plan", "duckdb:///lake.db", "--table", "people", "--out", "r"
    assert "no places for user numbers" in cloister(*asked, folder=folder).stderr
    assert "1,000 reports" in cloister(*asked, "--user-column", "id", folder=folder).stdout


def test_rows_with_missing_cells_are_refused_or_dropped_with_their_numbers(folder: Path, plan: CollectionPlan) -> None:
    rows = ROWS.copy()
    rows[3, 1], rows[500, 0] = np.nan, np.inf
    pq.write_table(pa.table(dict(zip(NAMES, rows.T, strict=True))), folder / "holes.parquet")
    with pytest.raises(CloisterError, match="missing or infinite"):
        encoded(folder, plan, "holes.parquet", state=State(folder / "state"))
    assert not (folder / "state").exists()
    found = encoded(folder, plan, "holes.parquet", reading={"missing": "drop"}).users.tolist()
    assert found == [i for i in range(1000) if i not in (3, 500)]


def test_several_files_are_one_table(folder: Path, plan: CollectionPlan) -> None:
    pq.write_table(pa.table(dict(zip(NAMES, ROWS[:50].T, strict=True))), folder / "more.parquet")
    np.savetxt(folder / "more.csv", ROWS[:50], delimiter=",", header=",".join(NAMES), comments="")
    assert encoded(folder, plan, "more.parquet", "more.csv").users.tolist() == list(range(100))


def test_a_state_makes_the_same_file_again(folder: Path) -> None:
    run = "encode", "plan", "mine.parquet", "--out", "a", "--state", "mine.state", "--json"
    one = json.loads(cloister(*run, folder=folder).stdout)["file"]
    done = cloister(*run, folder=folder)
    assert done.stderr == "a already holds 1 files of reports: people who are in two files count once at most\n"
    assert (folder / one).read_bytes() == (folder / json.loads(done.stdout)["file"]).read_bytes()


def test_a_lifetime_that_is_used_up_writes_nothing(folder: Path) -> None:
    cloister("plan", *WANTED, "--columns", ",".join(NAMES), "--out", "second", folder=folder)
    state = "--state", "mine.state", "--lifetime", "3"
    assert cloister("encode", "plan", "mine.parquet", "--out", "a", *state, folder=folder).returncode == 0
    done = cloister("encode", "second", "mine.parquet", "--out", "b", *state, folder=folder)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "cloister: the lifetime epsilon of 3 of 1,000 of these people has 1 (at least) left, 2 was asked: nothing was "
        "read or spent\n"
    )
    assert not (folder / "b").exists()


WRONG: dict[str, tuple[str, str]] = {
    "no plan": ("encode nowhere mine.parquet --out r", "cannot read the plan"),
    "a file for a plan": ("encode mine.npy mine.parquet --out r", "cannot read the plan"),
    "no rows": ("encode plan nothing.parquet --out r", "cannot be opened"),
    "a folder of rows": ("encode plan plan --out r", "is a folder"),
    "an unknown kind": ("encode plan plan/plan.json --out r", "extension that is not known"),
    "a pattern of nothing": ("encode plan *.feather --out r", "no file matches"),
    "a damaged file": ("encode plan damaged.parquet --out r", "cannot be read"),
    "an empty file": ("encode plan empty.parquet --out r", "is empty"),
    "no rows in it": ("encode plan none.parquet --out r", "there are no rows"),
    "rows twice": ("encode plan mine.parquet mine.parquet --out r", "given twice"),
    "too many rows": ("encode plan mine.parquet more.parquet --out r", "user numbers above 1199"),
    "another column": ("encode plan mine.parquet --columns a,b,c,d,e --out r", "no column 'a'"),
    "text": ("encode plan mine.parquet --columns name,age,height,x,y --out r", "does not hold numbers"),
    "too few columns": ("encode plan mine.parquet --columns age,height --out r", "for 5 columns, these are 2"),
    "a column twice": ("encode plan mine.parquet --columns x,x,x,x,x --out r", "more than once"),
    "an empty column": ("encode plan mine.parquet --columns ,,,, --out r", "no column ''"),
    "no such names": ("encode plan mine.npy --out r", "no column 'age'"),
    "no user column": ("encode plan mine.parquet --user-column who --out r", "no column 'who'"),
    "no user column, any columns": ("encode anyhow five.parquet --user-column who --out r", "no column 'who'"),
    "a row column as users": ("encode plan mine.parquet --user-column x --out r", "holds the user numbers"),
    "users of text": ("encode plan mine.parquet --user-column name --out r", "does not hold numbers"),
    "users twice": ("encode plan users.parquet --user-column twice --out r", "stands twice"),
    "negative users": ("encode plan users.parquet --user-column negative --out r", "whole numbers from 0 to 1199"),
    "users beyond": ("encode plan users.parquet --user-column beyond --out r", "whole numbers from 0 to 1199"),
    "half users": ("encode plan users.parquet --user-column half --out r", "whole numbers from 0 to 1199"),
    "missing users": (
        "encode plan users.parquet --user-column gone --missing drop --out r",
        "whole numbers from 0 to 1199",
    ),
    "two ways to number": ("encode plan mine.parquet --user-column id --first 3 --out r", "not both"),
    "a negative first": ("encode plan mine.parquet --first -1 --out r", "first user number is -1"),
    "a first beyond": ("encode plan mine.parquet --first 99999999999999999999 --out r", "first user number is"),
    "missing cells": ("encode plan holes.parquet --out r", "missing or infinite"),
    "nothing but holes": ("encode plan allholes.parquet --missing drop --out r", "there are no rows"),
    "an odd rule": ("encode plan mine.parquet --missing ignore --out r", "choose refuse or drop"),
    "a file as folder": ("encode plan mine.parquet --out mine.npy", "cannot write into"),
    "a lifetime alone": ("encode plan mine.parquet --lifetime 3 --out r", "give --state FILE"),
    "a lifetime of nothing": ("encode plan mine.parquet --lifetime nan --state s --out r", "the lifetime is nan"),
    "a state that is none": (
        "encode plan mine.parquet --state mine.parquet --out r",
        "the state mine.parquet cannot be",
    ),
    "a state nowhere": ("encode plan mine.parquet --state no/where --out r", "the state no/where cannot be used"),
    "a changed plan": ("encode changed mine.parquet --out r", "was changed after it was published"),
    "no columns": ("plan -k 3 --epsilon 1 --rows 100 --bounds ball:1 --out p", "or their number (--dimension 100)"),
    "both": (
        "plan -k 3 --epsilon 1 --rows 100 --bounds ball:1 --out p --columns a --dimension 1",
        "either their names (--columns a,b,c)",
    ),
    "over a plan": ("plan -k 3 --epsilon 1 --rows 100 --bounds ball:1 --out plan --dimension 2", "is not empty"),
    "over a file": ("plan -k 3 --epsilon 1 --rows 100 --bounds ball:1 --out mine.npy --dimension 2", "it is a file"),
    "central": (
        "plan -k 3 --epsilon 1 --rows 100 --bounds ball:1 --out p --dimension 2 --method fastlloyd",
        "is Central",
    ),
    "no method": (
        "plan -k 3 --epsilon 1 --rows 100 --bounds ball:1 --out p --dimension 2 --method onround",
        "did you mean one-round",
    ),
    "no such slot": (
        "plan -k 3 --epsilon 1 --rows 100 --bounds ball:1 --out p --dimension 2 --with tallies=exact",
        "no slot 'tallies'",
    ),
    "no value": (
        "plan -k 3 --epsilon 1 --rows 100 --bounds ball:1 --out p --dimension 2 --set partitions",
        "name=value",
    ),
    "two values": (
        "plan -k 3 --epsilon 1 --rows 100 --bounds ball:1 --out p --dimension 2 --set clip=yes --set clip=no",
        "given twice",
    ),
    "no epsilon": ("plan -k 3 --epsilon -1 --rows 100 --bounds ball:1 --out p --dimension 2", "epsilon is -1"),
    "more centres than rows": ("plan -k 300 --epsilon 1 --rows 100 --bounds ball:1 --out p --dimension 2", "k is 300"),
    "reversed bounds": (
        "plan -k 3 --epsilon 1 --rows 100 --bounds 1:0 --out p --dimension 2",
        "the lower one must be smaller",
    ),
}


@pytest.fixture(scope="module")
def crooked(tmp_path_factory: pytest.TempPathFactory, plan: CollectionPlan) -> Path:
    folder = tmp_path_factory.mktemp("crooked")
    plan.write(folder / "plan", "")
    plan.write(folder / "changed", "")
    attrs.evolve(plan, columns=None).write(folder / "anyhow", "")
    path = folder / "changed" / "plan.json"
    path.write_text(path.read_text().replace('"epsilon": 2.0', '"epsilon": 1.0'))
    columns = dict(zip(NAMES, ROWS.T, strict=True))
    pq.write_table(pa.table({**columns, "name": ["a"] * 1000, "id": range(1000)}), folder / "mine.parquet")
    pq.write_table(pa.table(columns), folder / "more.parquet")
    pq.write_table(pa.table({**columns, "id": range(1000)}), folder / "five.parquet")
    np.save(folder / "mine.npy", ROWS)
    (folder / "damaged.parquet").write_bytes((folder / "mine.parquet").read_bytes()[:-50])
    (folder / "empty.parquet").write_bytes(b"")
    pq.write_table(pa.table(columns).slice(0, 0), folder / "none.parquet")
    some = pa.table(columns).slice(0, 3).to_pydict()
    users = {"twice": [1, 2, 1], "negative": [0, 1, -1], "beyond": [1, 2, N], "half": [0.5, 1, 2], "gone": [None, 1, 2]}
    pq.write_table(pa.table({**some, **users}), folder / "users.parquet")
    pq.write_table(pa.table({**some, "x": [0.0, None, 1.0]}), folder / "holes.parquet")
    pq.write_table(pa.table({**some, "x": pa.array([None] * 3, pa.float64())}), folder / "allholes.parquet")
    return folder


@pytest.mark.parametrize(("line", "message"), WRONG.values(), ids=WRONG)
def test_misuse_is_one_clear_line_and_leaves_nothing(
    crooked: Path, monkeypatch: pytest.MonkeyPatch, line: str, message: str
) -> None:
    monkeypatch.chdir(crooked)
    before = {path: path.stat().st_mtime_ns for path in crooked.rglob("*") if path.is_file()}
    done = CliRunner().invoke(app, line.split())
    assert isinstance(done.exception, CloisterError), (done.output, done.exception)
    assert message in str(done.exception)
    assert "\n" not in str(done.exception)
    assert {path: path.stat().st_mtime_ns for path in crooked.rglob("*") if path.is_file()} == before


def test_a_refusal_is_one_line_and_exit_code_2(crooked: Path) -> None:
    done = program("encode", "changed", "mine.parquet", "--out", "r", folder=crooked)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert done.stderr.startswith("cloister: changed/plan.json cannot be used: it was changed")


def test_what_a_terminal_would_obey_is_shown_as_text(crooked: Path) -> None:
    """A plan's words and the names of files are other people's."""
    facts = json.loads((crooked / "plan" / "plan.json").read_text())
    facts.pop("hash")
    facts |= {"cloister": "1\n\x1b[2Jall is well", "digest": "00" * 32}
    (crooked / "evil").mkdir()
    (crooked / "evil" / "plan.json").write_text(json.dumps({**facts, "hash": hash_of(facts)}))
    done = program("encode", "evil", "mine.parquet", "--out", "r", folder=crooked)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert r"made by cloister 1\n\x1b[2Jall is well: round 0 is not the one" in done.stderr.splitlines()[-1]


def test_a_loud_plan_is_warned_of_on_both_sides(folder: Path) -> None:
    shape = "-k", "3", "--epsilon", "9", "--rows", "1000", "--bounds", "ball:1", "--columns", ",".join(NAMES)
    done = cloister("plan", *shape, "--out", "loud", folder=folder)
    assert "WARNING: a report of epsilon = 9 hides little: it may be e^9 = 8,103 times as likely" in done.stdout
    done = cloister("encode", "loud", "mine.parquet", "--out", "r", folder=folder)
    assert "WARNING: a report of epsilon = 9 hides little" in done.stderr


def test_a_plan_that_may_tell_a_row_as_it_is_is_warned_of_on_both_sides(folder: Path) -> None:
    shape = (
        "-k",
        "3",
        "--epsilon",
        "1",
        "--delta",
        "0.25",
        "--rows",
        "1000",
        "--bounds",
        "ball:1",
        "--columns",
        ",".join(NAMES),
    )
    done = cloister("plan", *shape, "--out", "sure", folder=folder)
    warning = (
        "WARNING: a report of delta = 0.25 may tell its row as it is with that probability: some 250 of 1,000 people"
    )
    assert warning in done.stdout
    run = "encode", "sure", "mine.parquet", "--out", "r", "--state", "s", "--lifetime", "3"
    done = cloister(*run, folder=folder)
    assert done.returncode == 2
    assert warning in done.stderr
    assert "the lifetime delta of 0.001 of 1,000 of these people" in done.stderr
    assert cloister(*run, "--lifetime-delta", "0.3", folder=folder).stderr.endswith(
        "never raised: give a lower one, or none\n"
    )
    (folder / "s").unlink()
    assert cloister(*run, "--lifetime-delta", "0.3", folder=folder).returncode == 0


def test_a_full_disk_leaves_no_file(folder: Path, plan: CollectionPlan, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    encoder = PlanEncoder(plan)
    with pytest.raises(CloisterError, match=r"No space left on device\. No report was written"):
        collect(encoder, RowTable(encoder, [str(folder / "mine.parquet")]), folder / "r")
    assert not (folder / "r").exists()


@pytest.mark.parametrize("options", [(), ("--state", "new.state")])
def test_one_persons_row_is_not_user_0_by_default(folder: Path, options: tuple[str, ...]) -> None:
    pq.write_table(pq.read_table(folder / "mine.parquet").slice(0, 1), folder / "hers.parquet")
    asked = ("encode", "plan", "hers.parquet", "--out", "r", *options)
    done = cloister(*asked, folder=folder)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert "nothing says whose: give her user number with --first" in done.stderr
    assert not (folder / "r").exists()
    for first in ("0", "7"):
        out = f"{first}-reports"
        assert cloister(*asked[:4], out, *options, "--first", first, folder=folder).returncode == 0
        assert sent(folder / out, read(folder / "plan")).users.tolist() == [int(first)]


@pytest.mark.thorough
def test_a_killed_encoder_leaves_nothing_that_looks_like_reports(tmp_path: Path) -> None:
    n = 200_000
    np.save(tmp_path / "mine.npy", np.random.default_rng(0).normal(0, 0.1, (n, 4)).astype(np.float32))
    shape = "-k", "3", "--epsilon", "2", "--rows", str(n), "--bounds", "ball:1", "--dimension", "4"
    assert cloister("plan", *shape, "--out", "plan", folder=tmp_path).returncode == 0
    caught = 0
    for delay in np.random.default_rng(2).uniform(0.0, 0.2, 2):
        process = subprocess.Popen(
            [PROGRAM, "encode", "plan", "mine.npy", "--out", "r"],
            cwd=tmp_path,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        until(lambda process=process: list(tmp_path.glob("r/.part-*.tmp")) or process.poll() is not None)
        time.sleep(delay)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        for path in tmp_path.glob("r/part-*"):
            assert len(sent(tmp_path / "r", read(tmp_path / "plan")).users) == n  # it was done before the kill
            path.unlink()
        caught += bool(list(tmp_path.glob("r/.part-*.tmp")))
        for path in tmp_path.glob("r/.part-*.tmp"):
            path.unlink()
    assert caught


def test_a_round_that_has_no_bytes_is_refused_before_anybody_is_charged(folder: Path, plan: CollectionPlan) -> None:
    encoder, state = PlanEncoder(plan), State(folder / "state")
    encoder.round = attrs.evolve(encoder.round, index=255)
    table = RowTable(encoder, [str(folder / "mine.parquet")], first=0)
    with pytest.raises(InvalidInput, match="rounds 1 to 255"):
        collect(encoder, table, folder / "out", state)
    assert state.spent(0) == 0
    assert not (folder / "out").exists()
