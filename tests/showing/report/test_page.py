"""The page that a result is reported as: for every method and shape, safe with untrusted text, without a network."""

from __future__ import annotations

import re
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pytest

from cloister.core.errors import Damaged, MissingExtra
from cloister.core.registry.registry import registry
from cloister.run.estimates import Estimate
from cloister.run.fit import fit, source
from cloister.run.request import Request
from cloister.run.result import Result
from cloister.showing.profile import profile_of
from cloister.showing.report import html_of, page
from tests.showing.report.pages import SPENDS, STATEMENT, Page, made

METHODS = [spec.name for spec in registry().specs("Method")]
FILES = Path(__file__).parents[2] / "written_before" / "files"
EVIL = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)>{{ 7 * 7 }}&amp;"


def rows(d: int = 2) -> Any:
    return np.clip(np.random.default_rng(d).normal(0, 0.3, (600, d)), -1, 1)


def fitted(d: int = 2, users: Any = None, **changes: Any) -> Result:
    asked: dict[str, Any] = {"k": 3, "epsilon": 4.0, "delta": 1e-6, "bounds": (-1, 1), "rows": 600, "seed": 1}
    return fit(Request(**{**asked, **changes}), source(rows(d), users=users))


def checked(result: Result) -> Page:
    """The page of a result, which every page must be like."""
    html = html_of(result)
    seen = Page(html)
    assert len(seen.every("main")) == 1
    assert seen.cards() == min(len(result.centers), 100)
    ids = [a["id"] for _, a in seen.tags if "id" in a]
    assert len(ids) == len(set(ids))
    named = {name for _, a in seen.tags for name in re.findall(r"#([\w.-]+)", f"{a.get('href')} {a.get('clip-path')}")}
    assert named <= set(ids)
    assert {a["aria-labelledby"] for _, a in seen.tags if "aria-labelledby" in a} <= set(ids)
    levels = [int(tag[1]) for tag, _ in seen.tags if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    assert "http" not in re.sub("http-equiv", "", html)
    return seen


SHAPES: dict[str, Any] = {
    "one cluster": lambda: fitted(k=1),
    "one column": lambda: fitted(1),
    "a hundred columns": lambda: fitted(100),
    "a ball": lambda: fitted(3, bounds="ball:1", method="one-round", trust="local", delta=0.0),
    "zoomed": lambda: fitted(bounds=(-1000, 1000)),
    "rows counted": lambda: fitted(rows=None),
    "users": lambda: fitted(users=np.arange(600) // 2, rows_per_user=2),
    "no weights": lambda: made(weights=None),
    "no rows left": lambda: made(weights=np.zeros(3)),
    "300 clusters": lambda: made(d=2, k=300),
    "columns of one name": lambda: made(columns=("x", "x", "x")),
    "a collection": lambda: Result.load(FILES / "centers.json"),
    **{method: lambda method=method: fitted(method=method, not_private=True) for method in METHODS},
}


@pytest.mark.thorough
@pytest.mark.parametrize("shape", SHAPES)
def test_every_shape_of_result_and_method_can_be_reported(shape: str) -> None:
    result = SHAPES[shape]()
    seen = checked(result).text
    assert f"{result.privacy.rows:,} rows" in seen
    assert shape not in METHODS or shape in seen
    assert ("The 100 largest of 300 clusters" in seen) == (shape == "300 clusters")


def test_untrusted_text_is_never_markup() -> None:
    spends = tuple(attrs.evolve(s, mechanism=EVIL, question=f"question 1 ({EVIL})") for s in SPENDS)
    inner = {"name": EVIL, "options": {EVIL: EVIL}, "slots": {}}
    evil = made(
        columns=(EVIL, f"{EVIL}=a", f"{EVIL}=b"),
        version=EVIL,
        method={**inner, "slots": {EVIL: inner}},
        problem={**made().problem, "categories": {EVIL: ["a", "b"]}},
        details={"auto": {"warning": EVIL}, "costs": [4.0, 2.0, 1.0]},
        privacy=attrs.evolve(STATEMENT, spends=spends, notes=(EVIL,)),
    )
    seen = checked(evil)
    assert not {tag for tag, _ in seen.tags} & {"script", "img", "iframe", "object", "embed", "link", "base"}
    assert [name for _, a in seen.tags for name in a if name.startswith("on")] == []
    assert seen.text.count(EVIL) > 10


@pytest.mark.thorough
@pytest.mark.parametrize(
    "name", ["price [/m2]", "µ", "x" * 200, "גיל", "年齢", "$x$", "a\nb", "\x00\x1b[31m", "\ud800", ""]
)
def test_odd_names_are_shown_and_can_be_saved(name: str) -> None:
    result = made(columns=(name, "y", "z"))
    seen = checked(result).text
    html_of(result).encode()
    assert not set(seen) & {"\x00", "\x1b", "\ud800"}
    assert name in seen or not name.isprintable()


@pytest.fixture(scope="module")
def plain() -> Page:
    return checked(made())


def test_a_page_forbids_itself_the_network_and_scripts(plain: Page) -> None:
    (policy,) = [a["content"] for a in plain.every("meta") if "http-equiv" in a]
    assert policy == "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


@pytest.mark.parametrize(
    ("change", "warning"),
    [
        ({"private": False}, "NOT PRIVATE"),
        ({"seeded": True}, "NOT PRIVATE: SEEDED NOISE"),
        ({"simulated": True, "trust": "Local"}, "SIMULATED"),
        ({"epsilon": 11.0, "delta": 0.01}, "WEAK PROMISE"),
        ({"delta": 0.01}, "δ TOO LARGE δ is not below 1 / rows"),
        ({"delta": 2e-4}, "δ TOO LARGE δ is not well below 1 / rows"),
    ],
)
def test_what_breaks_the_promise_stands_above_it(change: dict[str, Any], warning: str, plain: Page) -> None:
    seen = checked(made(privacy=attrs.evolve(STATEMENT, **change)))
    assert seen.text.index(warning) < seen.text.index("The promise")
    assert ("no promise" in seen.text) == warning.startswith("NOT PRIVATE")
    assert ("3 private clusters" in seen.text) != warning.startswith("NOT PRIVATE")
    assert not plain.every("aside")


def test_curves_intervals_and_estimates_are_shown_where_the_result_has_them(
    plain: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = {"silhouette": Estimate(0.7123, 0.013), "cost": Estimate(0.5, 0.1)}
    monkeypatch.setattr(page, "profile_of", lambda result: attrs.evolve(profile_of(result), **known))
    intervals = {"intervals": [[-0.5, 0.5]] * 3, "units": [0.5] * 3, "unseen": 0.04}
    curve = {"k": [2, 3, 4], "costs": [9.0, 4.0, 3.0], "suggested": 3, "why": "<b>it bends"}
    full = checked(made(details={**intervals, "costs": [9.0, 4.0, 1.0], "power": 2})).text
    for said in ("How many clusters", "the interval within the column", "0.712 ± 0.013", "0.50 ± 0.10"):
        assert (said in full, said in plain.text) == (True, False)
    assert "releases too little to estimate" in plain.text
    assert "It suggests k = 3: <b>it bends." in checked(made(details={"curve": curve})).text


@pytest.mark.parametrize(("module", "library"), [("jinja2", "Jinja2"), ("matplotlib", "matplotlib")])
def test_without_a_library_the_extra_is_named(module: str, library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtra, match=rf"needs {library}: pip install .*\[plot\]'"):
        html_of(made())


@pytest.mark.parametrize(
    "change",
    [
        {"problem": {}},
        {"method": {"name": "x", "slots": 3}},
        {"centers": np.full((3, 3), np.nan)},
        {"problem": {**made().problem, "categories": 3}},
        *({"privacy": attrs.evolve(STATEMENT, **{name: 3})} for name in ("trust", "notes", "spends")),
        {"privacy": attrs.evolve(STATEMENT, epsilon="much")},
    ],
)
def test_results_without_sense_are_refused(change: dict[str, Any]) -> None:
    with pytest.raises(Damaged):
        html_of(made(**change))
