"""What pages have in common: none is long, and each how-to begins with what one has and ends with what one gets."""

from __future__ import annotations

import re

import pytest

from tests.docs.pages import PAGES

MOST = 250
"""Lines of a page. What the site's build makes is not among ``PAGES``."""

DOCS = [page for page in PAGES if page.startswith("docs/")]
HOWTO = [page for page in DOCS if page.startswith("docs/howto/") and not page.endswith("/index.md")]


def test_no_page_is_too_long_to_read_at_once() -> None:
    lines = {page: PAGES[page].read_text("utf-8").count("\n") for page in DOCS}
    assert {page: count for page, count in lines.items() if count > MOST} == {}


@pytest.mark.parametrize("page", HOWTO)
def test_a_how_to_begins_with_what_one_has_and_ends_with_what_one_gets(page: str) -> None:
    """A reader knows by the first sentence whether it is for her, and by the last section whether she is done."""
    text = re.sub(r"<!--.*?-->\n|^```.*?^```$", "", PAGES[page].read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    title, first = re.split(r"\n{2,}", text)[:2]
    assert re.fullmatch(r"# .+", title)
    assert first.startswith("**You have** "), "the first paragraph is one that says what the reader has"
    assert len(first) < 250
    assert re.findall(r"^## (.+)$", text, re.MULTILINE)[-1] == "What you have now"
    assert text.partition("## What you have now\n")[2].strip()
