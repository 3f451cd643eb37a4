"""What the page asks its server for."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from cloister.lab.phones.app import PAGE, SAFE, client
from cloister.lab.phones.crowd import GROUPS
from tests.lab.phones.serving import SMALL, serving

pytestmark = pytest.mark.thorough


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with serving() as (url, _):
        yield url


def got(url: str, method: str = "GET") -> Any:
    with urlopen(Request(url, method=method)) as answer:
        return json.load(answer)


def test_the_page_may_ask_its_own_server_and_nobody_else(address: str) -> None:
    with urlopen(f"{address}/") as answer:
        policy, text = answer.headers["Content-Security-Policy"], answer.read().decode()
    assert policy.startswith("default-src 'self';")
    assert text == (PAGE / "index.html").read_text("utf-8")
    for path in ("/page/index.html", "/page/page.js", "/client/bundle.js"):
        with urlopen(f"{address}{path}") as answer:
            assert {name: answer.headers[name] for name in SAFE} == SAFE


@pytest.mark.parametrize("file", sorted(PAGE.iterdir()), ids=lambda file: file.name)
def test_nothing_on_the_page_comes_from_elsewhere(file: Path, address: str) -> None:
    text = file.read_text("utf-8")
    assert "//" not in text.replace("http://www.w3.org/2000/svg", "").replace("// ", "")
    with urlopen(f"{address}/page/{file.name}") as answer:
        assert answer.read().decode() == text


def test_the_client_is_served_as_it_is(address: str) -> None:
    for file in client().glob("*.js"):
        with urlopen(f"{address}/client/{file.name}") as answer:
            assert answer.read() == file.read_bytes()
            assert answer.headers["Content-Type"].startswith("text/javascript")


def test_numbers_are_given_out_and_facts_are_told(address: str) -> None:
    facts = got(f"{address}/demo/facts")
    assert facts == {"people": 4000, "here": 60, "groups": [list(group) for group in GROUPS], "spread": 0.6}
    first, second = (got(f"{address}/demo/number", "POST")["number"] for _ in range(2))
    assert first != second
    assert {first, second} < set(range(SMALL.people))


@pytest.mark.parametrize(
    ("path", "method", "status"),
    [
        ("/demo/likely", "GET", 400),
        ("/demo/likely?report=zz", "GET", 400),
        ("/demo/likely?report=c1", "GET", 400),
        ("/demo/number", "GET", 405),
        ("/demo/start", "GET", 405),
        ("/page/../app.py", "GET", 404),
        ("/client/%2e%2e/package.json", "GET", 404),
        ("/page/nothing.js", "GET", 404),
        ("/nothing", "GET", 404),
    ],
)
def test_what_is_not_there_or_wrong_is_refused(path: str, method: str, status: int, address: str) -> None:
    with pytest.raises(HTTPError) as refused:
        got(address + path, method)
    refused.value.close()
    assert refused.value.code == status


def test_the_collector_is_beside_it(address: str) -> None:
    assert got(f"{address}/round")["open"] is True
    assert got(f"{address}/demo/found") == {"reports": 0, "centers": []}


def test_the_first_page_gets_the_numbers_of_its_phones_and_visitors_keep_theirs() -> None:
    with serving() as (url, _):
        assert len(got(f"{url}/demo/start", "POST")["numbers"]) == SMALL.here
        assert got(f"{url}/demo/start", "POST")["numbers"] == []
        while got(f"{url}/round")["reports"] < SMALL.people - SMALL.here - SMALL.visitors:
            pass
        given = [got(f"{url}/demo/number", "POST")["number"] for _ in range(SMALL.visitors + 1)]
    assert given[-1] is None
    assert len(set(given[:-1])) == SMALL.visitors
