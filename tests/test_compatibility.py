"""Names that a version has promised are there: docs/reference/compatibility.md says for how long."""

from __future__ import annotations

import json
import os
from typing import Any

import pytest

from tests.docs.pages import ROOT


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> Any:
    """``docs/_ext/kept.py``, which reads ``tests/written_before/names.json``."""
    monkeypatch.syspath_prepend(str(ROOT / "docs" / "_ext"))
    import kept

    return kept


def missing(wanted: dict[str, list[str]], there: dict[str, list[str]]) -> list[str]:
    return [f"{where} {name}" for where, names in wanted.items() for name in names if name not in there.get(where, [])]


def test_no_name_that_was_promised_is_gone(kept: Any) -> None:
    """One that goes is taken out of names.json by hand, after the versions in which it was deprecated."""
    assert missing(kept.kept(), kept.today()) == []


def test_each_name_of_today_is_promised(kept: Any) -> None:
    """Writing adds names, and takes none away."""
    promised, there = kept.kept(), kept.today()
    if os.environ.get("CLOISTER_GOLDEN") == "write":
        all_of = {where: sorted({*promised.get(where, []), *there.get(where, [])}) for where in {**promised, **there}}
        lines = {where: " ".join(names) for where, names in sorted(all_of.items())}
        (kept.BEFORE / "names.json").write_text(json.dumps(lines, indent=1) + "\n", "utf-8")
        promised = kept.kept()
    assert missing(there, promised) == [], "set CLOISTER_GOLDEN=write to promise the new names"


def test_the_page_lists_every_name_and_format_that_is_kept(kept: Any) -> None:
    page = "".join(kept.page())
    assert all(f"``{name}``" in page for names in kept.kept().values() for name in names)
    assert page.count("``test_") == (kept.BEFORE / "formats.toml").read_text("utf-8").count("[[format]]")
