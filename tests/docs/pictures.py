"""The README's pictures: pages that its own commands make, as Chromium shows them.

    python -m tests.docs.pictures            docs/readme_report.png, docs/readme_phones.png

Noise is fresh, so that figures in the pictures differ from one time to the next.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from PIL import Image

from tests.browser import Browser
from tests.docs.pages import ROOT, blocks, commands
from tests.docs.running import programs

WIDTH, HEIGHT = 1000, 1540
"""Of a picture, in pixels: the page's beginning."""

COLOURS = 128
"""Of a picture: as few as show no difference make its file small."""


@contextmanager
def report(folder: Path, browser: Browser) -> Iterator[None]:
    """What the README's commands make, up to the report."""
    (block,) = [block for block in blocks("README.md") if "cloister report" in block.text]
    made, _, _ = "\n".join(commands(block.text)).partition("\ncloister predict")
    subprocess.run(["bash", "-ec", made], cwd=folder, check=True)
    browser.open(f"file://{folder}/groups.html")
    yield


@contextmanager
def phones(folder: Path, browser: Browser) -> Iterator[None]:
    """The demonstration, after a person and everybody else have reported."""
    with subprocess.Popen(["cloister", "demo", "--phones"], stdout=subprocess.PIPE, text=True) as demo:
        try:
            assert demo.stdout is not None
            (address,) = re.findall(r"http://\S+/", demo.stdout.readline())
            browser.open(address)
            for button in ("#send", "#start"):
                browser.wait(f"!document.querySelector('{button}').disabled")
                browser.click(button)
            browser.wait("document.querySelector('#progress').position > 0.99 && document.querySelector('#read .lit')")
            browser.wait("document.querySelectorAll('#map .found').length === 4")
            yield
        finally:
            demo.send_signal(signal.SIGINT)


def main() -> None:
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        os.environ |= {"PATH": f"{programs(folder)}{os.pathsep}{os.environ['PATH']}", "PYTHONUNBUFFERED": "1"}
        for draw in (report, phones):
            with Browser(folder / draw.__name__) as browser:
                browser.look(WIDTH)
                with draw(folder, browser):
                    file = ROOT / "docs" / f"readme_{draw.__name__}.png"
                    browser.screenshot(file)
                with Image.open(file) as shot:
                    shown = shot.convert("RGB").crop((0, 0, WIDTH, HEIGHT))
                shown.quantize(COLOURS).save(file, optimize=True)
                print(f"{file}: {file.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
