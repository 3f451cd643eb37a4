"""Entrants of a benchmark: folders with a program, and methods of cloister by name."""

from __future__ import annotations

import hashlib
import os
import sys
from pathlib import Path
from typing import final

import attrs

from cloister._version import __version__
from cloister.core.errors import InvalidInput, UnknownName, cause
from cloister.core.registry.registry import registry
from cloister.core.trust import TRUSTS
from cloister.lab.bench.entry import FILE, EntrantFacts, read_facts
from cloister.lab.comparing.contenders import Contender

RUN, INSTALL = "run", "install.sh"

METHOD_RUN = Path(__file__).with_name("method_run.py")
"""Program that runs a method of cloister as an entrant."""

LARGEST = 2**25
"""Maximum bytes of an entrant's files."""


@final
@attrs.frozen(eq=False)
class Entrant:
    """Entrant of a benchmark.

    Args:
        name: unique in a benchmark.
        facts: its own statement.
        digest: SHA-256 of its files, or of its name and cloister's version.
        folder: its files; None for a method of cloister.
        argument: that names it.
    """

    name: str
    facts: EntrantFacts
    digest: str
    folder: Path | None = None
    argument: str = ""

    @property
    def command(self) -> list[str]:
        """Command that runs it, without a shell."""
        return [sys.executable, "-P", str(METHOD_RUN), self.name] if self.folder is None else [str(self.folder / RUN)]


def shipped_folder() -> Path:
    """Return the folder of the entrants that come with cloister: beside this file, else in the repository."""
    installed = Path(__file__).with_name("shipped")
    return installed if installed.is_dir() else Path(__file__).parents[4] / "entrants"


def shipped_names() -> list[str]:
    """Return the names of the entrants that come with cloister, in order."""
    return sorted(path.parent.name for path in shipped_folder().glob(f"*/{FILE}"))


def entrant_of(text: str, base: Path | None = None) -> Entrant:
    """Return the entrant of an argument: a folder, an entrant that comes with cloister, or a method with its options.

    Args:
        text: such as ``./mine``, ``sklearn``, ``auto`` or ``auto:trust=local``.
        base: folder that relative paths begin in; None: the working directory.

    Raises:
        InvalidInput: the folder is no entrant.
        UnknownName: there is no such entrant or method.
    """
    path = Path(text) if base is None else base / text
    if os.sep in text or text in (".", "..") or (path / FILE).is_file():
        return of_folder(path, text)
    if text in shipped_names():
        return of_folder(shipped_folder() / text, text)
    try:
        return of_method(Contender.of(text))
    except UnknownName as error:
        if error.kind != "Method":
            raise
        methods = [spec.name for spec in registry().specs() if spec.role == "Method"]
        raise UnknownName("entrant", text, [*shipped_names(), *methods], "; or give a folder, as ./mine") from None


def of_folder(folder: Path, argument: str) -> Entrant:
    """Return the entrant in a folder.

    Args:
        folder: of its files.
        argument: that named it, for commands that repeat a check.

    Raises: InvalidInput: it lacks ``entry.toml`` or ``run``.
    """
    folder = folder.resolve()
    facts = read_facts(folder)
    program = folder / RUN
    if not program.is_file():
        raise InvalidInput(f"{folder} has no {RUN}: write a program of that name, in any language, that begins with #!")
    if not os.access(program, os.X_OK):
        raise InvalidInput(f"{program} is not executable: chmod +x {program}")
    return Entrant(facts.name, facts, _digest(folder), folder, argument)


def of_method(contender: Contender) -> Entrant:
    """Return a method of cloister as an entrant."""
    spec = registry().spec("Method", contender.method)
    trust = contender.trust or spec.trust or "Central"
    replaced = TRUSTS[trust].relation.startswith("replace")
    facts = EntrantFacts(
        name=contender.label,
        title=f"cloister {__version__}: {spec.summary}",
        paper=spec.paper,
        guarantee="approximate" if spec.private else "none",
        trust=trust.lower() if spec.private else "none",
        relation=("replace" if replaced else "add-or-remove") if spec.private else "none",
        noise="exact" if spec.private else "none",
        repeats=True,
    )
    content = f"{contender.label} {__version__}".encode()
    return Entrant(contender.label, facts, hashlib.sha256(content).hexdigest(), argument=contender.label)


def _digest(folder: Path) -> str:
    """Return the SHA-256 of a folder's files: paths, permissions and contents."""
    hashed, size = hashlib.sha256(), 0
    try:
        for path in sorted(folder.rglob("*")):
            if not path.is_file() or "__pycache__" in path.parts:
                continue
            size += path.stat().st_size
            if size > LARGEST:
                raise InvalidInput(f"{folder} holds more than {LARGEST:,} bytes: let {INSTALL} make what is large")
            content, mode = path.read_bytes(), int(os.access(path, os.X_OK))
            hashed.update(repr((path.relative_to(folder).as_posix(), mode, len(content))).encode() + content)
    except OSError as error:
        raise InvalidInput(f"cannot read {folder}: {cause(error)}") from error
    return hashed.hexdigest()
