"""Runs that go on, with the rows that they began with, and finished ones whose results are asked for again."""

from __future__ import annotations

import contextlib
import json
import os
import random
import re
import shlex
import shutil
import signal
import sqlite3
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from cloister.accounting.ledger.counter import counter_of
from cloister.accounting.ledger.database import transaction
from cloister.accounting.ledger.ledger import Ledger
from cloister.accounting.ledger.run import record_of
from cloister.core.errors import InvalidInput, Refused
from cloister.core.randomness import NoiseRng
from cloister.plugins.populations.arrays import Arrays
from cloister.plugins.populations.files import Files
from cloister.rows.options import Reading
from cloister.run.account import Account
from cloister.run.fit import fit, parties, source
from cloister.run.request import Request
from cloister.run.result import Result
from tests.asking import asking
from tests.in_process import PROGRAM, ran, refused
from tests.killed import killed_after
from tests.waiting import PATIENCE

REQUEST = asking(k=3, method="su-lloyd", epsilon=1.0, bounds=(-1, 1), rows=2000, options={"rounds": 2})
ZOOMED = Request(k=3, method="hst-means", epsilon=1.0, delta=1e-6, bounds=(-900, 900), rows=2000)
COUNTED = Request(k=3, method="hst-means", epsilon=1.0, delta=1e-6, bounds=(-1, 1), zoom="off")
MEDIAN = Request(k=3, method="hst-median", epsilon=1.0, delta=1e-6, bounds=(-1, 1), rows=2000)
CORESET = Request(k=2, method="tree-coreset", epsilon=0.5, delta=1e-6, bounds=(-1, 1), rows=2000)
KEY = bytes(range(32))


def table(seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(0, 0.3, (2000, 2))


def run(ledger: Ledger, population: Any, request: Request = REQUEST, **more: Any) -> Result:
    return fit(request, population, account=Account(ledger=ledger.path, dataset="mine", **more))


def cut_off(ledger: Ledger, population: Any, looks: int = 3, request: Request = REQUEST) -> str:
    """A run that is killed after so many looks."""
    with killed_after(looks):
        run(ledger, population, request)
    return ledger.runs()[-1].id


def journalled(path: Path, run: str) -> list[bytes]:
    """The values of every look that a ledger holds of a run, in order, as stored."""
    with transaction(path, "reading") as db:
        return [look.values.tobytes() for look in record_of(db, run).lookups]


@pytest.mark.parametrize(
    ("request_", "looks"),
    [
        *((REQUEST, looks) for looks in (1, 4, 5, 8)),
        *((ZOOMED, looks) for looks in (1, 12)),
        *((COUNTED, looks) for looks in (1, 2)),
        (MEDIAN, 2),
        (CORESET, 2),
    ],
)
def test_a_run_cut_off_at_any_look_goes_on_with_what_it_released_and_pays_once(
    ledger: Ledger, request_: Request, looks: int
) -> None:
    """Two rounds of four looks: at the ends of both; in a frame that it finds first; at the count of the rows, and past
    it; and before what a solver makes of looks. Finished, it is computed again from its record, without rows and for
    nothing."""
    population = source(table())
    name = cut_off(ledger, population, looks, request_)
    released, spent = journalled(ledger.path, name), ledger.status()[0].spent.epsilon
    assert len(released) == looks
    result = run(ledger, population, request_, resume=name)
    assert journalled(ledger.path, name)[:looks] == released
    assert 0.999 * spent <= ledger.status()[0].spent.epsilon <= spent  # what is left comes back
    before = ledger.path.read_bytes()
    assert run(ledger, Gone(result.columns), request_, resume=name).as_dict() == result.as_dict()
    assert ledger.path.read_bytes() == before
    assert [each.state for each in ledger.runs()] == ["done"]


def differing(one: Any, other: Any) -> list[str]:
    """Which marks of two populations differ."""
    fingerprints = other.fingerprints(KEY)
    return [what for what, mark in one.fingerprints(KEY).items() if fingerprints[what] != mark]


# rows


def test_a_run_whose_noise_can_be_repeated_is_not_charged(ledger: Ledger) -> None:
    account = Account(ledger=ledger.path, dataset="mine")
    with pytest.raises(InvalidInput, match="protects nobody, and cannot be charged to a ledger"):
        fit(REQUEST, Arrays(table()), account=account, noise=NoiseRng.for_tests(1))
    assert not ledger.runs()
    assert not fit(REQUEST, Arrays(table()), noise=NoiseRng.for_tests(1)).privacy.protects
    assert fit(REQUEST, Arrays(table()), account=account, noise=NoiseRng.secret()).privacy.protects


def test_a_run_does_not_go_on_with_other_rows_in_memory(ledger: Ledger) -> None:
    name = cut_off(ledger, source(table()))
    one_moved = table()
    one_moved[7, 1] += 0.1
    for rows, differ in ((one_moved, "moved: the rows differ"), (table()[:-1], "the number of rows, the rows differ")):
        with pytest.raises(Refused, match=f"began with other rows, or they have .*{differ}"):
            run(ledger, source(rows), resume=name)
    assert ledger.runs()[-1].state == "open"
    run(ledger, source(table()), resume=name)
    assert ledger.runs()[-1].state == "done"


def test_rows_in_memory_are_the_same_however_they_lie_there() -> None:
    rows = table()
    for same in (np.asfortranarray(rows), rows[::-1][::-1]):
        assert differing(source(rows), source(same)) == []
    for other in (rows[::-1], rows[:, ::-1], -rows, rows.reshape(-1, 1)):
        assert "the rows" in differing(source(rows), source(other))
    assert source(rows).fingerprints(bytes(32)) != source(rows).fingerprints(KEY)


def written(folder: Path, name: str = "a.npy", seed: int = 0) -> Path:
    np.save(folder / name, table(seed))
    return folder / name


def touched(path: Path) -> None:
    os.utime(path, ns=(1, 1))


def shortened(path: Path) -> None:
    np.save(path, table()[:-1])


def changed_at_the_end(path: Path) -> None:
    facts, rows = path.stat(), table()
    rows[-1] += 0.1
    np.save(path, rows)
    os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns))


@pytest.mark.parametrize(
    ("change", "differs"),
    [
        (touched, "the times of their last change differ"),
        (shortened, "the sizes of files, the times of their last change, how files begin and end differ"),
        (changed_at_the_end, "how files begin and end differ"),
    ],
)
def test_a_run_does_not_go_on_with_files_that_changed(
    ledger: Ledger, tmp_path: Path, change: Callable[[Path], None], differs: str
) -> None:
    path = written(tmp_path)
    name = cut_off(ledger, source(path))
    change(path)
    with pytest.raises(Refused, match=f"they have moved: {differs}"):
        run(ledger, source(path), resume=name)
    run(ledger, source(path), resume=name, same_rows=True)
    assert ledger.runs()[-1].state == "done"


def test_a_run_does_not_go_on_with_a_long_file_of_the_same_size_and_time_that_ends_otherwise(
    ledger: Ledger, tmp_path: Path
) -> None:
    """A file whose beginning says nothing of its end."""
    rows = np.random.default_rng(0).normal(0, 0.3, (20_000, 2))
    path = tmp_path / "long.npy"
    np.save(path, rows)
    name, facts = cut_off(ledger, source(path)), path.stat()
    rows[-1] += 0.1
    np.save(path, rows)
    os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns))
    with pytest.raises(Refused, match="they have moved: how files begin and end differ"):
        run(ledger, source(path), resume=name)


def test_files_in_another_order_or_number_are_other_rows_and_in_another_folder_the_same(tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    paths = [written(tmp_path / "here", f"{name}.npy", seed) for seed, name in enumerate("abc")]
    began = source(paths)
    assert "the names of files, or their order" in differing(began, source(paths[::-1]))
    assert "the number of files" in differing(began, source(paths[:2]))
    fingerprints = began.fingerprints(KEY)
    shutil.move(tmp_path / "here", tmp_path / "there")
    assert source([tmp_path / "there" / path.name for path in paths]).fingerprints(KEY) == fingerprints


TWO_WAYS = "x;y;ward;p,x,y,ward"
"""A header of which comma and semicolon make the same names, of other cells."""

READ: dict[str, Any] = {"columns": ["x", "y"], "missing": "refuse", "categories": {"ward": ["\u00e4", "\u00c3\u00a4"]}}


def spelt(path: Path) -> Path:
    """A file that can be read in many ways, each of which makes other rows of the same people."""
    lines = (f"{a};{b};\u00e4;p,{c},{d},\u00e4" for a, b, c, d in np.hstack([table(0), table(1)]).round(3))
    path.write_text("\n".join([TWO_WAYS, *lines]) + "\n", encoding="utf-8")
    return path


OTHERWISE: list[tuple[dict[str, Any], str]] = [
    ({"encoding": "latin-1"}, "--encoding (encoding=)"),
    ({"delimiter": ";"}, "--delimiter (delimiter=)"),
    ({"columns": ["y", "x"]}, "--columns (columns=)"),
    ({"missing": "drop"}, "--missing (missing=)"),
    ({"categories": {"ward": ["\u00c3\u00a4", "\u00e4"]}}, "--category (categories=)"),
    ({"encoding": "latin-1", "delimiter": ";"}, "--delimiter (delimiter=), --encoding (encoding=)"),
]


def test_a_run_does_not_go_on_with_a_file_that_is_read_otherwise(ledger: Ledger, tmp_path: Path) -> None:
    """Cut off in a round: its looks are of one reading, and those to come would be of another under the same charge.
    Whoever says that the rows are the same means the file."""
    path = spelt(tmp_path / "a.csv")
    name = cut_off(ledger, source(path, **READ))
    for other, differs in OTHERWISE:
        for same_rows in (False, True):
            with pytest.raises(Refused, match=re.escape(f"read its rows with other options: {differs} differ.")):
                run(ledger, source(path, **READ | other), resume=name, same_rows=same_rows)
    assert ledger.runs()[-1].state == "open"
    run(ledger, source(path, **READ, encoding="UTF8", delimiter=","), resume=name)
    assert ledger.runs()[-1].state == "done"


def test_two_categories_whose_features_have_the_same_name_are_two(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("a,a=b\nb=c,d\n")
    first, second = (source(path, categories=c) for c in ({"a": ["b=c"]}, {"a=b": ["c"]}))
    assert first.columns == second.columns
    assert differing(first, second) == ["--columns (columns=)", "--category (categories=)"]


def test_who_the_users_are_what_they_are_called_and_where_their_numbers_begin_is_said_by_marks(tmp_path: Path) -> None:
    """A run does not go on with the same rows of other users: it would keep others of them."""
    path = tmp_path / "a.csv"
    path.write_text("x,a,b\n1,2,3\n4,5,6\n")
    for rows, kind in ((path, Files), (pd.read_csv(path), Arrays)):
        of_a, of_b = (source(rows, columns=["x"], user_column=column) for column in ("a", "b"))
        assert "--user-column (user_column=)" in differing(of_a, of_b)
        zero, one = (kind(rows, Reading(columns=["x"]), first=first) for first in (0, 1))
        assert differing(zero, one) == ["the number of the first user"]
    for names in (([2, 5], [5, 2]), (["p", "q"], ["p", "p"])):
        one, other = (source(np.array([[1.0], [4.0]]), users=users) for users in names)
        assert differing(one, other) == ["the users"]


def test_parties_are_known_again_each_by_its_own_rows() -> None:
    first, same, other = (parties({"north": source(table()), "south": source(table(seed))}) for seed in (1, 1, 2))
    assert (differing(first, same), differing(first, other)) == ([], ["the rows (south)"])


def test_marks_are_in_no_result_and_no_status(ledger: Ledger) -> None:
    result = run(ledger, source(table()))
    key = ledger.path.with_name("budget.db.key").read_bytes()
    shown = json.dumps(result.as_dict()) + repr(ledger.status())
    assert key.hex() not in shown
    assert not any(mark.hex() in shown for mark in source(table()).fingerprints(key).values())


def test_a_data_set_without_its_ledger_is_no_account() -> None:
    """Such a run would be charged nowhere."""
    for ledger, dataset in ((None, "mine"), ("budget.db", None)):
        with pytest.raises(InvalidInput, match="give both --ledger and --dataset"):
            Account.of(ledger, dataset)
    with pytest.raises(InvalidInput, match="--resume needs the ledger"):
        Account.of(None, "mine", "run")
    with pytest.raises(InvalidInput, match="give --resume too"):
        Account.of("budget.db", "mine", same_rows=True)
    assert Account.of(None, None) is None


FIT = "fit a.npy -k 3 --epsilon 1 --bounds=-1:1 --rows 2000 --method su-lloyd --ledger budget.db --dataset mine --json"


# finished runs


class Gone:
    """A population whose rows are not there any more."""

    def __init__(self, columns: tuple[str, ...]) -> None:
        self.columns = columns

    def check(self) -> None:
        raise AssertionError("rows were read")

    def fingerprints(self, key: bytes) -> dict[str, bytes]:
        raise AssertionError("rows were read")

    def gather(self, round: Any, rng: Any) -> tuple[Any, ...]:
        raise AssertionError("rows were read")


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (
            "delete from looks where number = 3",
            "round 0 asks for other buckets|ends early, and there are no rows",
        ),
        (
            "delete from looks where round = 1 and number = (select max(number) from looks)",
            "ends early, and there are no rows",
        ),
        ("delete from rounds where number = 1", "its record lacks round 2"),
    ],
)
def test_a_finished_run_whose_record_ends_early_reads_no_row(ledger: Ledger, damage: str, message: str) -> None:
    first = run(ledger, source(table()))
    with contextlib.closing(sqlite3.connect(ledger.path, isolation_level=None)) as db:
        db.execute(damage)
    counter_of(ledger.path).unlink()  # which would refuse the ledger first
    with pytest.raises(Refused, match=message):
        run(ledger, Gone(first.columns), resume=ledger.runs()[0].id)


def test_the_command_line_asks_for_same_rows_and_prints_a_finished_run_again(ledger: Ledger, tmp_path: Path) -> None:
    path = written(tmp_path)
    resumed = f"{FIT} --set rounds=2 --resume {cut_off(ledger, source(path, columns=['0', '1']))}"
    touched(path)
    assert "resume with --same-rows" in refused(resumed, tmp_path)
    first = ran(f"{resumed} --same-rows", tmp_path).stdout
    done = ledger.runs()
    path.write_bytes(path.read_bytes()[:128] + bytes(len(path.read_bytes()) - 128))  # its header alone is what it was
    assert ran(f"{resumed} --out again.json", tmp_path).stdout == first
    assert Result.load(tmp_path / "again.json").as_dict() == json.loads(first)
    assert ledger.runs() == done


@pytest.mark.thorough
@pytest.mark.parametrize("kills", [2, pytest.param(7, marks=pytest.mark.long)])
def test_a_killed_fit_is_recorded_in_full_and_goes_on_with_the_same_values(
    kills: int, ledger: Ledger, tmp_path: Path
) -> None:
    """kill -9 at random moments after the reservation: whatever was released is in the ledger, the run stays reserved,
    and the resumed run releases those very values and ends with nothing more spent."""
    written(tmp_path)
    moments, cut = random.Random(1), 0

    def start(*more: str) -> subprocess.Popen[str]:
        words, pipe = [PROGRAM, *shlex.split(FIT), "--set", "rounds=80", *more], subprocess.PIPE
        settings = {**os.environ, "OMP_NUM_THREADS": "1"}
        return subprocess.Popen(words, cwd=tmp_path, env=settings, stdout=pipe, stderr=pipe, text=True)

    for count in range(1, kills + 1):
        process = start()
        while len(ledger.runs("mine")) < count and process.poll() is None:
            time.sleep(0.002)
        time.sleep(moments.uniform(0.0, 0.4))
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=PATIENCE)
        before = ledger.status()[0]
        assert before.spent.epsilon == pytest.approx(count)
        run = before.runs[-1]
        if run.state == "done":
            continue
        cut += 1
        released = journalled(ledger.path, run.id)
        done = start("--resume", run.id)
        out, err = done.communicate(timeout=PATIENCE)
        assert done.returncode == 0, err
        assert journalled(ledger.path, run.id)[: len(released)] == released
        assert len(json.loads(out)["privacy"]["spends"]) == 160
        after = ledger.status()[0]
        assert before.spent.epsilon - 1e-9 <= after.spent.epsilon <= before.spent.epsilon  # what is left comes back
        assert after.runs[-1].state == "done"
    assert cut >= kills // 2, "too few kills fell between reservation and end"
