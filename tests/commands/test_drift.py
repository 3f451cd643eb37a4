"""``cloister drift`` and ``explain --every`` from files of rows to their words."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from cloister.run.result import Result
from tests.in_process import ran

PUBLIC = "--epsilon 1 --delta 1e-6 --rows 6000 --category ward=A,B --bounds bounds.toml"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three months of rows, of which the last has a new group; the first one's result."""
    folder = tmp_path_factory.mktemp("drift")
    for name, elsewhere in (("january", 0), ("february", 0), ("march", 600)):
        g = np.random.default_rng(len(name))
        of = g.choice(2, 6000)
        age, visits = np.where(of, 70, 30) + 3 * g.normal(size=6000), np.where(of, 8, 2) + g.normal(size=6000)
        age[:elsewhere] += 45
        rows = pd.DataFrame({"age": age, "visits": visits, "ward": np.where(of, "B", "A")})
        rows.to_parquet(folder / f"{name}.parquet")
        rows[["ward", "visits", "age"]].to_csv(folder / f"{name}.csv", index=False)
    (folder / "bounds.toml").write_text("age = [0, 120]\nvisits = [0, 20]\n")
    ran(f"fit january.parquet -k 2 {PUBLIC} --out january.json", folder)
    return folder


def test_the_first_count_is_a_reference_for_the_next_ones(folder: Path) -> None:
    first = ran("drift january.json january.parquet --epsilon 0.3 --out reference.json", folder).stdout
    assert "sizes alone were compared" in first
    assert "saved to reference.json" in first
    assert Result.load(folder / "reference.json").method["name"] == "kept-centers"
    calm = json.loads(ran("drift reference.json february.csv --epsilon 0.3 --json", folder).stdout)
    assert not calm["shifted"]
    assert abs(calm["cost"] - 1) < 6 * calm["cost_error"]
    assert calm["privacy"]["epsilon"] == 0.3
    assert calm["privacy"]["trust"] == "Central"
    moved = ran("drift reference.json march.parquet --epsilon 0.3", folder).stdout
    assert "SHIFTED" in moved
    assert "group 1" in moved


def test_an_answer_that_protects_rows_where_the_result_protects_users_says_so(tmp_path: Path) -> None:
    rows = pd.DataFrame({"x": np.random.default_rng(0).uniform(-1, 1, 3000), "who": np.arange(3000) // 3})
    rows.to_parquet(tmp_path / "rows.parquet")
    users = "--user-column who --rows-per-user 2"
    ran(f"fit rows.parquet -k 2 --epsilon 1 --delta 1e-6 --columns x --bounds=-1:1 {users} --out a.json", tmp_path)
    said = "WARNING: the earlier result protects users, and this answer single rows"
    assert said in ran("drift a.json rows.parquet --epsilon 0.3", tmp_path).stderr
    assert said not in ran(f"drift a.json rows.parquet --epsilon 0.3 {users}", tmp_path).stderr
    read = "3,000 rows. These are all rows: the run kept at most 2 of each user."
    assert read in ran("evaluate a.json rows.parquet --no-reference", tmp_path).stdout
    assert read in ran("profile a.json --rows rows.parquet", tmp_path).stdout


def test_explain_says_how_long_a_lifetime_lasts(folder: Path) -> None:
    words = f"explain january.parquet -k 2 {PUBLIC} --every 12 --lifetime-epsilon 3 --lifetime-delta 1e-5"
    assert "still holds 3 (basic composition)" in ran(words, folder).stdout
    found = json.loads(ran(f"{words} --json", folder).stdout)
    assert found["repeated"]["runs"]["basic"] == 3
