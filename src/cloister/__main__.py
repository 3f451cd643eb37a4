"""The program ``cloister``. It is light, so that Ctrl-C is met before the libraries are loaded and after the last word:
there is never a traceback, and no second line. The other signals that ask a program to end are met alike (SIGTERM of
containers and schedulers, SIGHUP of a terminal that is closed, SIGQUIT of its keyboard): what was written is told, and
files that hold rows for a while are removed. The exit code is that of shells, 128 and the signal's number."""

from __future__ import annotations

import atexit
import os
import signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

INTERRUPTED = 130
"""Exit code of a command line that a signal ended, whichever it was."""

SIGNALS = "SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"
"""Signals that ask a program to end; not every system has all of them."""


def main() -> None:
    """Run the command line, and end the process with its exit code."""
    known = [getattr(signal, name) for name in SIGNALS if hasattr(signal, name)]
    usual = signal.default_int_handler, signal.SIG_DFL
    heard = [one for one in known if signal.getsignal(one) in usual]  # not Ctrl-C in a shell's background, or nohup's
    last = int(signal.SIGINT)

    def interrupt(number: int, frame: Any) -> NoReturn:
        nonlocal last
        last = number
        raise KeyboardInterrupt

    def meet(how: Any) -> None:
        for one in heard:
            signal.signal(one, how)

    meet(_stop)
    from cloister.cli import main as run

    try:
        meet(interrupt)
        run()
    except KeyboardInterrupt:
        _stop(last)
    except SystemExit as end:
        meet(lambda number, frame: os._exit(128 + number))
        if end.code == INTERRUPTED:  # Python itself ends by the signal if a library's import was interrupted
            atexit._run_exitfuncs()
            os._exit(128 + last)
        raise


def _stop(number: int, frame: Any = None) -> NoReturn:
    """End at once: nothing was begun."""
    try:
        os.write(2, b"cloister: interrupted\n")
    finally:
        os._exit(128 + number)


if __name__ == "__main__":
    main()
