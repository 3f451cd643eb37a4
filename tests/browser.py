"""A real browser without a window, driven over its own debugging pipe: no driver to install.

    with Browser(folder) as browser:
        browser.open("http://127.0.0.1:8000/")
        browser.wait("document.querySelector('#done')")

``folder`` keeps the profile: a second browser there remembers what the first one stored.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from select import select
from types import TracebackType
from typing import Any, Self

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
)
PATIENCE = 300.0
"""Seconds that anything may take."""


class Browser:
    """One browser with one page. Attributes: complaints (errors and warnings on the page's console, so far)."""

    def __init__(self, folder: Path) -> None:
        self.complaints = list[str]()
        self._number, self._buffer, self._session = 0, b"", ""
        ours, theirs = os.pipe(), os.pipe()
        self._out, self._in = ours[1], theirs[0]
        command = [str(CHROMIUM), *FLAGS, f"--user-data-dir={folder}", "--remote-debugging-pipe", "about:blank"]
        with open(folder.with_suffix(".log"), "ab") as log:
            self._process = subprocess.Popen(
                ["bash", "-c", f'exec "$@" 3<&{ours[0]} 4>&{theirs[1]}', "bash", *command],
                pass_fds=(ours[0], theirs[1]),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        os.close(ours[0])
        os.close(theirs[1])

    def __enter__(self) -> Self:
        (page,) = [t for t in self.tell("Target.getTargets")["targetInfos"] if t["type"] == "page"]
        self._session = self._attached(page["targetId"])
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._session = ""
        with contextlib.suppress(OSError, AssertionError):
            self.tell("Browser.close")  # writes down what pages have stored
        try:
            self._process.wait(PATIENCE)
        finally:
            self._process.kill()
            os.close(self._out)
            os.close(self._in)

    @contextlib.contextmanager
    def another_tab(self) -> Iterator[None]:
        """A second page beside this one, which shares with it what the browser stores: in front, within the block."""
        first, self._session = self._session, ""
        made = self.tell("Target.createTarget", url="about:blank")["targetId"]
        try:
            self._session = self._attached(made)
            yield
        finally:
            self._session = first

    def open(self, address: str) -> None:
        """Go to a page, or load the one that is open again."""
        assert "errorText" not in self.tell("Page.navigate", url=address)
        self.wait("document.readyState === 'complete'")

    def value(self, expression: str) -> Any:
        """What an expression is on the page, awaited. Raises: AssertionError: it throws."""
        done = self.tell("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in done, done
        return done["result"].get("value")

    def wait(self, condition: str) -> None:
        """Until an expression holds on the page, or on one that it leads to. Raises: AssertionError: it never does."""
        end = time.monotonic() + PATIENCE
        while not self._holds(condition):
            assert time.monotonic() < end, f"{condition} never came true; console: {self.complaints}"
            time.sleep(0.1)

    def _holds(self, condition: str) -> bool:
        try:
            return bool(self.value(f"Boolean({condition})"))
        except AssertionError as error:
            if "navigated" in str(error):  # the page went away while it was asked
                return False
            raise

    def click(self, selector: str) -> None:
        """A click by a user's finger, which a button that is hidden or switched off does not feel."""
        self.value(f"document.querySelector({json.dumps(selector)}).click()")

    def look(self, width: int, dark: bool = False, height: int = 800) -> None:
        """Set the window's width and whether the user likes it dark."""
        self.tell("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.tell("Emulation.setEmulatedMedia", features=[scheme])

    def screenshot(self, file: Path) -> None:
        """The whole page, also what lies below the window, as a PNG."""
        shot = self.tell("Page.captureScreenshot", format="png", captureBeyondViewport=True)
        file.write_bytes(base64.b64decode(shot["data"]))

    def tell(self, method: str, **parameters: Any) -> dict[str, Any]:
        """A command of the Chrome DevTools Protocol, and its answer."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                return dict(answer["result"])
            self._complaint(answer)

    def _attached(self, page: str) -> str:
        """The session of a page, whose console is read from now on."""
        session = str(self.tell("Target.attachToTarget", targetId=page, flatten=True)["sessionId"])
        before, self._session = self._session, session
        for domain in ("Page", "Runtime", "Log"):
            self.tell(f"{domain}.enable")
        self._session = before
        return session

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            ready, _, _ = select([self._in], [], [], PATIENCE)
            piece = os.read(self._in, 2**20) if ready else b""
            assert piece, "the browser says nothing any more"
            self._buffer += piece
        line, _, self._buffer = self._buffer.partition(b"\0")
        return dict(json.loads(line))

    def _complaint(self, said: dict[str, Any]) -> None:
        parameters = said.get("params", {})
        if said.get("method") == "Runtime.exceptionThrown":
            self.complaints.append(str(parameters["exceptionDetails"]))
        elif said.get("method") == "Runtime.consoleAPICalled" and parameters["type"] in ("error", "warning"):
            self.complaints.append(str(parameters["args"]))
        elif said.get("method") == "Log.entryAdded" and parameters["entry"]["level"] in ("error", "warning"):
            self.complaints.append(str(parameters["entry"]["text"]))
