"""Errors: the command line prints one line (what was given, is expected, is to do) and exits with 2."""

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
    """Return the reason of a file error; if access is denied, also the owner, the current user, and what to do."""
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
    """Return an account's name, or its number if it has none."""
    import pwd  # for this error alone

    try:
        return pwd.getpwuid(user).pw_name
    except KeyError:
        return f"user {user}"


class CloisterError(Exception):
    """Base class of errors that a user can cause or should see."""


class InvalidInput(CloisterError):
    """Argument, option, file or row that cannot be used."""


@contextmanager
def plugin_errors(failure: str) -> Iterator[None]:
    """Turn errors of a plugin's code, run before any row is read, into errors of cloister.

    Args:
        failure: the operation that fails, for the message.

    Raises:
        InvalidInput: the plugin raised an error that is not cloister's.
    """
    try:
        yield
    except (CloisterError, MemoryError):
        raise
    except (Exception, SystemExit) as error:  # third-party code: whatever it raises
        raise InvalidInput(f"{failure}: {type(error).__name__}: {error}") from error


ALIKE, BEHIND = 0.6, 0.15
"""Least ``difflib`` ratio of a near name, and how far its ratio may be below the best one."""


def nearest(name: str, choices: Iterable[str]) -> list[str]:
    """Return at most three near names, the nearest first."""
    matches = difflib.get_close_matches(name, list(choices), n=3, cutoff=ALIKE)
    likeness = [difflib.SequenceMatcher(None, match, name).ratio() for match in matches]
    return [match for match, ratio in zip(matches, likeness, strict=True) if ratio >= likeness[0] - BEHIND]


class UnknownName(InvalidInput):
    """Component, slot, option or column that does not exist.

    Attributes:
        kind: the kind of thing looked for.
        name: the given name.
        near: the nearest existing names, whatever their case.
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
    """Components that do not fit: the message names the slot, its need, the component given, and those installed."""


class MissingExtra(CloisterError):
    """Missing library that an optional feature needs."""

    def __init__(self, library: str, extra: str, purpose: str) -> None:
        self.library, self.extra = library, extra
        super().__init__(f"{purpose} needs {library}: {command(library, extra)}")


class BudgetExceeded(CloisterError):
    """Request for more budget than is left; no row was read.

    Args:
        requested, remaining: amounts, as text in the budget's own measure; kept as attributes.
        account: the account that lacks budget.
        advice: how the run could be admitted.
    """

    def __init__(self, requested: str, remaining: str, account: str = "the budget", advice: str = "") -> None:
        self.requested, self.remaining = requested, remaining
        super().__init__(
            f"{account} has {remaining} left, {requested} was asked: nothing was read or spent"
            f"{f'. {advice}' if advice else ''}"
        )


class PrivacyWarning(UserWarning):
    """Warning of a setting that protects people less than they may think."""


class UtilityWarning(UserWarning):
    """Warning of a run whose result is, or will be, hardly better than noise."""


class WorkerWarning(UserWarning):
    """Warning of a worker that ended before its work was done; nothing is lost, and nothing counts twice."""


class Refused(CloisterError):
    """Round, record or plan that does not belong to this run; nothing was answered."""


class Unavailable(CloisterError):
    """Port, folder or file system that cannot be used now, and may be usable later by the same command."""


TRANSIENT = {
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
"""Error numbers of transient causes: busy resource, no address of this machine yet, full or failing disk."""


@contextmanager
def transient_errors(*error_numbers: int) -> Iterator[None]:
    """Turn errors of cloister with transient causes into ``Unavailable``, with the same message.

    Args:
        error_numbers: further error numbers that are transient here.
    """
    try:
        yield
    except CloisterError as error:
        import socket  # for this error alone

        reason = error.__cause__
        if isinstance(reason, socket.gaierror) or (
            isinstance(reason, OSError) and reason.errno in TRANSIENT.union(error_numbers)
        ):
            raise Unavailable(str(error)) from reason
        raise


class Damaged(CloisterError):
    """Ledger, result or plan file that cannot be trusted."""


SOURCE = Path(__file__).parents[3]
"""Clone that this file is in, unless it was copied out of one."""


def command(library: str, extra: str) -> str:
    """Return the pip command that installs a library of an extra.

    It installs the extra from where this cloister came: a package index, a repository, or a path on this machine. If
    that path is gone, it installs the library alone.
    """
    target = _pip_target()
    if target is None:
        return f"pip install {library}"
    return f"pip install '{target.format(extra=f'[{extra}]')}'"


def _pip_target() -> str | None:
    """Return pip's argument, with a place for the extra; None if its path is gone."""
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
