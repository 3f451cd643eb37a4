"""The page of ``cloister demo --phones`` in a real browser: it is a phone, with the JavaScript client and WebCrypto."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from cloister.collection.wire.answers import layout_of
from cloister.collection.wire.batches import BatchForm
from cloister.lab.phones.crowd import plan_of
from tests.browser import CHROMIUM, Browser
from tests.lab.phones.serving import SMALL, Asked, Recorder, leaked, serving, traces

pytestmark = [
    pytest.mark.thorough,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed"),
]
PLAN = plan_of(SMALL.people, 2.0)
"""As the demonstration's, but for its seed."""

ROW, OTHER = (7.9, 2.8), (1.7, 11.9)


@pytest.fixture(scope="module")
def demonstration() -> Iterator[tuple[str, Recorder]]:
    with serving() as running:
        yield running


def phone(browser: Browser, address: str) -> None:
    """Open the page, and wait until it can be used."""
    browser.open(f"{address}/")
    browser.wait("!document.querySelector('#send').disabled")


def choose(browser: Browser, row: tuple[float, float]) -> None:
    """Move the sliders."""
    for j, value in enumerate(row):
        slider = f"document.querySelector('#column-{j}')"
        browser.value(f"{slider}.value = {value}, {slider}.dispatchEvent(new Event('input'))")
        assert browser.value(f"document.querySelector('output[for=column-{j}]').textContent") == f"{value} hours"


def send(browser: Browser) -> str:
    """Send the report, and see what is said of it."""
    browser.click("#send")
    browser.wait("!document.querySelector('#send').disabled && !document.querySelector('#report').hidden")
    browser.wait("document.querySelector('#read .lit')")
    return str(browser.value("document.querySelector('#status').textContent"))


def reports(recorder: Recorder) -> list[bytes]:
    """The single reports that were sent, but for those of the crowd."""
    return [asked.body for asked in recorder.of("/reports") if asked.body[:1] == b"\xc1"]


def test_a_row_stays_in_the_page_a_byte_goes_and_a_reload_sends_the_very_same(
    demonstration: tuple[str, Recorder], tmp_path: Path
) -> None:
    address, recorder = demonstration
    with Browser(tmp_path / "profile") as browser:
        phone(browser, address)
        assert "at most 7.39 times" in browser.value("document.querySelector('#promise').textContent")
        assert "Nobody but the person herself sees her row" in browser.value("document.body.textContent")
        choose(browser, ROW)
        assert send(browser).startswith("Accepted")
        (report,) = reports(recorder)
        shown = browser.value("document.querySelector('#bytes').textContent")
        assert bytes.fromhex(shown) == report
        parsed = BatchForm(report[1:9].hex() + "0" * 48, 1, layout_of(PLAN.round()).bytes).parse(report)
        (number,) = parsed.users.tolist()
        assert number < SMALL.people
        assert f"{report[-1]:02x}" in browser.value("document.querySelector('h1').textContent")
        choose(browser, OTHER)  # whatever her row is now
        assert "already" in send(browser)
        phone(browser, address)  # as a reload
        assert "already" in send(browser)
        assert browser.complaints == [CONFLICT] * 2
    with Browser(tmp_path / "profile") as browser:  # the next day
        phone(browser, address)
        for _ in range(10):  # new coins would show: a byte has eight values
            assert "already" in send(browser)
    assert reports(recorder) == [report] * 13
    for row in (ROW, OTHER):
        assert leaked(traces(row, PLAN.domain), recorder.asked) == []


CONFLICT = "Failed to load resource: the server responded with a status of 409 (Conflict)"
"""What a browser itself writes of a report that was sent before."""


def test_a_row_that_left_would_be_seen() -> None:
    for secret in traces(ROW, PLAN.domain):
        assert leaked(traces(ROW, PLAN.domain), [Asked("/reports", b"", b"report" + secret)]) == [secret]


def test_centres_appear_as_the_crowd_reports(demonstration: tuple[str, Recorder], tmp_path: Path) -> None:
    address, recorder = demonstration
    with Browser(tmp_path / "profile") as browser:
        phone(browser, address)
        before = len(reports(recorder))
        assert browser.value("document.querySelectorAll('#map .found').length") == 0
        browser.click("#start")
        everybody = SMALL.people - SMALL.visitors
        browser.wait(f"document.querySelector('#progress').value >= {everybody}")
        browser.wait("document.querySelectorAll('#map .found').length === 4")
        browser.wait(f"document.querySelector('#here').textContent.includes(' {SMALL.here} of them')")
        assert len(set(reports(recorder)[before:])) == SMALL.here
        off = browser.value("[...document.querySelectorAll('#centres td:last-child')].map((cell) => +cell.textContent)")
        assert len(off) == 4
        assert sorted(off)[1] < 2  # hours; 4,000 people are few
        browser.click("#truth")
        assert browser.value("document.querySelectorAll('#map .true').length") == 0
        assert browser.complaints == []


@pytest.mark.parametrize("width", [1200, 400])
def test_it_fits_its_window_and_everything_has_a_name(
    width: int, demonstration: tuple[str, Recorder], tmp_path: Path
) -> None:
    with Browser(tmp_path / "profile") as browser:
        browser.look(width)
        phone(browser, demonstration[0])
        send(browser)
        assert browser.value("document.documentElement.scrollWidth") <= width
        nodes = [node for node in browser.tell("Accessibility.getFullAXTree")["nodes"] if not node["ignored"]]
        named = {(node["role"]["value"], node.get("name", {}).get("value", "")) for node in nodes}
        assert {"slider", "button", "image", "progressbar", "checkbox"} <= {role for role, _ in named}
        assert [role for role, name in named if role in NAMED and not name] == []


NAMED = {"slider", "button", "image", "progressbar", "checkbox", "region", "heading", "DisclosureTriangle"}
"""What a reader of screens must be able to say the name of."""


def test_a_phone_refuses_what_was_changed_on_its_way_and_sends_nothing(tmp_path: Path) -> None:
    with serving() as (address, recorder), Browser(tmp_path / "profile") as browser:
        recorder.changed["/bundle-1.json"] = lambda body: body.replace(b'"users":4000', b'"users":4001')
        browser.open(f"{address}/")
        browser.wait("!document.querySelector('#alarm').hidden")
        assert "this bundle is refused" in browser.value("document.querySelector('#alarm').textContent")
        assert browser.value("document.querySelector('#send').disabled && document.querySelector('#start').disabled")
        browser.click("#send")
        assert recorder.of("/reports") == []
