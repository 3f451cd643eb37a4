"""Progress bars of a run, on a terminal or in a notebook."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sized
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cloister.run.request import PreparedRun

MIN_INTERVAL = 0.1
"""Minimum seconds between two updates in a notebook."""


@contextmanager
def progress(visible: bool | None = None, after: float = 0.0) -> Iterator[Bar]:
    """Show a progress bar over all rows of all rounds, as long as the context lasts.

    Args:
        visible: None shows the bar on a terminal or in a notebook only.
        after: seconds before the bar appears.

    Yields:
        The bar. Its length is the number of rounds times the public number of rows.
    """
    notebook = _in_notebook()
    if not (notebook or on_terminal() if visible is None else visible):
        yield Bar()
        return
    bar: Bar = _NotebookBar(after) if notebook else _TerminalBar(after)
    try:
        yield bar
    finally:
        bar.close()


def on_terminal() -> bool:
    """Return True if stderr is a terminal."""
    return sys.stderr is not None and sys.stderr.isatty()


def _in_notebook() -> bool:
    """Return True in a notebook. Imports nothing unless IPython is loaded."""
    if "IPython" not in sys.modules:
        return False
    from rich.console import Console

    return Console().is_jupyter


class Bar:
    """Progress of a run, not shown. Args: after (seconds before the first update)."""

    def __init__(self, after: float = 0.0) -> None:
        self._next_update = time.monotonic() + after
        self._done, self._total = 0, 0
        self._rounds = 0
        self._opened: Sized = ()

    def advance(self, rows: int) -> None:
        """Count rows as done."""
        self._done += rows
        self._refresh()

    def started(self, plan: PreparedRun, rounds: int, opened: Sized) -> None:
        """Set the bar's length: rounds times the public number of rows (unknown until counted)."""
        self._rounds, self._opened = rounds, opened
        self._total = 0 if plan.rows is None else rounds * plan.rows
        self._refresh()

    @property
    def label(self) -> str:
        """Label of the bar, such as 'round 3 of 8'."""
        if not self._opened:
            return "reading" if not self._rounds else "1 round" if self._rounds == 1 else f"{self._rounds} rounds"
        return f"round {len(self._opened)} of {self._rounds}"

    def _refresh(self) -> None:
        if time.monotonic() >= self._next_update:
            self._draw()

    def _draw(self) -> None:
        pass

    def close(self) -> None:
        """Remove the bar."""


class _TerminalBar(Bar):
    """Bar on stderr."""

    _bar: Any = None

    def _draw(self) -> None:
        if self._bar is None:
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

            columns = TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn()
            self._bar = Progress(*columns, console=Console(stderr=True), transient=on_terminal())
            self._task = self._bar.add_task(self.label, total=None)
            self._bar.start()
        self._bar.update(self._task, description=self.label, completed=self._done, total=self._total or None)

    def close(self) -> None:
        if self._bar is not None:
            # a bar in a log file ends full: where it stopped would reveal the true number of rows
            self._bar.update(self._task, completed=1, total=1)
            self._bar.stop()


class _NotebookBar(Bar):
    """The browser's own progress bar, which needs no widgets.

    It shows no number of rows: a notebook saved during the run, or whose kernel dies, would keep it.
    """

    _shown: Any = None

    def _draw(self) -> None:
        self._next_update = time.monotonic() + MIN_INTERVAL
        share = min(100 * self._done // self._total, 100) if self._total else None
        far, percent = ("", "...") if share is None else (f'value="{share}" max="100"', f"{share}%")
        self._show(f"{self.label}: {percent}", f"<progress {far}></progress> {self.label}")

    def _show(self, text: str, html: str) -> None:
        bundle = {"text/plain": text, "text/html": html}
        if self._shown is None:
            from IPython.display import display

            show: Any = display  # untyped
            self._shown = show(bundle, raw=True, display_id=True)
        else:
            self._shown.update(bundle, raw=True)

    def close(self) -> None:
        if self._shown is not None:
            self._show("", "")
