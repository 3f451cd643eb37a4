"""What the collector is told on its command line about those who reach it."""

from __future__ import annotations

import pytest

from cloister.collection.service.running import check_origin
from cloister.core.errors import InvalidInput


@pytest.mark.parametrize(
    "origin",
    [
        "*",
        "https://example.org",
        "http://example.org",
        "https://example.org:8443",
        "http://localhost:8080",
        "http://127.0.0.1:443",
        "http://example.org:443",
        "https://example.org:80",
        "https://[::1]:8080",
        "https://xn--mnchen-3ya.example",
    ],
)
def test_an_origin_is_what_browsers_say(origin: str) -> None:
    check_origin(origin)


@pytest.mark.parametrize(
    ("origin", "said"),
    [
        ("", "as in https://example.org"),
        ("null", "as in https"),
        ("example.org", "as in https"),
        ("ftp://example.org", "as in https"),
        ("https://example.org/", "no path"),
        ("https://example.org?a", "no path"),
        ("https://ann@example.org", "as in https"),
        ("https://Example.org", "small letters"),
        ("HTTPS://example.org", "as in https"),
        ("https://münchen.example", "xn--"),
        ("https://example.org https://example.com", "as in https"),
        ("https://example.org:443", "leave the usual port out: --origin https://example.org, not"),
        ("http://example.org:80", "leave the usual port out: --origin http://example.org, not"),
    ],
)
def test_what_no_browser_says_would_let_no_page_in_and_is_refused(origin: str, said: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        check_origin(origin)
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)
