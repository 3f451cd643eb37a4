"""Names that a version has promised are there: docs/reference/compatibility.md says for how long."""

from __future__ import annotations

import json
import os

from tests.docs.pages import extension

KEPT = extension("kept")
"""``docs/_ext/kept.py``, which reads ``tests/written_before/names.json``."""


def missing(wanted: dict[str, list[str]], there: dict[str, list[str]]) -> list[str]:
    return [f"{where} {name}" for where, names in wanted.items() for name in names if name not in there.get(where, [])]


def test_no_name_that_was_promised_is_gone() -> None:
    """One that goes is taken out of names.json by hand, after the versions in which it was deprecated."""
    assert missing(KEPT.kept(), KEPT.today()) == []


def test_each_name_of_today_is_promised() -> None:
    """Writing adds names, and takes none away."""
    promised, there = KEPT.kept(), KEPT.today()
    if os.environ.get("CLOISTER_GOLDEN") == "write":
        all_of = {where: sorted({*promised.get(where, []), *there.get(where, [])}) for where in {**promised, **there}}
        lines = {where: " ".join(names) for where, names in sorted(all_of.items())}
        (KEPT.BEFORE / "names.json").write_text(json.dumps(lines, indent=1) + "\n", "utf-8")
        promised = KEPT.kept()
    assert missing(there, promised) == [], "set CLOISTER_GOLDEN=write to promise the new names"


def test_the_page_lists_every_name_and_format_that_is_kept() -> None:
    page = "".join(KEPT.page())
    assert all(f"``{name}``" in page for names in KEPT.kept().values() for name in names)
    assert page.count("``test_") == (KEPT.BEFORE / "formats.toml").read_text("utf-8").count("[[format]]")
