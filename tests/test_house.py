"""What keeps the house in order: no circle among files, no component that knows another one, no face that grows."""

from __future__ import annotations

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from itertools import permutations
from pathlib import Path
from types import FrameType
from typing import Any

import grimp
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import cloister
from cloister.core.registry.registry import built_in
from cloister.run.fit import fit, source
from cloister.run.request import Request

ROOT = Path(cloister.__file__).parent
SPELLING = {"cloister._lazy", *(f"cloister.plugins.{folder}manifest" for folder in ("", "methods.", "oracles."))}
"""Besides the registry the only ones that may name a module by text: faces, and what is built in."""

FACE = {"__init__", "__main__", "_lazy", "_version", "cli", "metrics", "plugin"}


@pytest.fixture(scope="module")
def trees() -> dict[str, ast.Module]:
    """What each file says, by its path."""
    return {str(path.relative_to(ROOT)): ast.parse(path.read_text("utf-8")) for path in sorted(ROOT.rglob("*.py"))}


@pytest.fixture(scope="module")
def by_text(imports: grimp.ImportGraph, trees: dict[str, ast.Module]) -> dict[str, set[str]]:
    """What each module names by text, those that may do so left out."""
    found = dict[str, set[str]]()
    for path, tree in trees.items():
        name = "cloister." + path.removesuffix(".py").replace("/", ".").removesuffix(".__init__")
        if name not in SPELLING and not name.startswith(("cloister.core.registry", "cloister.commands.examples")):
            found[name] = set(spelled(tree, set(imports.modules)))
    return {name: named for name, named in found.items() if named}


@pytest.fixture(scope="module")
def imports() -> grimp.ImportGraph:
    """Who imports whom, for types alone too."""
    return grimp.build_graph("cloister", exclude_type_checking_imports=False, cache_dir=None)


def called(node: ast.Call) -> str:
    return str(getattr(node.func, "attr", getattr(node.func, "id", "")))


def spelled(tree: ast.Module, modules: set[str]) -> Iterator[str]:
    """Modules of ours that a file names by text ("cloister.x", "cloister.x:Class"), and "?" where it imports a module
    whose name is put together while it runs, if any part of the text is ours."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            name = node.value.partition(":")[0]
            if "." in name and name in modules:
                yield name
        if isinstance(node, ast.JoinedStr):
            first = node.values[0]
            if isinstance(first, ast.Constant) and str(first.value).startswith("cloister."):
                yield str(first.value).rstrip(".").rpartition(":")[0] or "?"
        if isinstance(node, ast.Call) and called(node) in ("import_module", "__import__"):
            if not all(isinstance(part, (ast.Constant, ast.Name)) for part in node.args[:1]):
                yield "?"
            if len(node.args) + len(node.keywords) > 1:
                yield "?"  # relative to a package


def test_no_file_imports_itself_by_way_of_others(imports: grimp.ImportGraph, by_text: dict[str, set[str]]) -> None:
    """Files that nothing is imported by, or that import nothing, are in no circle: without them others are not, until
    none is left. A module that is named by text counts as imported."""
    left = set(imports.modules)
    while free := {
        m for m in left if not (imports.find_modules_directly_imported_by(m) | by_text.get(m, set())) & left
    }:
        left -= free
    assert left == set()


def test_modules_of_ours_are_named_by_text_in_the_registry_alone(by_text: dict[str, set[str]]) -> None:
    """Else neither the contracts nor the test of circles would see who needs whom."""
    assert by_text == {}


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ('import_module("cloister.showing.report").html_of(x)', ["cloister.showing.report"]),
        ('HOME = "cloister.run.result:Result"', ["cloister.run.result"]),
        ('importlib.import_module(f"cloister.plugins.{name}")', ["?", "?"]),
        ('importlib.import_module("cloister." + name)', ["?"]),
        ('import_module(".report", "cloister")', ["?"]),
        ('import_module("sklearn.datasets"); print("cloister.Tensor", "cloister")', []),
    ],
)
def test_a_module_named_by_text_is_found(source: str, found: list[str]) -> None:
    assert list(spelled(ast.parse(source), {"cloister", "cloister.showing.report", "cloister.run.result"})) == found


def test_a_component_never_imports_another_one(imports: grimp.ImportGraph) -> None:
    """It receives it in a slot. Which files hold components is the manifest's to say."""
    files = sorted({spec.target.partition(":")[0] for spec in built_in().specs()})
    assert len(files) > 30
    chains = [imports.find_shortest_chain(one, other) for one, other in permutations(files, 2)]
    assert [chain for chain in chains if chain] == []


def test_the_packages_face_holds_what_everybody_uses_and_folders() -> None:
    assert {path.stem for path in ROOT.glob("*.py")} == FACE


def test_no_file_is_longer_than_four_hundred_lines() -> None:
    lines = {path.name: path.read_text("utf-8").count("\n") for path in ROOT.rglob("*.py")}
    assert {name: count for name, count in lines.items() if count > 400} == {}


def test_no_function_is_longer_than_sixty_lines(trees: dict[str, ast.Module]) -> None:
    """Docstring and signature included: it is read on one screen."""
    lines = {
        f"{path}: {node.name}": (node.end_lineno or 0) - node.lineno + 1
        for path, tree in trees.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    assert len(lines) > 3_000
    assert {name: count for name, count in lines.items() if count > 60} == {}


def test_files_that_contributing_sends_people_to_are_there() -> None:
    """But for those that they are to write."""
    root = Path(__file__).parents[1]
    text = (root / "CONTRIBUTING.md").read_text("utf-8")
    named = set(re.findall(r"`([a-z_]+(?:/\w+)*/[a-z_0-9]+\.(?:py|toml|md))`", text))
    assert len(named) > 15
    assert [name for name in sorted(named) if not ((root / name).exists() or (ROOT / name).exists())] == []


def shown() -> list[tuple[str, str]]:
    """The path of a row as CONTRIBUTING shows it: files and names, in order."""
    _, _, after = (Path(__file__).parents[1] / "CONTRIBUTING.md").read_text("utf-8").partition("### The path of a row")
    figure, _, _ = after.partition("\n## ")
    return re.findall(r"^ +(\w+/[\w/]+\.py) +([\w.]+) ", figure, re.MULTILINE)


def test_a_row_goes_the_way_that_the_figure_shows(tmp_path: Path) -> None:
    """The steps of the figure are those that a run returns from, or yields from, in that order for the first time."""
    rows = np.random.default_rng(0).normal(size=(2_000, 2))
    pq.write_table(pa.table({"a": rows[:, 0], "b": rows[:, 1]}), tmp_path / "rows.parquet")
    way, done = shown(), list[tuple[str, str]]()
    wanted = set(way)
    assert len(way) > 10

    def watch(frame: FrameType, event: str, _: Any) -> None:
        step = frame.f_code.co_filename[len(str(ROOT)) + 1 :].replace("\\", "/"), frame.f_code.co_qualname
        if event == "return" and step in wanted and not (step in done or _forecasts(frame)):
            done.append(step)

    before = sys.getprofile()
    sys.setprofile(watch)
    try:
        with source([tmp_path / "rows.parquet"], columns=["a", "b"], threads=1) as files:
            fit(
                Request(k=3, method="fastlloyd", bounds=(-5, 5), rows=2_000, zoom="off", epsilon=1.0, delta=1e-6),
                files,
            )
    finally:
        sys.setprofile(before)
    assert done == way


def _forecasts(frame: FrameType) -> bool:
    """Whether a step belongs to the forecast of a run, or to its preparation, which see no row."""
    seen = set[str]()
    above: FrameType | None = frame
    while above is not None:
        seen.add(above.f_code.co_name)
        above = above.f_back
    return bool(seen & {"forecast_session", "prepare"})


def test_no_module_gives_one_name_twice(trees: dict[str, ast.Module]) -> None:
    """A constant that another one of its name replaces further down means something else where it is used."""
    found = list[str]()
    for path, tree in trees.items():
        names = [
            name.id
            for statement in tree.body
            if isinstance(statement, ast.Assign | ast.AnnAssign)
            for target in (statement.targets if isinstance(statement, ast.Assign) else [statement.target])
            for name in ast.walk(target)
            if isinstance(name, ast.Name)
        ]
        found += [f"{path}: {name}" for name in {*names} if names.count(name) > 1]
    assert found == []


def test_no_two_public_classes_have_one_name(trees: dict[str, ast.Module]) -> None:
    """One word for one thing: a name that two share stands for two."""
    homes = defaultdict[str, list[str]](list)
    for path, tree in trees.items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes[node.name].append(path)
    assert len(homes) > 200
    assert {name: files for name, files in homes.items() if len(files) > 1} == {}
