"""``cloister explain``: what a run would do, from public figures alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cloister.core.randomness import PublicRng
from cloister.rows.files.npy import Npy
from cloister.run.explaining import explain
from cloister.run.fit import fit, source
from cloister.run.request import Request, prepare
from tests.in_process import cloister, ran, refused

ROWS = np.random.default_rng(0).normal(0, 0.3, (3000, 2))
BASE = "-k 3 --epsilon 1 --delta 1e-6 --bounds=-1:1 --rows 3000"
COLUMNS = ["x", "y"]


def request(**given: Any) -> Request:
    return Request(**{"k": 3, "epsilon": 1.0, "delta": 1e-6, "bounds": (-1, 1), "rows": 3000, "seed": 1, **given})


@pytest.mark.parametrize(
    ("method", "trust"),
    [
        ("auto", "central"),
        ("auto", "local"),
        ("hst-median", "central"),
        ("one-round", "shuffled"),
        ("fastlloyd", "aggregated"),
    ],
)
def test_the_schedule_is_that_of_the_run(method: str, trust: str) -> None:
    asked = request(method=method, trust=trust, parties=3)
    told = explain(asked, COLUMNS)
    rounds = prepare(asked, COLUMNS).forecast(PublicRng.from_seed(1))
    assert [a.round for a in told.asked] == [round.index + 1 for round in rounds for _ in round.parts]
    assert [a.mechanism for a in told.asked] == [e.mechanism for round in rounds for e in round.events]
    assert [a.kind for a in told.asked] == ["sums" if p.vectors else "counts" for round in rounds for p in round.parts]


def test_shares_add_up_to_the_budget() -> None:
    told = explain(request(method="hst-means"), COLUMNS)
    assert sum(a.share for a in told.asked if a.share is not None) == pytest.approx(1.0, rel=1e-9)


def test_noise_is_what_the_tables_of_a_run_state(monkeypatch: pytest.MonkeyPatch) -> None:
    """In rows for counts, in the caller's units for sums, of all users where a share of them is asked."""
    from cloister.core.session import RecordedTable

    seen = dict[tuple[int, int], float]()
    looked = RecordedTable.at

    def at(self: Any, ids: Any, level: int = 0) -> Any:
        seen[self._at] = float(self.standard_error(ids[:1], level)[0])
        return looked(self, ids, level)

    monkeypatch.setattr(RecordedTable, "at", at)
    for asked in (request(method="fastlloyd"), request(method="one-round", trust="local", bounds=(-1, 3))):
        seen.clear()
        columns = [str(j) for j in range(5)]
        fit(asked, source(np.zeros((3000, 5))))
        told = explain(asked, columns)
        numbers = [seen[key] for key in sorted(seen)]
        assert [a.error for a in told.asked] == pytest.approx(numbers, rel=1e-2)


def test_candidates_errors_and_the_reason_are_in_words_and_in_json() -> None:
    told = explain(request(), COLUMNS)
    assert told.plan.choice is not None
    assert all(candidate.name in told.text for candidate in told.plan.choice.candidates)
    facts = json.loads(json.dumps(told.as_dict()))
    assert facts["auto"]["picked"] == facts["method"]["name"]
    assert "WARNING" in explain(request(epsilon=0.001, rows=100), [str(j) for j in range(10)]).text


# on the command line


class Exploded(Exception):
    """Somebody read rows."""


@pytest.fixture
def rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file whose rows explode when they are read. Its header does not."""
    np.save(tmp_path / "rows.npy", ROWS)

    def explode(*_: Any) -> Any:
        raise Exploded

    for name in ("check", "gather"):
        monkeypatch.setattr(f"cloister.plugins.populations.files.Files.{name}", explode)
    monkeypatch.setattr(Npy, "pieces", explode)
    return tmp_path


def test_explaining_reads_no_row(rows: Path) -> None:
    by_file, by_number, by_name, dry = (
        ran(f"{asked} {BASE} --json", rows).stdout
        for asked in (
            "explain rows.npy",
            "explain --dimension 2",
            "explain --columns x,y",
            "fit rows.npy --dry-run",
        )
    )
    assert by_file == by_number == by_name == dry
    assert json.loads(dry)["schedule"]
    with pytest.raises(Exploded):
        cloister("fit", "rows.npy", *BASE.split(), folder=rows)


def test_a_dry_run_spends_nothing(tmp_path: Path) -> None:
    np.save(tmp_path / "rows.npy", ROWS)
    ran("ledger declare budget.db mine --epsilon 2 --delta 1e-5", tmp_path)
    done = ran(f"fit rows.npy {BASE} --ledger budget.db --dataset mine --dry-run --out r.json", tmp_path)
    assert "nothing was spent" in done.stdout
    assert not (tmp_path / "r.json").exists()
    (mine,) = json.loads(ran("ledger show budget.db --json", tmp_path).stdout)
    assert mine["runs"] == []


def test_explain_takes_what_fit_takes_and_says_the_same(tmp_path: Path) -> None:
    """Rows of users, and every option of rows, privacy and method."""
    table = pa.table({"x": ROWS[:, 0], "y": ROWS[:, 1], "who": np.arange(3000) // 2})
    pq.write_table(table, tmp_path / "rows.parquet")
    alone = f"rows.parquet {BASE} --columns * --user-column who --missing drop --threads 1 --seed 1 --json"
    words = f"{alone} --rows-per-user 2"
    told = ran(f"explain {words}", tmp_path)
    assert "who (names the users)" in told.stderr
    assert told.stdout == ran(f"fit {words} --dry-run", tmp_path).stdout
    assert "rows per user need a curator" in refused(f"explain {words} --trust local", tmp_path)
    assert "rows are of users" in refused(f"explain {alone}", tmp_path)


def test_without_a_number_of_rows_it_says_what_one_would_change() -> None:
    told = explain(request(rows=None), COLUMNS)
    assert "1% of the budget counts the rows first" in told.text
    assert [rows for rows, _, _ in told.by_rows] == [100, 10_000, 1_000_000]
    errors = [error for _, _, error in told.by_rows]
    assert None not in errors
    assert errors == sorted(errors, key=lambda error: -(error or 0))
    assert explain(request(), COLUMNS).by_rows == []


def test_candidates_that_cannot_run_are_named_with_the_reason_by_a_run_and_a_plan_too(tmp_path: Path) -> None:
    """Else a method that an installation lacks, or that takes fewer columns, is passed over without a word."""
    np.save(tmp_path / "wide.npy", np.random.default_rng(0).uniform(-1, 1, (500, 12)))
    why = "grid-means: no Central oracles fit 'grid-means': a grid is for at most 6 columns, not 12: use 'hst-means'"
    words = "-k 2 --epsilon 1 --rows 500 --bounds=-1:1"
    fitted = ran(f"fit wide.npy {words} --out r.json", tmp_path)
    assert f"Candidates that cannot run here: {why}" in fitted.stdout
    candidates = json.loads((tmp_path / "r.json").read_text())["result"]["details"]["auto"]["candidates"]
    assert [c["why"] for c in candidates if c["name"] == "grid-means"] == [why.removeprefix("grid-means: ")]
    local = f"plan {words} --dimension 12 --method auto --trust local --out plan"
    assert "Candidates that cannot run here: " in ran(local, tmp_path).stdout
    assert "Candidates that cannot run here: " in (tmp_path / "plan" / "README.txt").read_text()
