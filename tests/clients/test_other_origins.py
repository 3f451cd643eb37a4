"""A page of another origin than the collector's, in a real browser: it reports where ``cloister serve`` names its
origin, and nothing that it sends goes anywhere else."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from cloister.collection.plan.plan import CollectionPlan
from cloister.collection.service.tickets import mint, new_key, read_key
from tests.browser import CHROMIUM, Browser
from tests.clients.test_browser import ROOT, Quiet
from tests.collection.service.collectors import collecting, form_of, on_disk, plan_in

pytestmark = [pytest.mark.thorough, pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed")]

ANSWERED = """(async () => {
  const { Client, IndexedDBStore } = await import("/clients/javascript/dist/cloister-client.js");
  const { url, user, store, ticket } = %s;
  const given = ticket ? Uint8Array.from(atob(ticket), (c) => c.charCodeAt(0)) : undefined;
  const client = new Client({ url, user, store: new IndexedDBStore(store), ticket: given, pause: async () => {} });
  try {
    const { status, report } = await client.answerOpenRound([0.1, 0.2, 0.3]);
    return { status, report: Array.from(report, (b) => b.toString(16).padStart(2, "0")).join("") };
  } catch (error) {
    return { refused: error.message };
  }
})()"""


def answered(url: str, user: int, store: str, ticket: bytes | None = None) -> str:
    """What a page does to answer a collector's open round."""
    given = None if ticket is None else base64.b64encode(ticket).decode()
    return ANSWERED % json.dumps({"url": url, "user": user, "store": store, "ticket": given})


@contextmanager
def served(handler: Any) -> Iterator[str]:
    """The origin of a server in this process."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture(scope="module")
def origin() -> Iterator[str]:
    """Of a page of the repository's files."""
    with served(partial(Quiet, directory=str(ROOT))) as found:
        yield found


@pytest.fixture(scope="module")
def browser(origin: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """With that page open."""
    with Browser(tmp_path_factory.mktemp("browser") / "profile") as found:
        found.open(f"{origin}/clients/javascript/")
        yield found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    plan_in(tmp_path / "plan")
    return tmp_path


def reported(folder: Path) -> list[int]:
    """User numbers that the collector has on its disk."""
    found: list[int] = on_disk(folder / "reports", form_of(CollectionPlan.read(folder / "plan"))).tolist()
    return found


def test_a_page_whose_origin_is_named_reports(origin: str, browser: Browser, folder: Path) -> None:
    with collecting(folder, "--origin", origin) as collector:
        done = browser.value(answered(collector.address, 3, "named"))
        assert done["status"] == "accepted", done
        assert browser.value(answered(collector.address, 3, "named")) == {**done, "status": "sent"}
        # a browser that has forgotten all about it is told that the number has reported
        assert browser.value(answered(collector.address, 3, "forgotten"))["status"] == "duplicate"
        assert collector.end() == 0
    assert reported(folder) == [3]


def test_a_page_sends_its_ticket_and_is_told_in_words_that_another_one_is_wrong(
    origin: str, browser: Browser, folder: Path
) -> None:
    plan = CollectionPlan.read(folder / "plan")
    new_key(folder / "issuer.key")
    wrong, right = mint(read_key(folder / "issuer.key"), plan.hash, [2, 3])
    with collecting(folder, "--origin", origin, "--tickets", "issuer.pub") as collector:
        for ticket, why in ((wrong, "the one that was given is of another number"), (None, "none was given")):
            said = browser.value(answered(collector.address, 3, "tickets", ticket))["refused"]
            assert "status 401" in said
            assert why in said
        assert browser.value(answered(collector.address, 3, "tickets", right))["status"] == "accepted"
        assert collector.end() == 0
    assert reported(folder) == [3]


class Open(BaseHTTPRequestHandler):
    """Lets every page do everything; notes the bodies that it is sent. Subclasses have notes, and where to send on."""

    sent: list[bytes]
    away: str | None = None

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def answer(self) -> None:
        self.sent.append(self.rfile.read(int(self.headers.get("content-length", 0))))
        self.send_response(307 if self.away and self.command != "OPTIONS" else 201)
        for name in ("origin", "headers", "methods"):
            self.send_header(f"access-control-allow-{name}", "content-type" if name == "headers" else "*")
        if self.away:
            self.send_header("location", f"{self.away}{self.path}")
        self.send_header("content-length", "0")
        self.end_headers()

    do_POST = do_OPTIONS = answer  # noqa: N815 (named by http.server)


REPORTED = """(async () => {
  const { Client, MemoryStore } = await import("/clients/javascript/dist/cloister-client.js");
  const report = new Uint8Array(200_000).fill(7);
  report[0] = 0xc1;
  new DataView(report.buffer).setBigUint64(10, 3n, true);
  const options = { url: %s, user: 3, store: new MemoryStore(), pause: async () => {} };
  const client = new Client({ ...options, ticket: new Uint8Array(64).fill(9) });
  return client.send(report).catch(({ message }) => message);
})()"""


def test_a_collector_that_sends_on_gets_no_report_to_another_host(browser: Browser) -> None:
    """A report and its ticket; to the first host they went anyway."""
    other, first = type("Other", (Open,), {"sent": []}), type("First", (Open,), {"sent": []})
    with served(other) as away, served(first) as near:
        assert browser.value(REPORTED % json.dumps(away)) == "accepted"  # it would take them
        assert max(map(len, other.sent)) == 200_000 + 64
        other.sent.clear()
        first.away = away
        assert "or sends on to another address, which is not followed" in browser.value(REPORTED % json.dumps(near))
    assert any(first.sent)
    assert other.sent == []


def test_two_tabs_at_once_and_later_visits_send_one_report(origin: str, tmp_path: Path, folder: Path) -> None:
    """A tab shares with another one what the browser stores, and nothing else; so it does with a later one."""
    page, found = f"{origin}/clients/javascript/", list[Any]()
    with collecting(folder, "--origin", origin) as collector:
        answer = answered(collector.address, 5, "tabs")
        begin = f"void (window.done = {answer})"
        with Browser(tmp_path / "profile") as browser:
            browser.open(page)
            browser.value(begin)
            with browser.another_tab():
                browser.open(page)
                browser.value(begin)
                found.append(browser.value("window.done"))
            found.append(browser.value("window.done"))
        with Browser(tmp_path / "profile") as browser:
            browser.open(page)
            found.append(browser.value(answer))
        assert collector.end() == 0
    statuses = [one["status"] for one in found]
    assert len({one["report"] for one in found}) == 1
    assert set(statuses) <= {"accepted", "duplicate", "sent"}
    assert (statuses.count("accepted"), statuses[-1]) == (1, "sent")
    assert reported(folder) == [5]
