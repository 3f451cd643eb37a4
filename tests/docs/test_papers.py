"""The page of the papers' results: code and tests that it names are there, and every result has one or a reason."""

from __future__ import annotations

import importlib
import re

import pytest

from cloister.core.registry.registry import built_in
from tests.docs.pages import PAGES, ROOT

PAGE = "docs/explanation/papers.md"
TEST = re.compile(r"`(tests/[\w/]+\.py)(?:::(\w+))?`")
CODE = re.compile(r"`(cloister\.[\w.]+)`")


def rows() -> list[list[str]]:
    """Cells of the tables of results."""
    text = PAGES[PAGE].read_text("utf-8").partition("## Why")[0]
    cells = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("|")
    ]
    return [row for row in cells if row[0] not in ("result", "---")]


def test_each_result_has_code_or_a_reason_and_tests_or_a_reason() -> None:
    found = rows()
    assert len(found) > 50
    for row in found:
        assert len(row) == 3
        assert row[1]
        assert TEST.search(row[2]) or "no run is near them" in row[1], row


def named() -> list[tuple[str, str]]:
    return sorted(set(TEST.findall(PAGES[PAGE].read_text("utf-8"))))


@pytest.mark.parametrize(("path", "name"), named(), ids=lambda value: value.rpartition("/")[2])
def test_each_test_that_is_named_is_there(path: str, name: str) -> None:
    text = (ROOT / path).read_text("utf-8")
    assert f"def {name}(" in text if name else "def test_" in text


@pytest.mark.parametrize("name", sorted(set(CODE.findall(PAGES[PAGE].read_text("utf-8")))))
def test_all_code_that_is_named_is_there(name: str) -> None:
    try:
        importlib.import_module(name)
    except ModuleNotFoundError:
        module, _, attribute = name.rpartition(".")
        assert hasattr(importlib.import_module(module), attribute)


def test_all_methods_that_are_named_as_presets_are_registered() -> None:
    text = PAGES[PAGE].read_text("utf-8")
    known = {spec.name for spec in built_in().specs("Method")}
    presets = {
        name for group in re.findall(r"presets? ((?:`[\w-]+`(?:, )?)+)", text) for name in re.findall(r"[\w-]+", group)
    }
    assert presets
    assert presets <= known
