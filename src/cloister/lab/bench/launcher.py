"""Program that starts another one, waits for it, and writes down its time and its peak memory.

Arguments: file for the report, limit of file sizes in bytes, then the command. It imports nothing of cloister and is
run by its path: a child's peak memory is at least that of the process which starts it, so that one must be small.
"""

import json
import os
import resource
import sys
import time


def main() -> None:
    """Run the command, and write the report as JSON."""
    report, limit, *command = sys.argv[1:]
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(limit), int(limit)))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    started = time.perf_counter()
    try:
        child = os.posix_spawn(command[0], command, os.environ)
    except OSError as error:
        _write(report, {"not_started": error.strerror})
        return
    _, status, usage = os.wait4(child, 0)
    seconds = time.perf_counter() - started
    kibibytes = usage.ru_maxrss / 1024 if sys.platform == "darwin" else usage.ru_maxrss
    _write(report, {"code": os.waitstatus_to_exitcode(status), "seconds": seconds, "peak_mb": kibibytes / 1024})


def _write(report: str, content: dict[str, object]) -> None:
    with open(report, "w", encoding="utf-8") as file:
        json.dump(content, file)


if __name__ == "__main__":
    main()
