"""A published plan: everything that a person needs to answer a round, and a server to make sense of the answers. All public.

A folder with ``plan.json`` and the same in words. Components stand in it by name, never as code: whoever reads it composes the
method from what she has installed, works the round out herself and compares digests, so that a person and a server who accept one
plan mean the same round. ``hash`` covers all the rest; reports carry it.

Reading is light: NumPy, attrs and the standard library, unless the plan names a stranger's component.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import secrets
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NoReturn, final

import attrs

from cloister.accounting.accountant import Accountant
from cloister.accounting.total import Total
from cloister.core.clustering import Problem
from cloister.core.domains import Ball, Box
from cloister.core.errors import CloisterError, Damaged, InvalidInput, Refused
from cloister.core.questions import Round
from cloister.core.randomness import PublicRng
from cloister.core.registry import Registry, built_in, registry
from cloister.core.session import next_round
from cloister.core.wiring import Composed, compose
from cloister.crowds import Crowd

FORMAT = 1
FILE, WORDS = "plan.json", "README.txt"
MOST = 2**26
"""Bytes of a plan file; more is no plan."""

LOUD = 8.0
"""Above this epsilon a report hides little."""

TRUSTS = ("Local", "Shuffled")
"""Trust models of rounds that people answer by themselves."""


@final
@attrs.frozen
class Outlook:
    """How well the method will do. Args: error (v of ``Predicting``), rows_needed (for v = 0.1: v falls as 1 / n)."""

    error: float
    rows_needed: int

    @property
    def excess(self) -> float:
        """What noise adds to the mean squared distance, over the squared radius: v / (1 + v), since centres are shrunk."""
        return self.error / (1 + self.error)


@final
@attrs.frozen
class Size:
    """Bytes of one report, on average over the users. Args: answers (what she says), stamps (which question it answers), user (number)."""

    answers: float
    stamps: float
    user: float = 8.0

    @property
    def total(self) -> float:
        return self.answers + self.stamps + self.user


@final
@attrs.frozen(kw_only=True, eq=False)
class PublishedPlan:
    """One round, planned.

    Args:
        method: names and options of the method and everything in its slots, as ``Composed.config`` has them.
        k: number of centres.
        rows: public number of users; their numbers are 0 <= user < rows.
        domain: where rows can be.
        columns: names of the columns, or None for any that are as many.
        total: (epsilon, delta) that a report costs its user.
        seed: of the public choices.
        digest: of the round.
        outlook: what to expect; None if the method cannot say.
        size: of a report.
        warnings: what is wrong with the plan, in words.
        version: of cloister, where it was made.
        crowd: what it rests on, if its trust is Shuffled; None: Local.
    """

    method: Mapping[str, Any]
    k: int
    rows: int
    domain: Box | Ball
    columns: tuple[str, ...] | None
    total: Total
    seed: PublicRng
    digest: str
    outlook: Outlook | None
    size: Size
    warnings: tuple[str, ...]
    version: str
    crowd: Crowd | None = None

    @property
    def trust(self) -> str:
        """Name of the trust marker."""
        return "Local" if self.crowd is None else "Shuffled"

    @property
    def hash(self) -> str:
        """SHA-256 of everything else, in hex: the plan's name."""
        return _hash(self._facts())

    @property
    def dimension(self) -> int:
        return self.domain.dimension

    @property
    def problem(self) -> Problem:
        """What is asked for, with the budget that (epsilon, delta) buys."""
        return self._problem(self.compose())

    def compose(self) -> Composed:
        """The method, from what is installed.

        Raises:
            CloisterError: something that it names is not installed, or it does not fit.
            Refused: it is not private, or not for people who answer by themselves.
        """
        wires, values = dict[str, str](), dict[str, Any]()
        for path, part in _walk(self.method, ""):
            wires.update({f"{path}{slot}": inner["name"] for slot, inner in part["slots"].items()})
            values.update({f"{path}{option}": value for option, value in part["options"].items()})
        composed = compose(
            _registry({self.method["name"], *wires.values()}), "Method", self.method["name"], wires, values
        )
        if not composed.private or composed.trust != self.trust:
            raise Refused(
                f"this plan's method is {composed.trust if composed.private else 'NOT private'}, the plan {self.trust}: no report is given to it"
            )
        return composed

    def round(self) -> Round[Any]:
        """The round that is asked, worked out anew.

        Raises:
            Refused: it is not the one that was planned, or it costs more than the plan says.
        """
        composed = self.compose()
        problem = self._problem(composed)
        found = next_round(composed.value, problem, self.seed)
        if found.digest() != self.digest:
            raise Refused(
                f"this plan was made by cloister {self.version}, and its round comes out differently here: another version, "
                "or a platform that computes public choices differently. No report was made"
            )
        if self.crowd is not None and self.crowd != Crowd.of(found):
            raise Refused(
                "this plan says something else of its messages and their crowd than its round: no report was made"
            )
        Accountant(self.total, problem.budget).forecast([found.events])
        return found

    def as_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON, with its hash."""
        facts = self._facts()
        return {**facts, "hash": _hash(facts)}

    def write(self, folder: str | os.PathLike[str], words: str) -> None:
        """Make the folder, all at once: a crash leaves none.

        Args:
            words: the plan for people.

        Raises:
            InvalidInput: there is something, or it cannot be written.
        """
        target = checked_folder(folder)
        temporary = target.with_name(f".{target.name}.{secrets.token_hex(8)}.tmp")
        try:
            temporary.mkdir(parents=True)
            for name, text in ((WORDS, words), (FILE, _laid_out(self.as_dict()))):
                with (temporary / name).open("w", encoding="utf-8", newline="\n") as file:
                    file.write(text + "\n")
                    file.flush()
                    os.fsync(file.fileno())
            if target.exists():
                target.rmdir()
            temporary.rename(target)
        except OSError as error:
            shutil.rmtree(temporary, ignore_errors=True)
            raise InvalidInput(f"cannot write {target}: {error.strerror or error}") from error

    @classmethod
    def read(cls, folder: str | os.PathLike[str]) -> PublishedPlan:
        """Read what ``write`` wrote.

        Raises:
            InvalidInput: there is no plan. Damaged: it is not as it was published.
        """
        path = Path(folder) / FILE
        try:
            with path.open("rb") as file:
                content = file.read(MOST + 1)
        except OSError as error:
            raise InvalidInput(f"cannot read the plan {path}: {error.strerror or error}") from error
        if len(content) > MOST:
            raise Damaged(f"{path} is no plan of cloister: it has more than {MOST} bytes")
        try:
            facts = json.loads(content.decode("utf-8"), object_pairs_hook=_distinct, parse_constant=_no_constant)
            return cls.from_dict(facts)
        except CloisterError as error:
            raise Damaged(f"{path} cannot be used: {error}") from error
        except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError) as error:
            raise Damaged(
                f"{path} is not a plan of cloister, or it is damaged: get it again from whoever published it"
            ) from error

    @classmethod
    def from_dict(cls, given: dict[str, Any]) -> PublishedPlan:
        facts = {name: value for name, value in given.items() if name != "hash"}
        if given["format"] != FORMAT:
            raise Refused(
                f"it has format {given['format']!r}, this cloister reads format {FORMAT}: use the version that made it"
            )
        if given["hash"] != _hash(facts):
            raise Refused(
                "it was changed after it was published: its hash does not fit. Get it again from whoever published it"
            )
        problem, columns, outlook, size = (given[name] for name in ("problem", "columns", "expected", "bytes per user"))
        bounds = problem["bounds"]
        domain = (
            Box(tuple(bounds["lower"]), tuple(bounds["upper"]))
            if "lower" in bounds
            else Ball(tuple(bounds["center"]), bounds["radius"])
        )
        plan = cls(
            method=_method(given["method"]), k=_whole(problem["k"]), rows=_whole(problem["rows"]), domain=domain,
            columns=None if columns is None else tuple(_text(c) for c in columns), total=Total(given["epsilon"], given["delta"]),
            seed=PublicRng(bytes.fromhex(given["seed"])), digest=_text(given["digest"]),
            outlook=None if outlook is None else Outlook(float(outlook["error"]), _whole(outlook["rows needed"])),
            size=Size(float(size["answers"]), float(size["stamps"]), float(size["user number"])),
            warnings=tuple(_text(w) for w in given["warnings"]), version=_text(given["cloister"]),
            crowd=None if given["trust"] == "Local" else Crowd.from_dict(given["crowd"]),
        )  # fmt: skip
        if plan.hash != given["hash"] or (plan.columns is not None and len(plan.columns) != plan.dimension):
            raise Refused("what it says does not fit together")
        return plan

    def _problem(self, composed: Composed) -> Problem:
        return Problem(self.k, self.domain, self.rows, self.total.measured(composed.measures, composed.failing))

    def _facts(self) -> dict[str, Any]:
        d = self.domain
        bounds: dict[str, Any]
        if isinstance(d, Box):
            bounds = {"lower": list(d.lower), "upper": list(d.upper)}
        else:
            bounds = {"center": list(d.center), "radius": d.radius}
        o, s = self.outlook, self.size
        return {
            "format": FORMAT, "cloister": self.version, "trust": self.trust, "epsilon": self.total.epsilon, "delta": self.total.delta,
            "problem": {"k": self.k, "rows": self.rows, "bounds": bounds}, "users": self.rows,
            "columns": None if self.columns is None else list(self.columns), "dimension": self.dimension,
            "expected": None if o is None else {"error": o.error, "excess": o.excess, "rows needed": o.rows_needed},
            "bytes per user": {"answers": s.answers, "stamps": s.stamps, "user number": s.user, "total": s.total},
            "warnings": list(self.warnings), "method": self.method, "seed": self.seed.key.hex(), "digest": self.digest,
            **({} if self.crowd is None else {"crowd": self.crowd.as_dict()}),
        }  # fmt: skip


def read(folder: str | os.PathLike[str]) -> PublishedPlan:
    """The plan in a folder."""
    return PublishedPlan.read(folder)


def loud(total: Total) -> tuple[str, ...]:
    """A warning for a report that hides little, whatever its plan says of itself."""
    epsilon = total.epsilon
    if epsilon <= LOUD:
        return ()
    times = f"e^{epsilon:g} = {math.exp(epsilon):,.0f}" if epsilon < 20 else f"e^{epsilon:g}"
    return (
        f"a report of epsilon = {epsilon:g} hides little: it may be {times} times as likely under one row as under another",
    )


def checked_folder(folder: str | os.PathLike[str]) -> Path:
    """The path, if a plan could be written there.

    Raises:
        InvalidInput: something is there already.
    """
    target = Path(os.path.abspath(folder))
    if target.exists() and not target.is_dir():
        raise InvalidInput(f"cannot write {target}: it is a file")
    if target.is_dir() and any(target.iterdir()):
        raise InvalidInput(
            f"cannot write {target}: it is not empty. A published plan never changes: choose another folder"
        )
    return target


def _registry(names: set[str]) -> Registry:
    """What is built in, if it has all these names; else everything that is installed."""
    known = built_in()
    return known if names <= {spec.name for spec in known.specs()} else registry()


def _walk(config: Mapping[str, Any], path: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Every component of a configuration, with the path of its slot."""
    yield path, config
    for slot, inner in config["slots"].items():
        yield from _walk(inner, f"{path}{slot}.")


def _method(config: Any) -> dict[str, Any]:
    """A configuration, if it is one all the way down."""
    if not isinstance(config, dict) or set(config) != {"name", "options", "slots"}:
        raise TypeError("not a component")
    _text(config["name"])
    for inner in config["slots"].values():
        _method(inner)
    if not isinstance(config["options"], dict):
        raise TypeError("options are named")
    return config


def _laid_out(facts: Mapping[str, Any]) -> str:
    """JSON for people: a name per line, lists of plain values in one. A raw line break is never inside a value."""
    text = json.dumps(facts, indent=1, allow_nan=False)
    return re.sub(
        r"\[\n[^\[\]{}]*?\n *\]", lambda m: re.sub(r"\n *", " ", m.group()).replace("[ ", "[").replace(" ]", "]"), text
    )


def _hash(facts: Mapping[str, Any]) -> str:
    text = json.dumps(facts, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object whose names differ: readers disagree about which of two equal names counts."""
    if len(dict(pairs)) != len(pairs):
        raise ValueError("a name stands twice")
    return dict(pairs)


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


def _whole(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError("not a whole number")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("not text")
    return value
