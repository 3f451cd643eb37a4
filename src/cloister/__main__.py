"""The program ``cloister``. It is light, so that Ctrl-C is met before the libraries are loaded and after the last word:
there is never a traceback, and no second line. SIGTERM, by which containers and schedulers end a program, is met alike:
what was written is told, and files that hold rows for a while are removed."""

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
    usual = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}
    heard = [one for one, how in usual.items() if signal.getsignal(one) is how]  # not Ctrl-C in a shell's background

    def meet(how: Any) -> None:
        for one in heard:
            signal.signal(one, how)

    meet(_stop)
    from cloister.cli import main as run

    try:
        meet(signal.default_int_handler)
        run()
    except KeyboardInterrupt:
        _stop()
    except SystemExit as end:
        meet(lambda *_: os._exit(INTERRUPTED))
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
