"""Progress of long work: bars and counts on a terminal, a line per minute elsewhere, events in a log.

Progress never shows how many rows are done, which would reveal their number: commands that read rows show the bar of
``showing.progress``, which has no numbers. Counts are for reports, messages and tickets.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, TypeAlias, final

import typer

from cloister.commands.cli_option import OUTPUT
from cloister.commands.common import plain, say
from cloister.core.errors import InvalidInput, cause
from cloister.showing.progress import on_terminal

Log = Annotated[
    Path | None,
    typer.Option(help="File that gets each event as a line of JSON, without private values.", rich_help_panel=OUTPUT),
]

MINUTE = 60.0
"""Seconds between two lines where there is no terminal."""

GLANCE = 1.0
"""Seconds between two checks of the progress."""

Event: TypeAlias = dict[str, Any]


@contextmanager
def bar(noun: str) -> Iterator[Callable[[int, int], None]]:
    """Show a bar with the time that is left on a terminal, and nothing elsewhere.

    Yields a function that is called with the numbers done and in total.
    """
    with titled_bar() as show:
        yield lambda done, total: show(done, total, noun)


@contextmanager
def titled_bar() -> Iterator[Callable[[int, int, str], None]]:
    """Show a bar as ``bar`` does, for steps of different kinds.

    Yields a function that is called with the numbers done and in total, and what is done now.
    """
    if not on_terminal():
        yield lambda done, total, title: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn

    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    with _display(*columns) as shown:
        task = shown.add_task("", total=None)
        yield lambda done, total, title: shown.update(task, completed=done, total=total, description=plain(title))


@final
class Count:
    """Running count, which is called with an increment. Args: noun (in plural), draw (called likewise)."""

    def __init__(self, noun: str, draw: Callable[[int], None] = lambda n: None) -> None:
        self._noun, self._draw, self._done = noun, draw, 0

    def __call__(self, increment: int) -> None:
        self._done += increment
        self._draw(increment)

    @property
    def words(self) -> str:
        return f"{self._done:,} {self._noun}"


@contextmanager
def counting(noun: str) -> Iterator[Count]:
    """Show a running count, such as "reports read", on a terminal, and nothing elsewhere."""
    if not on_terminal():
        yield Count(noun)
        return
    from rich.progress import MofNCompleteColumn, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = SpinnerColumn(), TextColumn("{task.description}"), MofNCompleteColumn(), TimeElapsedColumn()
    with _display(*columns) as shown:
        task = shown.add_task(noun, total=None)
        yield Count(noun, lambda increment: shown.advance(task, increment))


def _display(*columns: Any) -> Any:
    from rich.console import Console
    from rich.progress import Progress

    return Progress(*columns, console=Console(stderr=True), transient=True)


@contextmanager
def event_log(path: Path | None) -> Iterator[Callable[[Event], None]]:
    """Yield a function that appends an event to a file, as a line of JSON; without a path it does nothing.

    If the log can no longer be written (a full disk), one line says so and the run goes on.

    Raises:
        InvalidInput: the file cannot be opened for writing.
    """
    if path is None:
        yield lambda entry: None
        return
    try:
        file = path.open("ab", buffering=0)
    except OSError as error:
        raise InvalidInput(f"cannot write {path}: {cause(error)}") from error
    lost = False
    with file:

        def write(entry: Event) -> None:
            nonlocal lost
            try:
                file.write(json.dumps({"time": round(time.time(), 3), **entry}).encode() + b"\n")
            except OSError as error:
                if not lost:
                    say(f"cannot write {path}: {cause(error)}. The log ends here; the run goes on")
                lost = True

        yield write


@contextmanager
def signs_of_life(words: Callable[[], str], write: Callable[[Event], None], steps: bool = True) -> Iterator[None]:
    """Report progress while the block runs: once a minute in the log, and on stderr where that is no terminal.

    The number of rows done is never reported, which would reveal their number; that of reports may be, since the server
    holds and counts them openly.

    Args:
        words: returns the progress, as in "round 3 of 8"; called in another thread.
        write: appends to the log (``event_log``).
        steps: also log new progress at once, and the end of the block; otherwise the caller does.
    """
    life, over = _Life(words, write, steps), threading.Event()

    def watch() -> None:
        while not over.wait(GLANCE):
            life.glance()

    thread = threading.Thread(target=watch, name="signs of life", daemon=True)
    thread.start()
    ended = "ended"
    try:
        yield
        ended = "finished"
    finally:
        over.set()
        thread.join()
        life.glance()
        if steps:
            write({"event": ended})


@final
class _Life:
    """Progress that was reported last, and when. Args: as of ``signs_of_life``."""

    def __init__(self, words: Callable[[], str], write: Callable[[Event], None], steps: bool) -> None:
        self._words, self._write, self._steps = words, write, steps
        self._started = self._reported = time.monotonic()
        self._last = ""

    def glance(self) -> None:
        """Report the progress if it is due."""
        now, words = time.monotonic(), self._words()
        due = now - self._reported >= MINUTE
        if due or (self._steps and words != self._last):
            self._write({"event": "progress", "what": words, "seconds": round(now - self._started)})
        self._last = words
        if due:
            self._reported = now
            if not on_terminal():
                say(f"{words}, after {(now - self._started) / 60:.0f} min")
