"""The JavaScript client in a real browser: the bytes of all vectors, and a memory that tabs share."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from tests.browser import CHROMIUM, Browser

ROOT = Path(__file__).parents[2]
VECTORS = sorted(
    path.stem for path in (ROOT / "tests/vectors").glob("*.json") if path.stem not in ("primitives", "wrong")
)

HELPERS = """
const { Bundle, Client, IndexedDBStore, encode } = await import("/clients/javascript/dist/cloister-client.js");
const vectors = async (name) => (await fetch(`/tests/vectors/${name}.json`)).json();
const files = ({ bundle, arrays }) => ({
  json: new TextEncoder().encode(bundle), bin: Uint8Array.from(atob(arrays), (c) => c.charCodeAt(0)),
});
const hex = (bytes) => bytes && Array.from(bytes, (b) => b.toString(16).padStart(2, "0")).join("");
const replayed = (words, at = 0) => (n) => BigUint64Array.from(words.slice(at, (at += n)), (w) => BigInt(`0x${w}`));
"""

ALL_VECTORS = """
let right = 0, wrong = [];
for (const name of %s)
  for (const given of (await vectors(name)).bundles) {
    const bundle = await Bundle.load(files(given));
    for (const { row, user, words, report } of given.cases)
      hex(encode(bundle, row, user, replayed(words))) === report ? right++ : wrong.push(name);
  }
return { right, wrong };
"""

ANSWERED = """
const bundle = await Bundle.load(files((await vectors("method-tree-coreset-lsh")).bundles[0]));
const client = () => new Client({ user: 7, store: new IndexedDBStore("test"), lifetime: 10 });
return Promise.all(Array.from({ length: 6 }, async () => hex(await client().answer(bundle, [0.1, 0.2]))));
"""

SPENT = "return new Client({ user: 7, store: new IndexedDBStore('test') }).spent();"

pytestmark = [
    pytest.mark.thorough,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed"),
    pytest.mark.skipif(not VECTORS, reason="there are no vectors"),
]


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def page() -> Iterator[str]:
    """The address of a page of the repository's files."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(ROOT)))
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/clients/javascript/"
    server.shutdown()
    server.server_close()


def program(text: str) -> str:
    return f"(async () => {{ {HELPERS} {text} }})()"


def test_a_browser_makes_the_bytes_of_all_vectors(page: str, tmp_path: Path) -> None:
    with Browser(tmp_path / "profile") as browser:
        browser.open(page)
        found = browser.value(program(ALL_VECTORS % json.dumps(VECTORS)))
    assert found["wrong"] == []
    assert found["right"] > len(VECTORS)


def test_tabs_at_once_and_later_visits_send_one_report(page: str, tmp_path: Path) -> None:
    """A frame is a page of its own: it shares with the other one what the browser stores, and nothing else."""
    twice = f"""(async () => {{
      const frame = document.body.appendChild(document.createElement("iframe"));
      await new Promise((done) => {{ frame.onload = done; frame.src = location.href; }});
      return Promise.all([window, frame.contentWindow].map((one) => one.eval({json.dumps(program(ANSWERED))})));
    }})()"""
    with Browser(tmp_path / "profile") as browser:
        browser.open(page)
        here, there = browser.value(twice)
        browser.open(page)
        later, spent = browser.value(program(ANSWERED)), browser.value(program(SPENT))
    with Browser(tmp_path / "profile") as browser:
        browser.open(page)
        assert set(browser.value(program(ANSWERED))) == {*here, *there, *later}
    assert len({*here, *there, *later}) == 1
    assert (spent["epsilon"], spent["left"][0]) == (8, 2)
