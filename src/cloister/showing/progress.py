"""How far a run has come, on a terminal or in a notebook: for the command line and for Python."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sized
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cloister.run.request import PreparedRun

OFTEN = 0.1
"""Least seconds between two drawings in a notebook."""


@contextmanager
def progress(wanted: bool | None = None, after: float = 0.0) -> Iterator[Bar]:
    """A bar that passes over rows move, in every round. It vanishes at the end; in a file it is full then, since where
    it stopped would tell the true number of rows to whoever is shown the file.

    Args: wanted (None: on a terminal or in a notebook, and nowhere else), after (seconds before it is shown: short work
        shows nothing).

    Yields: the bar, which is told of rows that are done, and of the plan and its rounds. Its length is rounds times the
        public number of rows, and its words are the round that is open.
    """
    notebook = _in_notebook()
    if not (notebook or on_terminal() if wanted is None else wanted):
        yield Bar()
        return
    bar: Bar = _NotebookBar(after) if notebook else _TerminalBar(after)
    try:
        yield bar
    finally:
        bar.close()


def on_terminal() -> bool:
    """Whether somebody watches stderr."""
    return sys.stderr is not None and sys.stderr.isatty()


def _in_notebook() -> bool:
    """Whether a notebook shows what this process displays; without IPython nothing is imported to find out."""
    if "IPython" not in sys.modules:
        return False
    from rich.console import Console

    return Console().is_jupyter


class Bar:
    """Progress of a run. This one is not shown. Args: after (seconds before the first drawing)."""

    def __init__(self, after: float = 0.0) -> None:
        self._from = time.monotonic() + after
        self._done, self._total = 0, 0
        self._rounds = 0
        self._opened: Sized = ()

    def advance(self, rows: int) -> None:
        self._done += rows
        self._drawn()

    def started(self, plan: PreparedRun, rounds: int, opened: Sized) -> None:
        """The bar's length: rounds times the public number of rows, once that is known."""
        self._rounds, self._opened = rounds, opened
        self._total = 0 if plan.rows is None else rounds * plan.rows
        self._drawn()

    @property
    def words(self) -> str:
        """Which round is open, as in 'round 3 of 8'."""
        if not self._opened:
            return "reading" if not self._rounds else "1 round" if self._rounds == 1 else f"{self._rounds} rounds"
        return f"round {len(self._opened)} of {self._rounds}"

    def _drawn(self) -> None:
        if time.monotonic() >= self._from:
            self._draw()

    def _draw(self) -> None:
        pass

    def close(self) -> None:
        """End the drawing."""


class _TerminalBar(Bar):
    """On stderr."""

    _bar: Any = None

    def _draw(self) -> None:
        if self._bar is None:
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

            columns = TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn()
            self._bar = Progress(*columns, console=Console(stderr=True), transient=on_terminal())
            self._task = self._bar.add_task(self.words, total=None)
            self._bar.start()
        self._bar.update(self._task, description=self.words, completed=self._done, total=self._total or None)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.update(self._task, completed=1, total=1)
            self._bar.stop()


class _NotebookBar(Bar):
    """The browser's own progress bar: needs no widgets. It shows no number of rows, since a notebook that is saved
    while a run lasts, or whose kernel dies, keeps it."""

    _shown: Any = None

    def _draw(self) -> None:
        self._from = time.monotonic() + OFTEN
        share = min(100 * self._done // self._total, 100) if self._total else None
        far, said = ("", "...") if share is None else (f'value="{share}" max="100"', f"{share}%")
        self._show(f"{self.words}: {said}", f"<progress {far}></progress> {self.words}")

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
