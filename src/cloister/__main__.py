"""Program ``cloister``, which is light: Ctrl-C before the libraries are loaded, or after the end, shows no traceback.

Other signals that ask a program to end are handled alike (SIGTERM of containers and schedulers, SIGHUP of a closed
terminal, SIGQUIT of its keyboard): one line says what was written, and temporary files of rows are removed. The exit
code is that of shells, 128 and the signal's number.
"""

from __future__ import annotations

import atexit
import os
import signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

INTERRUPTED = 130
"""Exit code of the command line after any of these signals."""

SIGNALS = "SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"
"""Signals that ask a program to end; not every system has all of them."""


def main() -> None:
    """Run the command line, and end the process with its exit code."""
    signals = [getattr(signal, name) for name in SIGNALS if hasattr(signal, name)]
    defaults = signal.default_int_handler, signal.SIG_DFL
    # those that somebody else handles are left alone: Ctrl-C in a shell's background, SIGHUP under nohup
    handled = [number for number in signals if signal.getsignal(number) in defaults]
    last = int(signal.SIGINT)

    def interrupt(number: int, frame: Any) -> NoReturn:
        nonlocal last
        last = number
        raise KeyboardInterrupt

    def handle(handler: Any) -> None:
        for number in handled:
            signal.signal(number, handler)

    handle(_stop)
    from cloister.cli import main as run

    try:
        handle(interrupt)
        run()
    except KeyboardInterrupt:
        _stop(last)
    except SystemExit as end:
        handle(lambda number, frame: os._exit(128 + number))
        if end.code == INTERRUPTED:  # Python itself ends by the signal if a library's import was interrupted
            atexit._run_exitfuncs()
            os._exit(128 + last)
        raise


def _stop(number: int, frame: Any = None) -> NoReturn:
    """End at once, since nothing has begun."""
    try:
        os.write(2, b"cloister: interrupted\n")
    finally:
        os._exit(128 + number)


if __name__ == "__main__":
    main()
