"""Installation of an entrant: ``install.sh`` makes its environment in a cache folder, once per version of its files."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from cloister.core.errors import CloisterError, InvalidInput, cause
from cloister.lab.bench.entrants import INSTALL, Entrant
from cloister.lab.bench.environment import install_environment

LONGEST = 1800.0
"""Seconds after which an installation fails."""

DONE = "installed"
"""File that a finished installation leaves."""

TAIL = 600
"""Characters of the log that a failure quotes."""


class NotInstallable(CloisterError):
    """Entrant that cannot be installed on this machine; the reason is the message."""


def cache_folder() -> Path:
    """Return the folder of the environments of all entrants."""
    home = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(home) / "cloister" / "entrants"


def install(entrant: Entrant) -> Path:
    """Install an entrant unless it is installed, and return the folder of its environment.

    Raises:
        NotInstallable: a program that it needs is missing, or ``install.sh`` failed.
        InvalidInput: the cache folder cannot be written.
    """
    for program in entrant.facts.needs:
        if shutil.which(program) is None:
            raise NotInstallable(f"it needs {program}, which is not on the PATH")
    folder = cache_folder() / f"{entrant.facts.name.partition(':')[0]}-{entrant.digest[:16]}"
    if entrant.folder is None or not (entrant.folder / INSTALL).is_file():
        return folder
    with _locked(folder):
        if not (folder / DONE).exists():
            _run(entrant, entrant.folder, folder)
    return folder


def _run(entrant: Entrant, source: Path, folder: Path) -> None:
    """Run ``install.sh`` in an empty folder."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    log = folder / "install.log"
    variables = {"BENCH_ENV": str(folder), "BENCH_ENTRANT": str(source)}
    with log.open("wb") as output:
        process = subprocess.Popen(
            ["/bin/sh", str(source / INSTALL)],
            cwd=folder,
            env=install_environment(variables),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            code = process.wait(LONGEST)
        except subprocess.TimeoutExpired:
            code = None
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    if code != 0:
        end = f"took more than {LONGEST:g} s" if code is None else f"ended with {code}"
        said = " ".join(log.read_bytes()[-TAIL:].decode("utf-8", "replace").split())
        raise NotInstallable(f"its {INSTALL} {end}: {said or 'it printed nothing'}")
    (folder / DONE).write_text(f"{entrant.digest}\n", "utf-8")


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Let one process at a time install an entrant."""
    import fcntl

    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        lock = folder.with_suffix(".lock").open("ab")
    except OSError as error:
        raise InvalidInput(
            f"cannot write {folder.parent}: {cause(error)}: set XDG_CACHE_HOME to a folder that can be written"
        ) from error
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
