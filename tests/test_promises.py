"""The table of promises: each is said, in those words, and has deliberate faults that play its adversary."""

from __future__ import annotations

import ast
import re

import pytest

from tests.docs.pages import ROOT, extension

TABLE = extension("promises")
"""``docs/_ext/promises.py``, which reads ``promises.toml``."""


def words(path: str) -> str:
    """What a file says: its text, or of source its text literals, with single spaces."""
    text = (ROOT / path).read_text("utf-8")
    if path.endswith(".py"):
        nodes = ast.walk(ast.parse(text))
        text = "\n".join(n.value for n in nodes if isinstance(n, ast.Constant) and isinstance(n.value, str))
    return " ".join(text.split())


def test_each_promise_is_said_and_has_faults_that_break_it() -> None:
    """A fault that is gone, or has another name, is an error too; that its tests exist and see it is tested where the
    faults are."""
    for promise in TABLE.promises():
        assert promise.faults or promise.source == TABLE.THREATS, promise.says
        assert " ".join(promise.says.split()) in words(promise.source), promise.says


@pytest.mark.parametrize(
    ("path", "pattern"),
    [
        ("CONTRIBUTING.md", r"^\d\. (?:.*\n)(?:   .*\n)*"),
        ("docs/explanation/trust_models.md", r"^\| (\*\*\w+\*\*)"),
        ("docs/howto/users.md", r"^\* (\*\*.+?\*\*)"),
        ("docs/explanation/liars.md", r"^\d\. (\*\w+\.\*)"),
    ],
)
def test_what_is_promised_in_a_list_is_in_the_table_to_the_last(path: str, pattern: str) -> None:
    """Laws, trust models, what users and liars are told: one that is added has no test until it is in the table."""
    text = (ROOT / path).read_text("utf-8")
    if path == "CONTRIBUTING.md":
        text = text.partition("## Privacy laws")[2].partition("\n## ")[0]
    items = [match.group(0) for match in re.finditer(pattern, text, re.MULTILINE)]
    said = [" ".join(promise.says.split()) for promise in TABLE.promises() if promise.source == path]
    assert len(items) >= 4
    assert [item for item in items if not any(one in " ".join(item.split()) for one in said)] == []
