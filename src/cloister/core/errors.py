"""Errors: what was given, what was expected, what to do next. The command line prints one line and exits with 2."""

from __future__ import annotations

import difflib
import errno
import os
import shlex
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


def cause(error: OSError) -> str:
    """Words for an error of a file. Where access is denied: also whose it is, who runs this, and what to do."""
    reason = error.strerror or str(error) or type(error).__name__
    if os.name != "posix" or not isinstance(error, PermissionError) or not isinstance(error.filename, str | Path):
        return reason
    path = Path(error.filename).absolute()
    shut = (folder for folder in reversed(path.parents) if not os.access(folder, os.X_OK, effective_ids=True))
    there = next(shut, path if os.path.lexists(path) else path.parent)
    try:
        facts = there.lstat()
    except OSError:  # it is gone meanwhile
        return reason
    owner, me = _name(facts.st_uid), _name(os.geteuid())
    if me == owner and facts.st_mode & 0o600 == 0o600:  # it is no matter of permissions
        return reason
    if_owner = f"its owner runs this: chmod u+rwX {shlex.quote(str(there))}"
    if_other = f"this runs as {me}: run it as {owner}, have it given to {me} (chown -R), or choose another place"
    whose = f"{there} belongs to {owner}, with permissions {facts.st_mode & 0o7777:o}"
    return f"{reason}: {whose}, and {if_owner if me == owner else if_other}"


def _name(user: int) -> str:
    """An account's name, or its number where it has none."""
    import pwd  # for this error alone

    try:
        return pwd.getpwuid(user).pw_name
    except KeyError:
        return f"user {user}"


class CloisterError(Exception):
    """Base of all errors that a user can cause or should see."""


class InvalidInput(CloisterError):
    """An argument, option, file or row that cannot be used."""


@contextmanager
def theirs(failure: str) -> Iterator[None]:
    """Run a plugin's code, before any row is read. Args: what cannot be done if it fails.

    Raises: InvalidInput: it raised something else than an error of cloister.
    """
    try:
        yield
    except (CloisterError, MemoryError):
        raise
    except (Exception, SystemExit) as error:  # third-party code: whatever it raises
        raise InvalidInput(f"{failure}: {type(error).__name__}: {error}") from error


ALIKE, BEHIND = 0.6, 0.15
"""Least likeness (``difflib``) of a name that may be meant, and how far behind the likest another may be."""


def nearest(name: str, choices: Iterable[str]) -> list[str]:
    """The names, at most three, that were probably meant by this one, the likest first."""
    matches = difflib.get_close_matches(name, list(choices), n=3, cutoff=ALIKE)
    likeness = [difflib.SequenceMatcher(None, match, name).ratio() for match in matches]
    return [match for match, ratio in zip(matches, likeness, strict=True) if ratio >= likeness[0] - BEHIND]


class UnknownName(InvalidInput):
    """A component, slot, option or column that does not exist.

    Attributes: kind (what was looked for), name (what was given), near (the closest existing names, of capital or
    small letters).
    """

    def __init__(self, kind: str, name: str, existing: Iterable[str], hint: str = "") -> None:
        choices, alike = sorted(existing), dict[str, list[str]]()
        for choice in choices:
            alike.setdefault(choice.casefold().lstrip("-"), []).append(choice)
        self.kind, self.name = kind, name
        self.near = [choice for text in nearest(name.casefold().lstrip("-"), alike) for choice in alike[text]][:3]
        offer = (
            f"did you mean {' or '.join(self.near)}?" if self.near else f"choose from: {', '.join(choices) or 'none'}"
        )
        super().__init__(f"no {kind} '{name}': {offer}{' ' + hint if hint else ''}")


class WrongComposition(InvalidInput):
    """Components that do not fit: names the slot, what it needs, what it was given, what is installed."""


class MissingExtra(CloisterError):
    """A library that an optional feature needs is not installed."""

    def __init__(self, library: str, extra: str, purpose: str) -> None:
        self.library, self.extra = library, extra
        super().__init__(f"{purpose} needs {library}: {command(library, extra)}")


class BudgetExceeded(CloisterError):
    """More privacy was asked for than is left. No row was read.

    Attributes: asked, left (both as text in the budget's own measure). Args: how (the run could be admitted).
    """

    def __init__(self, requested: str, remaining: str, account: str = "the budget", how: str = "") -> None:
        self.asked, self.left = requested, remaining
        super().__init__(
            f"{account} has {remaining} left, {requested} was asked: nothing was read or spent{f'. {how}' if how else ''}"
        )


class PrivacyWarning(UserWarning):
    """A setting that protects people less than they may think."""


class UtilityWarning(UserWarning):
    """A run whose result tells hardly anything, or will."""


class WorkerWarning(UserWarning):
    """A worker ended before its work was done. Nothing is lost, and nothing counts twice."""


class Refused(CloisterError):
    """A round, record or plan that does not belong to this run. Nothing was answered."""


class Unavailable(CloisterError):
    """A port, folder or file system that cannot be used now, and may be usable later without another command."""


PASSING = {
    errno.EAGAIN,
    errno.EBUSY,
    errno.EADDRINUSE,
    errno.EADDRNOTAVAIL,
    errno.ENOSPC,
    errno.EDQUOT,
    errno.EIO,
    errno.ESTALE,
    errno.ENOTCONN,
    errno.ETIMEDOUT,
}
"""Error numbers of what may pass: held by another process, no address of this machine yet, a full or failing disk."""


@contextmanager
def passing(*error_numbers: int) -> Iterator[None]:
    """Tell what may pass from what does not, where files or ports are taken. Args: error_numbers (error numbers that may pass
    here). Raises: Unavailable: with the words of an error of ours whose cause may pass by itself."""
    try:
        yield
    except CloisterError as error:
        import socket  # for this error alone

        reason = error.__cause__
        if isinstance(reason, socket.gaierror) or (
            isinstance(reason, OSError) and reason.errno in PASSING.union(error_numbers)
        ):
            raise Unavailable(str(error)) from reason
        raise


class Damaged(CloisterError):
    """A ledger, result or plan file that cannot be trusted."""


SOURCE = Path(__file__).parents[3]
"""The clone that this file is in, unless it was copied out of one."""


def command(library: str, extra: str) -> str:
    """Command by which whoever runs this cloister gets a library that belongs to an extra.

    A name that a package index knows is named only if cloister came from one. From a clone or an archive on this
    machine it is that path; where that is gone, the library alone.
    """
    target = _where()
    if target is None:
        return f"pip install {library}"
    return f"pip install '{target.format(extra=f'[{extra}]')}'"


def _where() -> str | None:
    """Pip's argument, with a place for the extra; None if it is no longer there."""
    import json  # all four for this error alone
    from importlib.metadata import PackageNotFoundError, distribution
    from urllib.parse import urlparse
    from urllib.request import url2pathname

    try:
        origin_text = distribution("cloister").read_text("direct_url.json")
    except PackageNotFoundError:
        return _path(SOURCE) if (SOURCE / "pyproject.toml").is_file() else None
    if origin_text is None:
        return "cloister{extra}"
    origin: dict[str, Any] = json.loads(origin_text)
    url = str(origin["url"])
    if url.startswith("file:"):
        path = Path(url2pathname(urlparse(url).path))
        return _path(path) if path.exists() else None
    kind = f"{origin['vcs_info']['vcs']}+" if "vcs_info" in origin else ""
    return f"cloister{{extra}} @ {kind}{url}"


def _path(path: Path) -> str:
    here = path.is_dir() and path.samefile(os.curdir)
    return ("." if here else str(path).replace("{", "{{").replace("}", "}}")) + "{extra}"
