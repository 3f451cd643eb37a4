"""Programs that do not get to their end: what is finished is printed or found again, what is not says in one line how
to go on.

Where the operating system has a say (signals, pipes, full disks, encodings) they run in processes of their own; where
only the moment matters, an interrupt or a full disk is put in its place in this one.
"""

from __future__ import annotations

import errno
import json
import os
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cloister.accounting.ledger.ledger import Ledger
from cloister.accounting.ledger.run import Run
from cloister.collection.plan.publish import publish
from cloister.core.session import Session
from cloister.run.request import Request
from cloister.run.result import Result
from tests.collection import rounds_fakes, shuffled_plans
from tests.in_process import PROGRAM, cloister, ran

ODD = ("price [/m2]", "[red]größe ☃ :smile:\n")
FIT = "fit rows.parquet --columns * -k 3 --epsilon 1 --delta 1e-6 --bounds=-1:1 --rows 1000 --method fastlloyd"
PAID = "--ledger budget.db --dataset 'my [set]'"


def program(line: str, folder: Path, encoding: str = "utf-8", **streams: Any) -> subprocess.CompletedProcess[str]:
    """In a process of its own, whose output is held back as a user's is."""
    given = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **streams}
    own = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    return subprocess.run(
        [PROGRAM, *shlex.split(line)],
        check=False,
        cwd=folder,
        text=True,
        encoding=encoding,
        env={**own, "COLUMNS": "120", "PYTHONIOENCODING": encoding},
        **given,
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rows = np.random.default_rng(0).normal(0, 0.3, (1000, 2))
    pq.write_table(pa.table(dict(zip(ODD, rows.T, strict=True))), tmp_path / "rows.parquet")
    Ledger.open(tmp_path / "budget.db", create=True).declare("my [set]", 10.0, 1e-4)
    return tmp_path


def said(done: subprocess.CompletedProcess[str]) -> str:
    """What is said beside the line that tells which columns are used."""
    return "".join(line for line in done.stderr.splitlines(True) if not line.startswith("columns used: price [/m2], "))


def one_line(done: subprocess.CompletedProcess[str]) -> str:
    """What a person is told: one line, and no traceback."""
    lines = said(done).strip().splitlines()
    assert len(lines) == 1, done.stderr
    assert lines[0].startswith("cloister: ")
    return lines[0]


def the_run(folder: Path) -> Any:
    return Ledger.open(folder / "budget.db").runs()[-1]


def test_names_of_columns_are_text_and_never_markup(folder: Path) -> None:
    shown = ran(FIT, folder).stdout
    assert "price [/m2]" in shown
    assert r"[red]größe ☃ :smile:\n" in shown


@pytest.mark.thorough
@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_letters_that_a_terminal_lacks_are_printed_as_escapes(encoding: str, folder: Path) -> None:
    done = program(FIT, folder, encoding)
    assert (done.returncode, said(done)) == (0, "")
    assert r"\u2603" in done.stdout
    assert ("größe" in done.stdout) == (encoding == "latin-1")
    assert "epsilon = 1, delta = 1e-06, Central trust" in done.stdout
    refused = program(f"{FIT} --columns ☃", folder, encoding)
    assert (refused.returncode, r"no column '\u2603'" in one_line(refused)) == (2, True)


def closed_pipe(line: str, folder: Path) -> subprocess.CompletedProcess[str]:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        return program(line, folder, stdout=writing)
    finally:
        os.close(writing)


@pytest.mark.thorough
def test_a_closed_pipe_ends_quietly_unless_it_was_the_only_place_of_the_result(folder: Path) -> None:
    quiet = closed_pipe(f"{FIT} --out result.json", folder)
    assert (quiet.returncode, said(quiet)) == (1, "")
    assert Result.load(folder / "result.json").columns == ODD
    told = closed_pipe(FIT, folder)
    (kept,) = folder.glob("cloister-result-*.json")
    assert told.returncode == 1
    assert str(kept) in one_line(told)
    assert Result.load(kept).columns == ODD


@pytest.mark.thorough
@pytest.mark.parametrize("line", ["describe fastlloyd", "--version"])
def test_an_output_that_cannot_be_written_is_one_line_for_every_program(line: str, tmp_path: Path) -> None:
    with open("/dev/full", "w") as full:
        done = program(line, tmp_path, stdout=full)
        assert done.returncode == 1
        assert one_line(done) == "cloister: cannot write the output: No space left on device"
        assert program(line, tmp_path, stdout=full, stderr=full).returncode == 1
    quiet = closed_pipe(line, tmp_path)
    assert (quiet.returncode, said(quiet)) == (1, "")


def full(*_: Any) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def interrupt(*_: Any, **__: Any) -> None:
    raise KeyboardInterrupt


def ended(line: str, folder: Path) -> tuple[int, str]:
    """How a line ends: its exit code, and what is said."""
    done = cloister(*shlex.split(line), folder=folder)
    return done.returncode, said(done)


def cut(where: str, fault: Callable[..., Any], line: str, folder: Path) -> tuple[int, str]:
    """The same where a function fails so."""
    with patch(where, fault):
        return ended(line, folder)


def test_a_full_disk_under_the_result_says_the_same_and_leaves_no_litter(folder: Path) -> None:
    sync = os.fsync

    def result_alone(file: int) -> None:
        """The ledger's key and counter are synced, too."""
        if any(folder.glob(".result.json.*.tmp")):
            full()
        sync(file)

    code, told = cut("cloister.run.result.os.fsync", result_alone, f"{FIT} {PAID} --out result.json", folder)
    run = the_run(folder)
    assert (code, run.state) == (2, "open")
    assert told.startswith(
        f"cloister: cannot write result.json: No space left on device; run {run.id} is open in budget.db"
    )
    assert f"go on with {PAID} --resume {run.id}" in told
    code, told = cut("cloister.run.result.os.fsync", interrupt, f"{FIT} --out result.json", folder)
    assert (code, told) == (130, "cloister: interrupted; nothing was released: start it again\n")
    files = ["budget.db", "budget.db.count", "budget.db.key", "rows.parquet"]
    assert sorted(path.name for path in folder.iterdir()) == files


@pytest.mark.parametrize(
    ("where", "ledger", "says"),
    [
        ((Session, "ask"), False, "nothing was released: start it again"),
        (
            (Ledger, "reserve"),
            True,
            "no run was opened, unless 'cloister ledger show budget.db' has a new one: start it again",
        ),
        ((Run, "finish"), True, "the result is in result.json"),
    ],
)
def test_ctrl_c_at_other_moments_of_a_fit_says_what_stands(
    where: tuple[Any, str], ledger: bool, says: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(*where, interrupt)
    code, told = ended(f"{FIT} {PAID if ledger else ''} --out result.json", folder)
    assert code == 130
    assert told == f"cloister: interrupted; {says}\n"


def test_a_refusal_while_a_run_is_open_says_so_and_one_before_it_does_not(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(*_: Any) -> None:
        (folder / "rows.parquet").write_bytes(b"another")

    code, told = ended(f"{FIT} {PAID} --epsilon 11", folder)
    assert (code, told.count("\n"), "is open" in told) == (2, 1, False)
    opened = Run.open_round
    monkeypatch.setattr(Run, "open_round", lambda run, *given: (opened(run, *given), gone()))
    code, told = ended(f"{FIT} {PAID}", folder)
    assert (code, told.count("\n")) == (2, 1)
    assert "is not what it was" in told
    run = the_run(folder)
    assert f"run {run.id} is open in budget.db" in told
    assert (run.state, run.epsilon) == ("open", 1.0), "what may have been asked is not given back"


def test_ctrl_c_in_a_round_says_which_run_is_open_and_its_own_words_go_on_with_it(folder: Path) -> None:
    opened = Run.open_round

    def interrupted(run: Run, *given: Any) -> None:
        opened(run, *given)
        interrupt()

    code, told = cut("cloister.accounting.ledger.run.Run.open_round", interrupted, f"{FIT} {PAID}", folder)
    run = the_run(folder)
    assert (code, run.state) == (130, "open")
    about = f"cloister: interrupted; run {run.id} is open in budget.db, and its budget stays reserved: go on with "
    words = told.removeprefix(about).removesuffix(" and the same options, which pays nothing twice\n")
    assert told == f"{about}{words} and the same options, which pays nothing twice\n"
    ran(f"{FIT} {words}", folder)
    (data,) = Ledger.open(folder / "budget.db").status()
    assert [run.state for run in data.runs] == ["done"]
    assert data.spent.epsilon <= 1


def test_ctrl_c_while_a_result_is_printed_says_where_it_is(folder: Path) -> None:
    code, told = cut("cloister.commands.common.print_table", interrupt, FIT, folder)
    (kept,) = folder.glob("cloister-result-*.json")
    assert code == 130
    assert told.startswith(f"cloister: interrupted; the result is in {kept}")


def test_a_result_that_can_be_kept_nowhere_is_not_said_to_be_kept(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cloister.commands.common.print_table", full)
    monkeypatch.setattr("cloister.run.result.os.fsync", full)
    code, told = ended(FIT, folder)
    assert code == 1
    assert told.endswith(
        "the result is lost, since it can be saved nowhere: give --out next time, which saves it before it is printed\n"
    )


@pytest.fixture
def people(tmp_path: Path) -> Path:
    request = Request(k=2, method="one-round", epsilon=2.0, bounds="ball:1", rows=500, seed=1)
    publish(request, dimension=2).write(tmp_path / "plan", "")
    np.save(tmp_path / "mine.npy", np.random.default_rng(0).normal(0, 0.3, (500, 2)))
    return tmp_path


ENCODE = "encode plan mine.npy --out reports"
STATE = "--state mine.state"
UNPRINTED = "cloister: cannot write the output: No space left on device; "


def test_an_encoder_that_is_cut_off_gives_the_same_reports_when_it_is_told_to_go_on(people: Path) -> None:
    hint = (
        "no report was written: run it again with --state mine.state, which gives the same reports and pays nothing "
        "twice\n"
    )
    drawn, encode = "cloister.collection.client.encoder.PlanEncoder.wrap", f"{ENCODE} {STATE}"
    assert cut(drawn, interrupt, encode, people) == (130, f"cloister: interrupted; {hint}")
    code, told = cut("cloister.collection.plan.durable_files.flush", full, encode, people)
    assert (code, told.endswith(hint), told.count("\n")) == (2, True, 1)
    assert "No space left on device. No report was written" in told
    code, told = cut("cloister.commands.encode.show", full, encode, people)
    (path,) = (people / "reports").iterdir()
    assert code == 1
    assert told.endswith(f"{UNPRINTED}the reports are in reports/{path.name}, whole: send them\n")
    ran(f"encode plan mine.npy --out again {STATE}", people)
    (other,) = (people / "again").iterdir()
    assert path.read_bytes() == other.read_bytes()


def test_an_encoder_without_a_state_that_is_cut_off_says_that_nothing_was_written(people: Path) -> None:
    code, told = cut("cloister.collection.client.encoder.PlanEncoder.draw", interrupt, ENCODE, people)
    assert (code, told.splitlines()[-1]) == (130, "cloister: interrupted; no report was written: run it again")


def test_a_decoder_that_is_cut_off_says_that_it_can_be_run_again(people: Path) -> None:
    again = "run it again: the reports are as they were, and decoding them costs nobody anything\n"
    ran(ENCODE, people)
    decode, saved = "decode plan reports", "decode plan reports --out c.json"
    asked, printed = "cloister.core.session.Session.ask", "cloister.commands.decode.show"
    assert cut(asked, interrupt, decode, people) == (130, f"cloister: interrupted; {again}")
    unsaved = f"cloister: cannot write c.json: No space left on device; {again}"
    assert cut("cloister.run.result.os.fsync", full, saved, people) == (2, unsaved)
    assert cut(printed, full, decode, people) == (1, f"{UNPRINTED}{again}")
    assert cut(printed, full, saved, people) == (1, f"{UNPRINTED}the result is in c.json\n")


def test_a_server_that_is_cut_off_between_rounds_goes_on_where_it_was(tmp_path: Path) -> None:
    folder = rounds_fakes.prepared(tmp_path, rounds_fakes.planned())
    ran("answer plan mine.npy --state mine.state --out reports", folder)
    for where, fault, code in (
        ("cloister.collection.plan.transcript.Transcript.publish", interrupt, 130),
        ("cloister.collection.plan.durable_files.os.fsync", full, 2),
        ("cloister.commands.advance.show", full, 1),
    ):
        found, told = cut(where, fault, "advance plan --reports reports", folder)
        assert found == code
        assert told.endswith("run it again: a round that is closed stays closed, and the result of all is the same\n")
        assert told.count("\n") == 1
    standing = json.loads(ran("rounds plan --json", folder).stdout)
    assert standing["open"] == 2


def test_a_shuffler_that_is_cut_off_releases_nothing_and_says_so(tmp_path: Path) -> None:
    plan = shuffled_plans.small_plan()
    plan.write(tmp_path / "plan", "")
    shuffled_plans.folder_of(tmp_path / "reports", shuffled_plans.sent(plan))
    shuffle = "shuffle plan reports --out shuffled"
    nothing = "nothing was released: run it again, which also clears away what this run has left\n"
    batch = "cloister.collection.wire.messages.ReleaseForm.batch"
    assert cut(batch, interrupt, shuffle, tmp_path) == (130, f"cloister: interrupted; {nothing}")
    code, told = cut("cloister.collection.shuffler.release.flush", full, shuffle, tmp_path)
    assert (code, told.endswith(nothing), told.count("\n")) == (2, True, 1)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["plan", "reports"]
    whole = f"{UNPRINTED}the messages are in shuffled, whole and shuffled: do not shuffle this plan again\n"
    assert cut("cloister.commands.shuffle.show", full, shuffle, tmp_path) == (1, whole)
