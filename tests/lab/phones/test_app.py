"""What the page asks its server for: files, numbers of people, and what is read in reports."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import numpy as np
import pytest

from cloister.collection.client.encoder import PlanEncoder
from cloister.lab.phones.app import PAGE, SAFE, client
from cloister.lab.phones.crowd import Numbers, plan_of
from cloister.lab.phones.reader import Reader
from tests.alarms import Alarm
from tests.lab.phones.serving import SMALL, serving

pytestmark = pytest.mark.thorough
PLAN = plan_of(20_000, 2.0)


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


def test_the_page_and_the_client_are_served_as_they_are_and_nothing_comes_from_elsewhere(address: str) -> None:
    for where, files in (("page", PAGE.iterdir()), ("client", client().glob("*.js"))):
        for file in files:
            text = file.read_text("utf-8")
            assert where == "client" or "//" not in text.replace("http://www.w3.org/2000/svg", "").replace("// ", "")
            with urlopen(f"{address}/{where}/{file.name}") as answer:
                assert answer.read().decode() == text


@pytest.mark.parametrize(
    ("path", "method", "status"),
    [
        ("/demo/likely", "GET", 400),
        ("/demo/likely?report=zz", "GET", 400),
        ("/demo/likely?report=c1", "GET", 400),
        (f"/demo/likely?report={'00' * 18}", "GET", 400),
        ("/demo/start", "GET", 405),
        ("/client/%2e%2e/package.json", "GET", 404),
        ("/page/nothing.js", "GET", 404),
    ],
)
def test_what_is_not_there_or_wrong_is_refused(path: str, method: str, status: int, address: str) -> None:
    with pytest.raises(HTTPError) as refused:
        got(address + path, method)
    refused.value.close()
    assert refused.value.code == status


def test_the_first_page_gets_the_numbers_of_its_phones_and_visitors_keep_theirs() -> None:
    with serving() as (url, _):
        assert len(got(f"{url}/demo/start", "POST")["numbers"]) == SMALL.here
        assert got(f"{url}/demo/start", "POST")["numbers"] == []
        while got(f"{url}/round")["reports"] < SMALL.people - SMALL.here - SMALL.visitors:
            pass
        given = [got(f"{url}/demo/number", "POST")["number"] for _ in range(SMALL.visitors + 1)]
    assert given[-1] is None
    assert len(set(given[:-1])) == SMALL.visitors


def test_each_number_is_given_out_once_whoever_asks() -> None:
    numbers = Numbers(1000)
    with ThreadPoolExecutor(4) as asking:
        taken = asking.map(lambda _: [number for _ in range(40) for number in numbers.take(7)], range(4))
    assert sorted(number for some in taken for number in some) == list(range(1000))
    assert numbers.take(1) == []


def test_numbers_come_in_an_order_that_differs_each_time() -> None:
    first, second = (Numbers(1000).take(1000) for _ in range(2))
    assert first != second  # equal once in 1000!
    assert first != sorted(first)


@pytest.mark.alarm(1e-7)
def test_a_report_comes_from_lit_cells_so_many_times_as_often_as_from_others(tmp_path: Path, alarm: Alarm) -> None:
    """The share of people whose own cell is lit is e^eps p / (e^eps p + 1 - p), p the share of lit cells. 1,000 people,
    and a tolerance for p, which differs by person."""
    reader, n = Reader(PLAN, tmp_path), 1000
    encoder, row = PlanEncoder(PLAN), [7.1, 3.3]
    own, lit = 0, list[float]()
    for user in range(n):
        found = reader.likely(encoder.encode([row], [user]).to_bytes())
        own += [int(hours / 12 * found["side"]) for hours in row] in found["cells"]
        lit.append(len(found["cells"]) / found["side"] ** 2)
        assert found["times"] == math.exp(2.0)
    p = float(np.mean(lit))
    expected = math.exp(2.0) * p / (math.exp(2.0) * p + 1 - p)
    assert own / n == pytest.approx(expected, abs=alarm.errors() * math.sqrt(0.25 / n) + 0.01)
    assert p == pytest.approx(1 / 8, abs=0.02)
