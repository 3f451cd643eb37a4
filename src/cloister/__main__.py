"""The program ``cloister``. It is light, so that Ctrl-C is met before the libraries are loaded and after the last word:
there is never a traceback, and no second line."""

from __future__ import annotations

import atexit
import os
import signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

INTERRUPTED = 130


def main() -> None:
    """Run the command line, and end the process with its exit code."""
    heard = signal.getsignal(signal.SIGINT) is signal.default_int_handler  # not in a shell's background
    if heard:
        signal.signal(signal.SIGINT, _stop)
    from cloister.cli import main as run

    try:
        if heard:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        run()
    except KeyboardInterrupt:
        _stop()
    except SystemExit as end:
        if heard:
            signal.signal(signal.SIGINT, lambda *_: os._exit(INTERRUPTED))
        if end.code == INTERRUPTED:  # Python itself ends by the signal if a library's import was interrupted
            atexit._run_exitfuncs()
            os._exit(INTERRUPTED)
        raise


def _stop(*_: Any) -> NoReturn:
    """End at once: nothing was begun."""
    try:
        os.write(2, b"cloister: interrupted\n")
    finally:
        os._exit(INTERRUPTED)


if __name__ == "__main__":
    main()
