"""The command line, run as a user runs it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cloister.accounting.ledger.ledger import Ledger
from cloister.cli import main
from cloister.core.registry.components import Spec
from cloister.core.registry.registry import Plugin, Registry
from cloister.run.result import Result
from tests.in_process import cloister, program

GOLDEN = Path(__file__).parent / "golden"
BASE = ("-k", "3", "--epsilon", "1", "--delta", "1e-6", "--bounds=-1:1", "--rows", "1000")
FAST = (*BASE, "--method", "fastlloyd")


@pytest.fixture(autouse=True)
def _as_wide_as_golden_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "120")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rows = np.random.default_rng(0).normal(0, 0.3, (1000, 2))
    np.save(tmp_path / "rows.npy", rows)
    pq.write_table(pa.table({"x": rows[:, 0], "y": rows[:, 1], "name": ["a"] * 1000}), tmp_path / "rows.parquet")
    return tmp_path


@pytest.mark.parametrize(
    "name", ["list", "list FrequencyOracle", "describe discrete-laplace", "describe fastlloyd", "plugins"]
)
def test_what_it_prints_is_what_it_printed(name: str) -> None:
    done = cloister(*name.split())
    assert (done.returncode, done.stderr) == (0, "")
    golden = GOLDEN / f"{name.replace(' ', '-')}.txt"
    if os.environ.get("CLOISTER_GOLDEN") == "write":
        golden.write_text(done.stdout)
    assert done.stdout == golden.read_text(), "set CLOISTER_GOLDEN=write to accept the new text"


def test_an_oracle_that_is_biased_is_described_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def holding(cls: str) -> Registry:
        spec = Spec("clamped", "FrequencyOracle", f"tests.testing.zoo_noise:{cls}", "counts", "Central")
        return Registry((Plugin("zoo", "here", (spec,)),))

    for cls, biased in (("Clamped", True), ("ClampedInSilence", False)):
        monkeypatch.setattr("cloister.core.registry.registry.registry", partial(holding, cls))
        assert ("\nbiased: released values may be off" in cloister("describe", "clamped").stdout) is biased
        assert json.loads(cloister("describe", "clamped", "--json").stdout)[0]["biased"] is biased


@pytest.mark.parametrize("arguments", [["--help"], ["list"]])
def test_help_and_list_import_nothing_heavy(arguments: list[str]) -> None:
    code = (
        "import sys; sys.argv = ['cloister', *sys.argv[1:]]\nimport cloister.cli\ntry: cloister.cli.main()\nexcept "
        "SystemExit: pass\n"
    )
    code += (
        "print([m for m in ('numpy', 'scipy', 'sklearn', 'opendp', 'pyarrow', 'pandas') if m in sys.modules], "
        "file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "[]"


def test_fit_saves_and_prints_released_values_only(folder: Path) -> None:
    done = program("fit", "rows.parquet", *BASE, "--columns", "x,y", "--out", "result.json", folder=folder)
    assert done.returncode == 0, done.stderr
    assert "epsilon = 1, delta = 1e-06, Central trust" in done.stdout
    result = Result.load(folder / "result.json")
    assert result.columns == ("x", "y")
    assert result.centers.shape == (3, 2)
    assert set(json.loads((folder / "result.json").read_text())["result"]) == {
        "format",
        "version",
        "columns",
        "centers",
        "weights",
        "method",
        "problem",
        "privacy",
        "details",
    }


def test_json_output_is_the_saved_result(folder: Path) -> None:
    done = cloister("fit", "rows.npy", *BASE, "--json", "--out", "r.npz", folder=folder)
    assert json.loads(done.stdout) == Result.load(folder / "r.npz").as_dict()


def test_a_config_file_carries_the_same_options_and_flags_win(folder: Path) -> None:
    (folder / "bounds.toml").write_text("x = [-1, 1]\ny = [-2, 2]\n")
    (folder / "run.toml").write_text(
        'k = 2\nmethod = "su-lloyd"\nepsilon = 0.5\nbounds = "bounds.toml"\nrows = 1000\ncolumns = ["x", '
        '"y"]\n[set]\nrounds = 3\n'
    )
    done = cloister("fit", "rows.parquet", "--config", "run.toml", "-k", "4", "--json", folder=folder)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert (result["problem"]["k"], result["method"]["name"], result["privacy"]["epsilon"]) == (4, "su-lloyd", 0.5)
    assert result["problem"]["bounds"] == {"lower": [-1.0, -2.0], "upper": [1.0, 2.0]}
    assert len(result["privacy"]["spends"]) == 6


def test_every_slot_can_be_swapped_and_every_option_set(folder: Path) -> None:
    done = cloister(
        "fit",
        "rows.npy",
        *FAST,
        "--with",
        "counts=discrete-laplace",
        "--set",
        "rounds=2",
        "--set",
        "border=truncate",
        "--json",
        folder=folder,
    )
    result = json.loads(done.stdout)
    assert {s["mechanism"] for s in result["privacy"]["spends"]} == {"discrete-laplace", "discrete-gaussian"}
    assert result["method"]["options"]["border"] == "truncate"


def test_evaluate_says_that_it_is_not_private(folder: Path) -> None:
    cloister("fit", "rows.parquet", *BASE, "--columns", "*", "--out", "result.json", folder=folder)
    done = cloister("evaluate", "result.json", "rows.parquet", "--reference", folder=folder)
    assert done.stdout.startswith("NOT private")
    figures = json.loads(cloister("evaluate", "result.json", "rows.parquet", "--json", folder=folder).stdout)
    assert figures["private"] is False
    assert 0 < figures["nicv"] < 0.2
    assert {"nicv", "k_median", "silhouette", "davies_bouldin"} <= set(figures)


def test_centres_without_column_names_are_evaluated_on_files_that_have_them(folder: Path) -> None:
    """Plans may say how many columns there are, and not what they are called."""
    cloister("fit", "rows.npy", *BASE, "--out", "unnamed.json", folder=folder)
    asked = "evaluate", "unnamed.json", "rows.parquet"
    assert "which columns? There are x (numbers), y" in cloister(*asked, folder=folder).stderr
    named = json.loads(cloister(*asked, "--columns", "x,y", "--json", folder=folder).stdout)
    assert named == json.loads(cloister("evaluate", "unnamed.json", "rows.npy", "--json", folder=folder).stdout)
    told = cloister("evaluate", "unnamed.json", "rows.npy", folder=folder).stdout
    assert "mean squared distance to the nearest centre" in told


def test_the_non_private_method_needs_its_flag(folder: Path) -> None:
    refused = cloister("fit", "rows.npy", *BASE, "--method", "lloyd", folder=folder)
    assert refused.returncode == 2
    assert "NOT private" in refused.stderr
    allowed = cloister("fit", "rows.npy", *BASE, "--method", "lloyd", "--not-private", "--json", folder=folder)
    assert json.loads(allowed.stdout)["privacy"]["headline"].startswith("NOT PRIVATE")


def test_demo_shows_four_costs_and_the_statement() -> None:
    shown = json.loads(cloister("demo", "--json").stdout)
    costs = list(shown["costs"].values())
    assert len(costs) == 4
    assert costs[0] < costs[1] < costs[3]
    assert shown["result"]["privacy"]["private"] is True


def test_the_demo_can_be_dealt_out_to_parties() -> None:
    shown = json.loads(cloister("demo", "--federated", "--json").stdout)
    privacy = shown["result"]["privacy"]
    assert (privacy["trust"], privacy["simulated"], privacy["private"]) == ("Aggregated", True, True)
    assert shown["costs"]["cloister, private"] < shown["costs"]["the midpoint of the bounds"]


def test_oracles_that_pool_need_parties(folder: Path) -> None:
    refused = cloister(
        "fit", "rows.npy", *FAST, "--with", "counts=masked-gaussian", "--with", "sums=masked-gaussian", folder=folder
    )
    assert refused.returncode == 2
    assert "cloister coordinate" in refused.stderr
    assert "--pooled" in refused.stderr


def test_the_number_of_rows_can_be_written_as_pages_write_it(folder: Path) -> None:
    found = json.loads(cloister("fit", "rows.npy", *BASE, "--rows", "2e3", "--json", folder=folder).stdout)
    assert found["problem"]["rows"] == 2000
    for wrong in ("1.5", "1e-3", "1e999", "many"):
        refused = cloister("fit", "rows.npy", *BASE, "--rows", wrong, folder=folder)
        assert refused.returncode == 2
        assert f"'{wrong}' is not a whole number" in refused.stderr


def test_files_of_parties_are_pooled_in_one_process(folder: Path) -> None:
    rows = np.load(folder / "rows.npy")
    for name, part in (("north", rows[::2]), ("south", rows[1::2])):
        np.save(folder / f"{name}.npy", part)
    asked = (*BASE, "--pooled", "--json", "--method", "hst-means")
    privacy = json.loads(cloister("fit", "north.npy", "south.npy", *asked, folder=folder).stdout)["privacy"]
    assert (privacy["trust"], privacy["simulated"], privacy["private"]) == ("Aggregated", True, True)
    for files, told in ((["north.npy"], "two parties"), (["north.npy", "north.npy"], "was given twice")):
        refused = cloister("fit", *files, *asked, folder=folder)
        assert refused.returncode == 2
        assert told in refused.stderr


BAD: dict[str, tuple[list[str], str]] = {
    "no bounds": (
        ["rows.npy", "-k", "3", "--epsilon", "1", "--delta", "1e-6", "--rows", "1000"],
        "no bounds: give one pair",
    ),
    "reversed bounds": (["rows.npy", *BASE, "--bounds=1:-1"], "the lower one must be smaller"),
    "equal bounds": (["rows.npy", *BASE, "--bounds=1:1"], "the lower one must be smaller"),
    "NaN bounds": (["rows.npy", *BASE, "--bounds=nan:1"], "finite"),
    "too many bounds": (["rows.npy", *BASE, "--bounds=0:1,0:1,0:1"], "3 columns were given, the data have 2"),
    "bounds that are no numbers": (["rows.npy", *BASE, "--bounds=a:b"], "'a' in the bounds is not a number"),
    "a bounds file that is not there": (["rows.npy", *BASE, "--bounds=no.toml"], "cannot read the bounds file"),
    "epsilon 0": (["rows.npy", *BASE, "--epsilon", "0"], "epsilon is 0"),
    "epsilon negative": (["rows.npy", *BASE, "--epsilon", "-1"], "epsilon is -1"),
    "epsilon NaN": (["rows.npy", *BASE, "--epsilon", "nan"], "epsilon is nan"),
    "epsilon infinite": (["rows.npy", *BASE, "--epsilon", "inf"], "epsilon is inf"),
    "no epsilon": (["rows.npy", "-k", "3", "--bounds=-1:1", "--rows", "1000"], "no epsilon: give --epsilon"),
    "delta negative": (["rows.npy", *BASE, "--delta", "-1e-9"], "delta is -1e-09"),
    "delta 1": (["rows.npy", *BASE, "--delta", "1"], "delta is 1"),
    "delta 0 with a Gaussian": (["rows.npy", *FAST, "--delta", "0"], "delta is 0"),
    "k 0": (["rows.npy", *BASE, "-k", "0"], "k is 0"),
    "k beyond the public rows": (["rows.npy", *BASE, "-k", "1001"], "public number of rows is 1000"),
    "no public rows": (
        ["rows.npy", "-k", "3", "--epsilon", "1", "--bounds=-1:1", "--method", "one-round"],
        "no public number of rows",
    ),
    "a missing file": (["none.npy", *BASE], "none.npy"),
    "an empty file": (["empty.csv", *BASE], "empty.csv"),
    "no numeric column": (["text.csv", *BASE, "--columns", "*"], "column 'a' does not hold numbers"),
    "no numeric column by schema": (["text.parquet", *BASE, "--columns", "*"], "no column of numbers matches '*'"),
    "ragged rows": (["ragged.csv", *BASE], "ragged.csv"),
    "a column that is not there": (["rows.parquet", *BASE, "--columns", "x,z"], "no column 'z'"),
    "a column of text": (["rows.parquet", *BASE, "--columns", "x,name"], "name"),
    "NaN cells": (["holes.npy", *BASE], "--missing drop"),
    "infinite cells": (["infinite.npy", *BASE], "--missing drop"),
    "an unknown method": (["rows.npy", *BASE, "--method", "fastloyd"], "did you mean fastlloyd"),
    "an unknown slot": (["rows.npy", *FAST, "--with", "count=discrete-laplace"], "did you mean counts"),
    "an unknown option": (["rows.npy", *FAST, "--set", "round=3"], "did you mean rounds"),
    "an option of no candidate": (["rows.npy", *BASE, "--set", "rounds=3"], "write NAME.rounds for a candidate's"),
    "a trust model that is none": (["rows.npy", *BASE, "--trust", "locale"], "did you mean local"),
    "a candidate that is none": (["rows.npy", *BASE, "--with", "grid-mean=none"], "did you mean grid-means"),
    "an unknown component": (["rows.npy", *FAST, "--with", "counts=discrete-laplas"], "did you mean discrete-laplace"),
    "an option out of bounds": (["rows.npy", *FAST, "--set", "radius_scale=-1"], "it must be > 0"),
    "an option that is no number": (["rows.npy", *FAST, "--set", "rounds=many"], "it takes int"),
    "an ill-formed pair": (["rows.npy", *BASE, "--set", "rounds"], "--set takes name=value"),
    "an unknown format": (["rows.xls", *BASE], "xls"),
    "a result of unknown kind": (["rows.npy", *BASE, "--out", "result.txt"], ".json or .npz"),
    "an unwritable output": (["rows.npy", *BASE, "--out", "no/such/folder/r.json"], "there is no folder"),
    "a ledger that is not there": (["rows.npy", *BASE, "--ledger", "no.db", "--dataset", "d"], "no.db"),
    "a ledger without its data set's name": (
        ["rows.npy", *BASE, "--ledger", "budget.db"],
        "give both --ledger and --dataset",
    ),
    "a data set the ledger does not know": (
        ["rows.npy", *BASE, "--ledger", "budget.db", "--dataset", "other"],
        "no data set 'other'",
    ),
    "a ledger without enough": (
        ["rows.npy", *BASE, "--epsilon", "9", "--ledger", "budget.db", "--dataset", "mine"],
        "epsilon 2",
    ),
    "a damaged ledger": (["rows.npy", *BASE, "--ledger", "damaged.db", "--dataset", "mine"], "damaged.db"),
    "resuming what is not there": (
        ["rows.npy", *BASE, "--ledger", "budget.db", "--dataset", "mine", "--resume", "abc"],
        "no run 'abc'",
    ),
    "an unknown option in the config": (["rows.npy", *BASE, "--config", "odd.toml"], "no option 'epsilonn'"),
    "columns that are no names in the config": (
        ["rows.npy", *BASE, "--config", "columns.toml"],
        "give a list of names",
    ),
    "an output that is no text in the config": (
        ["rows.npy", *BASE, "--config", "out.toml"],
        "out in the config file is 3",
    ),
    "k that is not whole in the config": (
        ["rows.npy", *BASE[2:], "--config", "parts.toml"],
        "k is 2.5: give a whole number",
    ),
    "k without end in the config": (
        ["rows.npy", *BASE[2:], "--config", "endless.toml"],
        "k is inf, which is not a number",
    ),
    "a method without a name": (["rows.npy", *BASE, "--method", ""], "no Method ''"),
    "a bounds file that names a column twice": (
        ["rows.parquet", *BASE, "--bounds", "twice.json"],
        "a name stands twice",
    ),
    "a name too long to be written": (["rows.npy", *BASE, "--out", f"{'a' * 300}.json"], "File name too long"),
    "a config that is no TOML": (["rows.npy", *BASE, "--config", "broken.toml"], "neither TOML nor JSON"),
}


@pytest.fixture(scope="module")
def bad_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bad")
    rows = np.random.default_rng(0).normal(0, 0.3, (1000, 2))
    np.save(folder / "rows.npy", rows)
    pq.write_table(pa.table({"x": rows[:, 0], "y": rows[:, 1], "name": ["a"] * 1000}), folder / "rows.parquet")
    for name, value in (("holes", np.nan), ("infinite", np.inf)):
        rows[7, 1] = value
        np.save(folder / f"{name}.npy", rows)
    pq.write_table(pa.table({"a": ["x"], "b": ["y"]}), folder / "text.parquet")
    (folder / "empty.csv").write_text("")
    (folder / "text.csv").write_text("a,b\nx,y\nz,w\n")
    (folder / "ragged.csv").write_text("a,b\n1,2\n3\n4,5\n")
    (folder / "rows.xls").write_text("?")
    (folder / "odd.toml").write_text("epsilonn = 1\n")
    (folder / "broken.toml").write_text("= = =\n")
    for name, text in (("columns", "columns = 3"), ("out", "out = 3"), ("parts", "k = 2.5"), ("endless", "k = inf")):
        (folder / f"{name}.toml").write_text(f"{text}\n")
    (folder / "twice.json").write_text('{"x": [-1, 1], "y": [-1, 1], "x": [-2, 2]}')
    (folder / "damaged.db").write_bytes(b"SQLite format 3\x00" + b"\xff" * 5000)
    cloister("ledger", "declare", "budget.db", "mine", "--epsilon", "2", "--delta", "1e-5", folder=folder)
    return folder


def snapshot(folder: Path) -> dict[str, bytes]:
    return {p.name: p.read_bytes() for p in folder.iterdir() if p.suffix not in {".db-wal", ".db-shm"}}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_one_line_exit_two_nothing_written_and_nothing_spent(
    name: str, bad_folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In this process: forty interpreters would take a minute to start."""
    arguments, expected = BAD[name]
    before = snapshot(bad_folder)
    ledger = ["--ledger", "budget.db", "--dataset", "mine"] if "--ledger" not in arguments else []
    monkeypatch.chdir(bad_folder)
    monkeypatch.setattr("sys.argv", ["cloister", "fit", *arguments, *ledger])
    with pytest.raises(SystemExit) as ended:
        main()
    told = capsys.readouterr()
    assert (ended.value.code, told.out) == (2, "")
    assert expected in told.err
    assert len(told.err.strip().splitlines()) == 1
    assert "Traceback" not in told.err
    assert snapshot(bad_folder) == before
    (data,) = Ledger.open(bad_folder / "budget.db").status()
    assert not data.runs


def test_a_damaged_result_is_refused_in_one_line(folder: Path) -> None:
    cloister("fit", "rows.npy", *BASE, "--out", "r.json", folder=folder)
    text = (folder / "r.json").read_text()
    for damaged in (text[:-200], text.replace('"k": 3', '"k": 4'), "{}", None):
        (folder / "r.json").unlink()
        if damaged is not None:
            (folder / "r.json").write_text(damaged)
        done = cloister("evaluate", "r.json", "rows.npy", folder=folder)
        assert done.returncode == 2
        assert len(done.stderr.strip().splitlines()) == 1


def test_dropping_rows_with_holes_is_a_choice(bad_folder: Path) -> None:
    done = cloister("fit", "holes.npy", *BASE, "--missing", "drop", "--json", folder=bad_folder)
    assert done.returncode == 0, done.stderr


def test_rows_outside_the_bounds_are_clipped_silently(folder: Path) -> None:
    done = cloister("fit", "rows.npy", *BASE, "--bounds=-0.01:0.01", "--json", folder=folder)
    assert (done.returncode, done.stderr) == (0, "")
    assert np.abs(json.loads(done.stdout)["centers"]).max() <= 0.01


def test_an_unknown_command_or_role_is_a_short_error() -> None:
    assert cloister("fitt").returncode == 2
    done = cloister("list", "Methot")
    assert done.returncode == 2
    assert "did you mean Method" in done.stderr
