"""The same words mean the same in every command, or are refused with the reason: the table of commands and words."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cloister.run.result import Result
from tests.in_process import ran, refused

pytest.importorskip("pyarrow")

N = 600

RUN = f"--epsilon 4 --rows {N}"
COMMANDS = {
    "fit": f"fit rows.csv {RUN} --seed 1 --json",
    "explain with rows": f"explain rows.csv {RUN} --json",
    "explain": f"explain {RUN} --json",
    "plan": f"plan {RUN} --json",
    "compare": f"compare rows.csv {RUN} --methods auto --runs 1 --workers 1 --json",
}
"""What is told what to cluster by, before there is a result."""

BY_WORDS = {
    "bounds that name columns": ("-k 3 --bounds b.toml", ["x", "y"]),
    "bounds of one column, the other named by a category": (
        "-k 3 --bounds x.toml --category ward=A,B",
        ["x", "ward=A", "ward=B"],
    ),
    "columns in another order": ("-k 3 --bounds b.toml --columns y,x", ["y", "x"]),
    "columns and a category": ("-k 3 --bounds b.toml --columns ward,x --category ward=A,B", ["ward=A", "ward=B", "x"]),
    "unknown bounds": ("-k 3 --columns x,y --bounds unknown", ["x", "y"]),
    "unknown bounds, and a share to find them": ("-k 3 --columns x,y --bounds unknown --zoom 0.3", ["x", "y"]),
    "a range of k": ("-k 2..4 --bounds b.toml", ["x", "y"]),
    "a start": ("--start earlier.json", ["x", "y", "ward=A", "ward=B"]),
    "a start, columns in another order": ("--start earlier.json --columns y,ward,x", ["y", "ward=A", "ward=B", "x"]),
    "a table of centres": ("--start centers.toml --bounds b.toml", ["x", "y"]),
    "missing": ("-k 3 --bounds b.toml --missing drop", ["x", "y"]),
    "a start of other columns": ("--start earlier.json --columns x --bounds b.toml", "the start has y"),
    "a start of another k": ("--start earlier.json -k 4", "the start has 3 centres, k is 4"),
    "bounds of other columns": ("-k 3 --bounds b.toml --columns x,ward", "no bounds for column ward"),
    "a list of budgets": ("-k 3 --bounds b.toml --epsilon 0.5,1", "one run has one budget"),
    "centres without a number": ("--bounds b.toml", "no k: give -k"),
}
"""What commands are told, and the columns of centres, or the reason why not."""

OTHERWISE: dict[tuple[str, str], str | list[str]] = {
    ("plan", "unknown bounds"): "under Local trust nothing is paid to find it unless you say how much: give --zoom",
    ("plan", "a range of k"): "only a curator's run chooses k",
    ("plan", "a start"): "the method begins from no start",
    ("plan", "a start, columns in another order"): "the method begins from no start",
    ("plan", "a table of centres"): "the method begins from no start",
    ("plan", "a start of other columns"): "the start has y",
    ("plan", "missing"): "plan takes no --missing: a plan reads no rows",
    ("compare", "bounds of other columns"): "--category ward=A,B,C",  # rows are read before anything is planned
    ("compare", "a list of budgets"): ["x", "y"],
}
"""Where one command differs, and why."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Rows of three groups; one row has an empty cell, in another file."""
    place, g = tmp_path_factory.mktemp("seams"), np.random.default_rng(0)
    groups = np.array([[-0.5, -0.5], [0.5, 0.5], [0.5, -0.5]])[np.arange(N) % 3]
    lines = [f"{x:.4f},{y:.4f},{'AB'[i % 2]}\n" for i, (x, y) in enumerate(groups + g.normal(0, 0.05, (N, 2)))]
    (place / "rows.csv").write_text("x,y,ward\n" + "".join(lines))
    (place / "holes.csv").write_text("x,y,ward\n,0.5,A\n" + "".join(lines))
    (place / "turned.csv").write_text("y,x\n" + "".join(",".join(line.split(",")[1::-1]) + "\n" for line in lines))
    (place / "others.csv").write_text((place / "rows.csv").read_text().replace("x,y,ward", "u,v,ward", 1))
    (place / "b.toml").write_text("x = [-1, 1]\ny = [-1, 1]\n")
    (place / "x.toml").write_text("x = [-1, 1]\n")
    (place / "centers.toml").write_text("x = [-0.5, 0.5]\ny = [-0.5, 0.5]\n")
    ran(f"fit rows.csv -k 3 {RUN} --bounds b.toml --category ward=A,B --out earlier.json", place)
    ran(f"fit rows.csv -k 3 {RUN} --bounds b.toml --out plain.json", place)
    ran(f"fit holes.csv -k 3 {RUN} --bounds b.toml --missing drop --out dropped.json", place)
    return place


def columns_of(answer: dict[str, Any]) -> list[str]:
    """The columns that a command's JSON says."""
    found: list[str] = answer.get("conditions", answer)["columns"]
    return found


@pytest.mark.parametrize("words", BY_WORDS)
@pytest.mark.parametrize("command", COMMANDS)
def test_the_same_words_choose_the_same_columns_or_are_refused_with_the_reason(
    command: str, words: str, folder: Path
) -> None:
    said, meant = BY_WORDS[words]
    meant = OTHERWISE.get((command, words), meant)
    line = f"{COMMANDS[command]} {said}" + (f" --out {words.replace(' ', '-')}" if command == "plan" else "")
    if isinstance(meant, str):
        assert meant in " ".join(refused(line.replace("--json", ""), folder).split())
        return
    assert columns_of(json.loads(ran(line, folder).stdout)) == meant


RESULTS = {
    "evaluate": "evaluate {} {} --json --no-reference",
    "predict": "predict {} {} --out labels.csv --json",
    "profile": "profile {} --rows {} --json",
    "drift": "drift {} {} --epsilon 100 --json",
}
"""What comes after a result."""


def sizes(command: str, answer: dict[str, Any]) -> list[float]:
    """The rows of each group that a command's JSON says, as shares."""
    if command == "drift":
        return [float(share) for share in answer["shares"][1]]
    groups = answer["of_rows"]["groups"] if command == "profile" else answer.get("groups", answer.get("sizes"))
    rows = [group["rows"] if isinstance(group, dict) else group for group in groups]
    return [n / sum(rows) for n in rows]


@pytest.mark.parametrize("command", RESULTS)
@pytest.mark.parametrize(
    ("result", "rows"),
    [
        ("plain.json", "turned.csv"),  # whose columns stand in another order
        ("plain.json", "rows.csv --columns y,x"),
        ("plain.json", "turned.csv --columns '*'"),
        ("plain.json", "others.csv --columns u,v"),
        ("earlier.json", "rows.csv --columns ward,y,x"),
        ("dropped.json", "holes.csv"),  # what the run did with missing cells
    ],
)
def test_columns_and_missing_cells_after_a_result_are_its_own(
    command: str, result: str, rows: str, folder: Path
) -> None:
    path, _, more = rows.partition(" ")
    answer = json.loads(ran(f"{RESULTS[command].format(result, path)} {more}", folder).stdout)
    assert sizes(command, answer) == pytest.approx([1 / 3] * 3, abs=0.02)


@pytest.mark.parametrize("command", RESULTS)
@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("earlier.json rows.csv --category ward=A,B", "the result has the categories"),
        ("earlier.json others.csv --columns u,v,ward", "rows for it have columns of these names"),
        ("plain.json rows.csv --columns x", "these are 1"),
        ("plain.json holes.csv", "some cells are missing"),
        ("plain.json rows.csv --names 7=Frail", "no group '7'"),
    ],
)
def test_what_does_not_go_with_a_result_is_refused_with_the_reason(
    command: str, words: str, why: str, folder: Path
) -> None:
    result, path, *more = words.split()
    assert why in refused(" ".join([RESULTS[command].format(result, path), *more]), folder)


def test_columns_of_other_names_are_said_to_be_read_as_the_results(folder: Path) -> None:
    said = ran("evaluate plain.json others.csv --columns u,v", folder).stderr
    assert "columns are read as the result's: u as x, v as y" in said
    assert "read as" not in ran("evaluate plain.json rows.csv --columns y,x", folder).stderr


def test_a_person_who_reports_names_columns_in_any_order(folder: Path) -> None:
    ran(f"plan -k 3 {RUN} --seed 1 --bounds b.toml --out ordered", folder)
    for name, columns in (("one", "x,y"), ("two", "y,x"), ("three", "'*'")):
        rows = "turned.csv" if name == "three" else "rows.csv"
        ran(f"encode ordered {rows} --columns {columns} --out {name} --state {name}.state", folder)
        found = ran(f"decode ordered {name} --out {name}.json", folder)
        assert found.returncode == 0
        centers = Result.load(folder / f"{name}.json").centers
        # of (-0.5, 0.5) there are no rows, as there would be of columns that were exchanged
        assert np.linalg.norm(centers - [-0.5, 0.5], axis=1).min() > 0.3


def test_people_report_under_a_plan_with_a_category_and_the_result_knows_it(folder: Path) -> None:
    ran(f"plan -k 3 --epsilon 8 --rows {N} --bounds b.toml --category ward=A,B --out mixed", folder)
    plan = json.loads((folder / "mixed" / "plan.json").read_text())
    assert plan["problem"]["categories"] == {"ward": ["A", "B"]}
    ran("encode mixed rows.csv --out mixed-reports --state mixed.state", folder)
    ran("decode mixed mixed-reports --out mixed.json", folder)
    result = Result.load(folder / "mixed.json")
    assert result.columns == ("x", "y", "ward=A", "ward=B")
    assert result.problem["categories"] == {"ward": ["A", "B"]}
    assert len(json.loads(ran("predict mixed.json rows.csv --out m.csv --json", folder).stdout)["sizes"]) == 3
    why = refused(f"plan -k 3 {RUN} --dimension 3 --category ward=A,B --bounds=-1:1 --out no", folder)
    assert "give the columns" in why


def test_a_plan_whose_categories_are_none_of_its_columns_is_damaged(folder: Path) -> None:
    from cloister.collection.plan import canonical_json
    from cloister.collection.plan.plan import CollectionPlan
    from cloister.core.errors import CloisterError

    ran(f"plan -k 3 {RUN} --bounds b.toml --category ward=A,B --out listed", folder)
    facts = json.loads((folder / "listed" / "plan.json").read_text())
    facts["problem"]["categories"] = {"ward": ["A", "C"]}
    facts = canonical_json.with_hash({name: value for name, value in facts.items() if name != "hash"})
    with pytest.raises(CloisterError):
        CollectionPlan.from_dict(facts)


def test_people_find_the_range_of_unknown_columns_in_a_round_of_its_own(folder: Path) -> None:
    """A plan's first round, which every person answers with the share that --zoom says."""
    ran(f"plan -k 3 --epsilon 8 --rows {N} --columns x,y --bounds unknown --zoom 0.3 --out wide", folder)
    for number in ("one", "two"):
        ran(f"answer wide rows.csv --out wide-{number} --state wide.state", folder)
        ran(f"advance wide --reports wide-{number} --out wide.json", folder)
    result = Result.load(folder / "wide.json")
    assert np.abs(result.details["intervals"]).max() < 100
    assert "30.0% of the budget finds where the rows are" in result.privacy.text()
    asked = f"plan -k 3 --epsilon 8 --delta 1e-6 --rows {N} --columns x,y --bounds unknown --zoom 0.3 --trust shuffled"
    assert "zoom" in refused(f"{asked} --out shuffled", folder)


def test_names_of_groups_are_shown_by_every_command_that_tells_of_groups(folder: Path) -> None:
    names = "--names 0=Frail,2=Young"
    for command in ("evaluate", "profile", "drift"):
        line = RESULTS[command].format("plain.json", "rows.csv").replace("--json", "")
        assert "Frail" in ran(f"{line} {names}", folder).stdout
    ran(f"predict plain.json rows.csv --out named.csv {names}", folder)
    with (folder / "named.csv").open() as file:
        pairs = {(row["cluster"], row["group"]) for row in csv.DictReader(file)}
    assert pairs == {("0", "Frail"), ("1", "1"), ("2", "Young")}
    ran(f"fit rows.csv -k 2 {RUN} --bounds b.toml --describe y --out described.json", folder)
    ran("sample described.json --out drawn.csv --names 0=Frail -n 100", folder)
    with (folder / "drawn.csv").open() as file:
        assert {row["group"] for row in csv.DictReader(file)} == {"Frail", "1"}
    assert "group" not in ran("sample described.json --out drawn.csv", folder).stderr


def test_rows_without_a_label_have_no_name(folder: Path) -> None:
    ran("predict dropped.json holes.csv --out unnamed.csv --names 0=Frail,1=Young,2=Old", folder)
    with (folder / "unnamed.csv").open() as file:
        first, *rest = list(csv.DictReader(file))
    assert (first["cluster"], first["group"]) == ("-1", "")
    assert {row["group"] for row in rest} == {"Frail", "Young", "Old"}


def test_a_profile_is_saved_as_it_is_printed_or_as_json(folder: Path) -> None:
    shown = ran("profile plain.json --rows rows.csv --out profile.txt", folder).stdout
    text = (folder / "profile.txt").read_text()
    assert "NOT private" in text
    assert [line.strip() for line in shown.splitlines()][: text.count("\n")] == [
        line.strip() for line in text.splitlines()
    ]
    ran("profile plain.json --out profile.json", folder)
    printed = json.loads(ran("profile plain.json --json", folder).stdout)
    assert json.loads((folder / "profile.json").read_text()) == printed


def test_a_report_maps_the_columns_that_are_asked_for(folder: Path) -> None:
    pytest.importorskip("matplotlib")
    ran("report earlier.json --out page.html --axes ward=A,y", folder)
    assert "in the two columns you chose" in (folder / "page.html").read_text()


def test_an_estimator_takes_columns_and_categories_from_its_start_and_missing_from_its_result(folder: Path) -> None:
    pandas = pytest.importorskip("pandas")
    import cloister

    rows = pandas.read_csv(folder / "rows.csv").assign(beside=1.0)
    fitted = cloister.KMeans(3, epsilon=4.0, rows=N, start=str(folder / "earlier.json")).fit(rows)
    assert fitted.result_.columns == ("x", "y", "ward=A", "ward=B")
    assert len(fitted.predict(rows)) == N
    loaded = cloister.KMeans.load(folder / "dropped.json")
    assert loaded.missing == "drop"
    assert loaded.predict(pandas.read_csv(folder / "holes.csv")[["x", "y"]])[0] == -1


def test_figures_of_a_comparison_are_saved_as_csv_and_its_runs_are_not_left_behind(folder: Path) -> None:
    line = f"compare rows.csv -k 3 --bounds b.toml {RUN} --methods auto --runs 1 --workers 1"
    printed = ran(f"{line} --out figures.csv", folder).stdout
    assert "figures (NOT private) saved to figures.csv" in printed
    with (folder / "figures.csv").open() as file:
        assert next(csv.DictReader(file))["figures"].startswith("NOT private")
    assert not (folder / "figures.jsonl").exists()


def test_a_comparison_takes_a_config_file_with_several_budgets(folder: Path) -> None:
    (folder / "study.toml").write_text('k = 3\nepsilon = [1, 4]\nbounds = "b.toml"\nruns = 1\nmethods = "auto"\n')
    cells = json.loads(ran("compare rows.csv --config study.toml --workers 1 --json", folder).stdout)["cells"]
    assert [cell["epsilon"] for cell in cells] == [1, 4]
    (folder / "fit.toml").write_text('k = 3\nepsilon = 1\nmethod = "auto"\n')
    assert "compare takes no --method: it compares several" in refused("compare rows.csv --config fit.toml", folder)


def test_a_comparison_keeps_rows_of_users_as_a_fit_does(folder: Path) -> None:
    """A user of a thousand rows at one place is one of many: the mean of all rows is not where the centre is."""
    g = np.random.default_rng(1)
    rows = [f"{x:.3f},{i}" for i, x in enumerate(g.normal(-0.5, 0.05, 400))] + ["0.9,7"] * 4000
    (folder / "users.csv").write_text("x,who\n" + "\n".join(rows) + "\n")
    asked = "--columns x -k 1 --epsilon 8 --bounds=-1:1 --runs 1 --workers 1 --methods su-lloyd --json"
    every = json.loads(ran(f"compare users.csv {asked}", folder).stdout)["cells"][0]["nicv"]
    kept = json.loads(ran(f"compare users.csv {asked} --user-column who --rows-per-user 1", folder).stdout)
    assert every < 0.2  # near the mean of all rows
    assert kept["cells"][0]["nicv"] > 1.5  # near the users' own
    assert kept["conditions"]["rows per user"] == 1


def test_a_comparison_takes_a_start_zoom_and_trust_for_all_contenders(folder: Path) -> None:
    asked = f"compare rows.csv {RUN} --runs 1 --workers 1 --json"
    begun = json.loads(ran(f"{asked} --start plain.json --methods auto,refit,su-lloyd", folder).stdout)["cells"]
    assert [cell["note"] is None for cell in begun] == [True, True, False]
    assert "begins from no start" in begun[2]["note"]
    local = "-k 3 --bounds b.toml --trust local --methods one-round,auto:trust=central"
    cells = json.loads(ran(f"{asked} {local}", folder).stdout)["cells"]
    assert [cell["trust"] for cell in cells] == ["Local", "Central"]
    unknown = "-k 2..4 --columns x,y --bounds unknown --methods auto,fastlloyd --rivals sklearn"
    chosen = json.loads(ran(f"{asked} {unknown}", folder).stdout)
    assert chosen["conditions"]["fewest"] == 2
    assert [cell["note"] is None for cell in chosen["cells"]] == [True, False, True]
    assert "fastlloyd' cannot choose k" in chosen["cells"][1]["note"]
