"""``cloister decode``, run as people run it: whole sessions, refusals in one line, damaged files, kills."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq
import pytest

from cloister.collection.client.encoder import PlanEncoder
from cloister.collection.plan.plan import CollectionPlan
from cloister.collection.plan.publish import publish
from cloister.collection.server.aggregator import decode
from cloister.collection.wire import reports as wire
from cloister.core.errors import CloisterError
from cloister.run.request import Request
from cloister.run.result import Result
from tests.in_process import PROGRAM, cloister

D, N = 5, 1000
ROWS = np.random.default_rng(0).normal(0, 0.3, (N, D))


@pytest.fixture(scope="module")
def plan() -> CollectionPlan:
    return publish(Request(k=3, method="one-round", epsilon=2.0, bounds="ball:1", rows=N, seed=1), dimension=D)


@pytest.fixture(scope="module")
def sent(plan: CollectionPlan) -> pa.RecordBatch:
    done = PlanEncoder(plan).encode(ROWS, np.arange(N))
    return wire.to_batch(done.reports, done.users, wire.schema(plan.round(), plan.hash))


@pytest.fixture
def folder(tmp_path: Path, plan: CollectionPlan, sent: pa.RecordBatch) -> Path:
    plan.write(tmp_path / "plan", "")
    (tmp_path / "reports").mkdir()
    parquet(tmp_path / "reports" / "part-0.parquet", sent)
    return tmp_path


def parquet(path: Path, batch: pa.RecordBatch) -> Path:
    with pq.ParquetWriter(
        path, batch.schema, compression="zstd", write_statistics=False, write_page_checksum=True
    ) as file:
        file.write_batch(batch)
    return path


def arrow(path: Path, batch: pa.RecordBatch) -> Path:
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return path


def test_from_rows_to_centres(tmp_path: Path) -> None:
    np.save(tmp_path / "mine.npy", ROWS)
    wanted = "-k", "3", "--epsilon", "2", "--rows", str(N), "--bounds", "ball:1", "--dimension", str(D)
    runs = (
        ("plan", *wanted, "--out", "plan"),
        ("encode", "plan", "mine.npy", "--out", "reports"),
        ("decode", "plan", "reports", "--out", "centers.json"),
    )
    all_done = [cloister(*run, folder=tmp_path) for run in runs]
    assert [done.returncode for done in all_done] == [0, 0, 0], all_done
    done = all_done[-1]
    assert done.stderr == ""
    assert done.stdout.startswith("1,000 reports, 100.0% of the planned users\n")
    assert "(replace one row) epsilon = 2, Local trust" in done.stdout
    assert "SIMULATED" not in done.stdout
    assert done.stdout.endswith("\nsaved to centers.json\n")
    result = Result.load(tmp_path / "centers.json")
    assert result.centers.shape == (3, D)
    assert not result.privacy.simulated
    assert result.details["reports"]["accepted"] == N
    assert result.details["reports"]["share of the planned users"] == 1.0
    assert sum(result.details["reports"]["per question"]) == N


def test_json_for_programs_and_a_line_per_refusal_for_people(folder: Path, sent: pa.RecordBatch) -> None:
    parquet(folder / "reports" / "part-1.parquet", sent.slice(0, 10))
    (folder / "reports" / "part-2.parquet").write_bytes(b"nothing")
    done = cloister("decode", "plan", "reports", "--out", "c.npz", "--json", folder=folder)
    assert done.returncode == 0
    assert done.stderr.splitlines() == [
        "refused 1 files or batches that are damaged or cut short (the first: 'reports/part-2.parquet')",
        "refused 10 reports of users who have reported already (the first: 'reports/part-1.parquet')",
    ]
    said = json.loads(done.stdout)
    assert said == Result.load(folder / "c.npz").as_dict()
    assert said["details"]["reports"]["refused"]["duplicate"] == 10
    strict = cloister("decode", "plan", "reports", "--out", "d.json", "--strict", folder=folder)
    assert (strict.returncode, strict.stdout) == (2, "")
    said = "cloister: 'reports/part-2.parquet' is one of the files or batches that are damaged or cut short\n"
    assert strict.stderr == said
    assert not (folder / "d.json").exists()


def test_too_few_reports_to_learn_anything_are_warned_of(tmp_path: Path) -> None:
    """As the plan's own warning: v falls as one over the number of reports.."""
    wanted = publish(Request(k=3, method="one-round", epsilon=2.0, bounds="ball:1", rows=20_000, seed=0), dimension=D)
    assert wanted.outlook is not None
    enough = int(wanted.outlook.error * wanted.rows)
    assert 20 < enough < N
    wanted.write(tmp_path / "plan", "")
    np.save(tmp_path / "few.npy", ROWS[: enough // 2])
    np.save(tmp_path / "more.npy", ROWS[: enough + 1])
    for name, told in (("few", True), ("more", False)):
        assert cloister("encode", "plan", f"{name}.npy", "--out", name, folder=tmp_path).returncode == 0
        done = cloister("decode", "plan", name, folder=tmp_path)
        assert done.returncode == 0
        assert ("expect no better than one centre" in done.stderr) == told


def test_what_is_wrong_is_said_in_one_line(folder: Path, plan: CollectionPlan) -> None:
    (folder / "empty").mkdir()
    changed = folder / "changed"
    shutil.copytree(folder / "plan", changed)
    (changed / "plan.json").write_text((folder / "plan" / "plan.json").read_text().replace('"k": 3', '"k": 4'))
    other = publish(Request(k=3, method="one-round", epsilon=1.0, bounds="ball:1", rows=N, seed=1), dimension=D)
    other.write(folder / "other", "")
    wrong = {
        "nowhere reports": "cannot read the plan",
        "changed reports": "changed after it was published",
        "plan empty": "there are no files of reports",
        "plan nothing.parquet": "cannot be opened",
        "other reports": "no report can be used; refused 1 files or batches of reports that answer another plan",
        "plan plan/plan.json": "no report can be used; refused 1 files that hold no reports",
        "plan reports --out c.txt": "results are saved as .json or .npz",
        "plan nothing --out no/c.json": "there is no folder no",
    }
    for arguments, said in wrong.items():
        done = cloister("decode", *arguments.split(), folder=folder)
        assert (done.returncode, done.stdout) == (2, ""), arguments
        assert said in done.stderr
        assert done.stderr.count("\n") == 1
        assert done.stderr.startswith("cloister: ")


def test_a_file_that_was_cut_short_anywhere_counts_for_nothing(folder: Path, plan: CollectionPlan) -> None:
    some = pq.read_table(folder / "reports" / "part-0.parquet").slice(0, 40).to_batches()[0]
    whole = decode(plan, parquet(folder / "w.parquet", some)).result.as_dict()
    for write, ending in ((parquet, "parquet"), (arrow, "arrow")):
        small = write(folder / f"small.{ending}", some).read_bytes()
        cuts = np.unique(np.linspace(0, len(small) - 1, 150).astype(int))
        for cut in cuts:
            (folder / f"cut.{ending}").write_bytes(small[:cut])
            said = "no report can be used; refused 1 files or batches that are damaged or cut"
            with pytest.raises(CloisterError, match=said):
                decode(plan, folder / f"cut.{ending}")
        both = decode(plan, [folder / f"cut.{ending}", folder / f"small.{ending}"])
        assert both.intake.refused == {"damaged": 1}
        assert np.array_equal(both.result.centers, whole["centers"])


def flipped(content: bytes, rng: np.random.Generator) -> bytes:
    bits = np.frombuffer(content, np.uint8).copy()
    bits[rng.integers(len(bits))] ^= np.uint8(1 << rng.integers(8))
    return bits.tobytes()


def test_a_flipped_bit_is_found_where_pages_have_checksums(folder: Path, plan: CollectionPlan) -> None:
    """Data pages are covered, the footer is not: what it says must fit, or it says nothing about the reports."""
    some = pq.read_table(folder / "reports" / "part-0.parquet").slice(0, 300).to_batches()[0]
    path = parquet(folder / "small.parquet", some)
    content, rng, refused = path.read_bytes(), np.random.default_rng(5), 0
    expected = decode(plan, path).result.centers
    footer = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    for i in range(200):
        damaged = flipped(content[:footer], rng) + content[footer:] if i % 2 else flipped(content, rng)
        path.write_bytes(damaged)
        try:
            found = decode(plan, path)
        except CloisterError:
            refused += 1
            continue
        if found.intake.accepted == 300:
            assert np.array_equal(found.result.centers, expected)
        else:
            assert found.intake.refused, "reports went missing silently"
    assert refused > 80


@pytest.mark.slow
def test_ten_thousand_malformed_reports_and_as_many_files_are_refused_in_a_line_per_kind(
    folder: Path, plan: CollectionPlan, sent: pa.RecordBatch
) -> None:
    rng, reports = np.random.default_rng(6), folder / "reports"
    expected = decode(plan, reports).result
    content = (reports / "part-0.parquet").read_bytes()
    for i in range(10_000):
        junk = content[: rng.integers(len(content))] if i % 2 else rng.bytes(int(rng.integers(300)))
        (reports / f"bad-{i}.{('parquet', 'arrow')[i % 3 == 0]}").write_bytes(junk)
    for i in range(10):
        columns = list(sent.columns)
        if i < 2:  # stamps of other questions
            for at in (at for at, name in enumerate(sent.schema.names) if name.endswith("question")):
                columns[at] = pa.array([v and int(rng.integers(2**63)) for v in columns[at].to_pylist()], pa.uint64())
        elif i < 5:
            columns[1:] = [pa.nulls(N, column.type) for column in columns[1:]]
        else:
            columns[0] = pa.array(rng.integers(N, 2**63, N), pa.uint64())
        arrow(reports / f"a-{i}.arrow", pa.RecordBatch.from_arrays(columns, schema=sent.schema))
    done = cloister("decode", "plan", "reports", "--out", "c.json", folder=folder)
    assert done.returncode == 0
    lines = [line.split(" (the first")[0] for line in done.stderr.splitlines()]
    assert lines == [
        "refused 10,000 files or batches that are damaged or cut short",
        "refused 5,000 reports of user numbers that the plan does not have",
        "refused 3,000 reports that answer what their user is not asked, or leave out what she is asked",
        "refused 2,000 reports with an answer that no encoder of this plan sends",
    ]
    assert np.array_equal(Result.load(folder / "c.json").centers, expected.centers)


@pytest.mark.slow
def test_a_killed_decoder_leaves_the_old_result_or_the_new_one(folder: Path) -> None:
    run = [PROGRAM, "decode", "plan", "reports", "--out", "c.json"]
    started = time.monotonic()
    subprocess.run(run, check=True, capture_output=True, cwd=folder)
    whole, expected = time.monotonic() - started, (folder / "c.json").read_bytes()
    for old in (b"the old one", None):
        for wait in np.random.default_rng(7).uniform(0, whole, 3):
            (folder / "c.json").unlink(missing_ok=True)
            if old is not None:
                (folder / "c.json").write_bytes(old)
            process = subprocess.Popen(run, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(float(wait))
            process.send_signal(signal.SIGKILL)
            process.wait()
            found = (folder / "c.json").read_bytes() if (folder / "c.json").exists() else None
            assert found in (old, expected)
