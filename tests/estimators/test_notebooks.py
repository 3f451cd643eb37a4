"""What a notebook shows: tables whose texts are escaped, pictures, the promise below the diagram, progress."""

from __future__ import annotations

import os
import pty
import re
import sys
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

import attrs
import pandas as pd
import pytest

from cloister.showing import progress as shown
from tests.estimators.fitted import NAMES, blobs, model
from tests.showing.report.pages import Page


@pytest.fixture(scope="module")
def fitted() -> Any:
    return model().fit(pd.DataFrame(blobs(), columns=NAMES))


def test_a_result_is_a_table_and_the_promise_and_no_text_of_others_is_a_tag(fitted: Any) -> None:
    """The statement's notes and the method's name are of others too: a file of results may be anybody's."""
    evil = "<script>alert(1)</script><img src=x onerror=alert(1)>"
    privacy = attrs.evolve(fitted.privacy_, notes=(evil,), trust="Central")
    result = attrs.evolve(fitted.result_, method={**fitted.result_.method, "name": evil}, privacy=privacy)
    tables = {"table", "caption", "thead", "tbody", "tr", "th", "td"}
    assert {tag for tag, _ in Page(result._repr_html_()).tags} == tables | {"p", "strong", "details", "summary", "pre"}
    assert "age" in result._repr_html_()
    assert f"{result.weights[0]:.0f}" in result._repr_html_()


def test_a_wide_result_shows_some_columns_and_says_so() -> None:
    rows = blobs(200)[:, [0] * 30]
    assert "... 10 more" in model(rows=200).fit(rows).result_._repr_html_()


def formatted(thing: Any) -> Any:
    """What a notebook shows of a thing, by type."""
    return pytest.importorskip("IPython.core.formatters").DisplayFormatter().format(thing)[0]


def test_a_notebook_formats_results_statements_and_estimators(fitted: Any) -> None:
    for thing in (fitted, fitted.result_, fitted.privacy_):
        assert "epsilon = 4, delta = 1e-06, Central trust" in formatted(thing)["text/html"]
    for thing in (fitted, fitted.result_, fitted.privacy_, fitted.result_.profile()):
        assert "<script>alert" not in formatted(thing)["text/html"]
    diagram = formatted(model())["text/html"]
    assert ("KMeans" in diagram, "epsilon = 4" in diagram) == (True, False)


def test_a_notebook_shows_pictures_without_any_backend_of_matplotlib(fitted: Any) -> None:
    assert formatted(fitted.plot(NAMES))["image/png"].startswith(b"\x89PNG")
    with pytest.raises(ValueError, match="axes and project are for the map"):
        fitted.plot(NAMES, curve=True)


def test_short_work_shows_nothing_on_a_terminal_and_long_work_does(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = pty.openpty()
    os.set_blocking(ours, False)

    def seen(**asked: Any) -> bytes:
        found = b""
        model(method="fastlloyd", **asked).fit(blobs())
        with suppress(BlockingIOError):
            while True:  # a terminal gives at most 4 KB at once
                found += os.read(ours, 10**6)
        return found

    monkeypatch.setenv("TERM", "xterm")
    with open(theirs, "w") as terminal, monkeypatch.context() as patch:
        patch.setattr(sys, "stderr", terminal)
        patch.setattr("cloister.estimators.base.SOON", 1000.0)  # this machine may be slow
        assert seen() == b""
        patch.setattr("cloister.estimators.base.SOON", 0.0)
        assert re.search(rb"round (\d+) of \1", seen())
        assert seen(progress=False) == b""
    os.close(ours)


def test_a_file_does_not_tell_where_the_bar_stopped(capsys: pytest.CaptureFixture[str]) -> None:
    """Whoever is shown it would read the share of the public number of rows that there are."""
    seen = set[str]()
    for rows in (blobs(), blobs(1000), blobs(10)):
        model(method="fastlloyd", options={"rounds": 2}, zoom="off", progress=True).fit(rows)
        seen.add(capsys.readouterr().err)
    (shown_always,) = seen
    assert re.search(r"round (\d+) of \1 ", shown_always)


@pytest.mark.parametrize("public", [2000, None])
def test_a_notebook_shows_a_bar_that_vanishes_and_saved_half_way_has_no_number_of_rows(
    public: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("IPython")
    bundles = list[dict[str, str]]()

    def display(bundle: dict[str, str], **how: Any) -> Any:
        bundles.append(bundle)
        return SimpleNamespace(update=display)

    monkeypatch.setattr("IPython.display.display", display)
    monkeypatch.setattr(shown, "_in_notebook", lambda: True)
    monkeypatch.setattr(shown, "MIN_INTERVAL", 0.0)
    model(rows=public, progress=True, delta=0.0, method="su-lloyd", options={"rounds": 2}, zoom="off").fit(blobs(1987))
    texts = [bundle["text/plain"] for bundle in bundles]
    assert "round 1 of 2: 49%" in texts if public else "round 1 of 3: ..." in texts  # one counts the rows
    assert texts[-1] == ""
    seen = [text for bundle in bundles for text in bundle.values()]
    assert not [text for text in seen if re.search(r"1,?9\d\d|3,?9\d\d", text)]
