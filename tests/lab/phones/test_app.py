"""The demonstration's server: what the page asks it for, the phones that it simulates, what it reads in reports."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from threading import Event, Thread
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import numpy as np
import pytest

from cloister.collection.client.encoder import PlanEncoder
from cloister.collection.wire.answers import layout_of
from cloister.collection.wire.batches import BatchForm
from cloister.core.errors import CloisterError
from cloister.lab.phones.app import PAGE, Reader
from cloister.lab.phones.crowd import GROUPS, PIECES, Numbers, SimulatedCrowd, plan_of, rows
from tests.lab.phones.serving import serving

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


@pytest.mark.parametrize("file", sorted(PAGE.iterdir()), ids=lambda file: file.name)
def test_nothing_on_the_page_comes_from_elsewhere(file: Path, address: str) -> None:
    text = file.read_text("utf-8")
    assert "//" not in text.replace("http://www.w3.org/2000/svg", "").replace("// ", "")
    with urlopen(f"{address}/page/{file.name}") as answer:
        assert answer.read().decode() == text


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


CROWD = plan_of(1000, 1.0)
FORM = BatchForm(CROWD.hash, 1, layout_of(CROWD.round()).bytes)


def test_every_phone_reports_once_in_so_many_batches_and_leaves_the_other_numbers() -> None:
    sent, numbers = list[bytes](), Numbers(1000)
    crowd = SimulatedCrowd(CROWD, numbers, 900, sent.append, 0.0)
    assert crowd.start()
    assert not crowd.start()
    while len(sent) < PIECES:
        Event().wait(0.01)
    crowd.stop()
    parsed = [FORM.parse(batch) for batch in sent]
    users = np.concatenate([some.users for some in parsed])
    assert all(some.wrong is None and not some.damaged for some in parsed)
    assert len(sent) == PIECES
    assert len(set(users.tolist())) == len(users) == 900
    assert sorted([*users.tolist(), *numbers.take(1000)]) == list(range(1000))


def test_each_number_is_given_out_once_whoever_asks() -> None:
    numbers, taken = Numbers(1000), list[list[int]]()
    asking = [Thread(target=lambda: taken.extend(numbers.take(7) for _ in range(40))) for _ in range(4)]
    for thread in asking:
        thread.start()
    for thread in asking:
        thread.join()
    assert sorted(number for some in taken for number in some) == list(range(1000))
    assert numbers.take(1) == []


def test_numbers_come_in_an_order_that_differs_each_time() -> None:
    first, second = (Numbers(1000).take(1000) for _ in range(2))
    assert first != second  # equal once in 1000!
    assert first != sorted(first)


PLAN = plan_of(20_000, 2.0)


def test_bytes_that_no_phone_sends_are_refused(tmp_path: Path) -> None:
    report = PlanEncoder(PLAN).encode([[7.0, 3.0]], [4711]).to_bytes()
    for wrong in (b"", report[:-1], report * 2, report[:1] + bytes(8) + report[9:], report[:-1] + b"\xff"):
        with pytest.raises(CloisterError):
            Reader(PLAN, tmp_path).likely(wrong)


def test_centres_are_found_anew_when_reports_have_come_and_only_then(tmp_path: Path) -> None:
    reader = Reader(PLAN, tmp_path)
    assert PLAN.outlook is not None
    for few in (0, 1, int(PLAN.outlook.error * PLAN.rows)):
        assert reader.found(few) == {"reports": few, "centers": []}  # nothing is read
    encoded = PlanEncoder(PLAN).encode(rows(20_000, np.random.default_rng(1)), np.arange(20_000))
    (tmp_path / "round-001-000001.reports").write_bytes(encoded.to_bytes())
    found = reader.found(20_000)
    assert found["reports"] == 20_000
    far = np.linalg.norm(np.asarray(found["centers"])[:, None] - np.asarray(GROUPS), axis=2)
    assert far.min(axis=0).max() < 1.5
    (tmp_path / "round-001-000001.reports").unlink()
    assert reader.found(20_000) == found
