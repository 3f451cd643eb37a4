"""The JavaScript client in a real browser: the bytes of all vectors. Its memory: ``test_other_origins.py``."""

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
const { Bundle, encode } = await import("/clients/javascript/dist/cloister-client.js");
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
