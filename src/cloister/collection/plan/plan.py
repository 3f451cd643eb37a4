"""Published plan: all that users need to answer its rounds, and a server to decode the answers. All public.

A plan is a folder with ``plan.json`` and a description in words. It names components, and holds no code: each reader
composes the method from the installed components, derives the round and compares digests, so that a user and a server
who accept a plan mean the same round. ``hash`` covers everything else in the file; reports carry it.

A plan of several rounds holds the cost of each round; the questions of later rounds depend on the answers that the
server publishes beside it (``transcript``).

Reading needs NumPy, attrs and the standard library only, unless the plan names a component that is not built in.
"""

from __future__ import annotations

import math
import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import attrs

from cloister.accounting import Accountant, PrivacyTarget
from cloister.accounting.budgeting import problem_of
from cloister.collection.plan import canonical_json
from cloister.collection.plan.costs import Size, Step
from cloister.collection.plan.crowd import Crowd
from cloister.collection.plan.durable_files import flush, temporary_path, writing
from cloister.collection.wire.batches import MAX_ROUNDS
from cloister.core.clustering import Problem
from cloister.core.domains import Ball, Box, plain
from cloister.core.errors import CloisterError, InvalidInput, Refused
from cloister.core.plain_data import parsed
from cloister.core.questions import Round
from cloister.core.randomness import PublicRng
from cloister.core.record import Record
from cloister.core.registry.compose import Composed, compose
from cloister.core.registry.records import paths_in
from cloister.core.registry.registry import Registry, built_in, registry
from cloister.core.session import forecast, next_round
from cloister.core.wrappers import ColumnNames

if TYPE_CHECKING:
    from cloister.run.method_selection import MethodSelection
    from cloister.run.statement import PrivacyStatement

FORMAT = 1
FILE, WORDS = "plan.json", "README.txt"
MAX_PLAN_BYTES = 2**26
"""Maximum size of a plan file."""

TRUSTS = ("Local", "Shuffled")
"""Trust models under which users randomise their own rows, as a plan needs."""


@final
@attrs.frozen
class Outlook:
    """Expected accuracy: the error v of ``PredictsError``, and the rows needed for v = 0.1."""

    error: float
    rows_needed: int

    @property
    def excess(self) -> float:
        """Mean squared distance added by noise, over the squared radius: v / (1 + v), since centres are shrunk."""
        return self.error / (1 + self.error)


@final
@attrs.frozen(kw_only=True, eq=False)
class CollectionPlan:
    """Plan of one round or several.

    Args:
        method: names and options of the method and of all components in its slots, as in ``Composed.config``.
        k: number of centres.
        rows: public number of users; their numbers are 0 <= user < rows.
        domain: domain of the rows.
        columns: column names, or None: any columns, as many as the domain's dimension.
        categories: public values by column; each value has a column in ``columns``, such as 'ward=A'.
        total: (epsilon, delta) that all rounds together cost a user.
        seed: seed of the public randomness.
        digest: digest of the first round.
        outlook: expected accuracy; None if the method cannot say.
        size: mean size of a user's reports of all rounds together.
        warnings: texts for people.
        version: the cloister version that made the plan.
        schedule: cost of each round, for several; empty for one round.
        crowd: facts of the shuffled round; None under Local trust.
        choice: choice of the method by ``auto``, in a plan that was just made; not published.
    """

    method: Mapping[str, Any]
    k: int
    rows: int
    domain: Box | Ball
    columns: tuple[str, ...] | None
    total: PrivacyTarget
    seed: PublicRng
    digest: str
    outlook: Outlook | None
    size: Size
    warnings: tuple[str, ...]
    version: str
    schedule: tuple[Step, ...] = ()
    crowd: Crowd | None = None
    categories: Mapping[str, tuple[str, ...]] = attrs.field(factory=dict)
    choice: MethodSelection | None = attrs.field(default=None, eq=False, repr=False)
    _rounds: tuple[Round[Any], ...] = attrs.field(default=(), init=False, repr=False)
    _cached_problem: Problem | None = attrs.field(default=None, init=False, repr=False)

    def __attrs_post_init__(self) -> None:
        if len(self.schedule) > MAX_ROUNDS:
            raise InvalidInput(f"a plan has at most {MAX_ROUNDS} rounds, and this one would have {len(self.schedule)}")

    @property
    def trust(self) -> str:
        """Name of the trust marker: Local or Shuffled."""
        return "Local" if self.crowd is None else "Shuffled"

    @property
    def hash(self) -> str:
        """SHA-256 of everything else, in hex: the plan's name."""
        return canonical_json.hash_of(self._facts())

    @property
    def length(self) -> int:
        """Number of rounds."""
        return len(self.schedule) or 1

    @property
    def dimension(self) -> int:
        return self.domain.dimension

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns, or their positions."""
        return self.columns or tuple(map(str, range(self.dimension)))

    @property
    def column_names(self) -> ColumnNames:
        """The same, as the layers of its method take them."""
        return ColumnNames(self.names, self.categories)

    @property
    def problem(self) -> Problem:
        """Clustering problem, with the budget for (epsilon, delta)."""
        return self._problem(self.compose())

    def compose(self) -> Composed:
        """Compose the method from the installed components.

        Raises:
            CloisterError: a component is not installed, or does not fit its slot.
            Refused: the method is not private, or has another trust model than the plan.
        """
        name, (names, values) = self.method["name"], paths_in(self.method)
        composed = compose(_registry({name, *names.values()}), "Method", name, names, values)
        if not composed.private or composed.trust != self.trust:
            kind = f"{composed.trust}, which the plan is not" if composed.private else "NOT private"
            raise Refused(f"this plan's method is {kind}: nobody should send a report to it")
        return composed

    def round(self, record: Record | None = None) -> Round[Any]:
        """Derive the next round to answer.

        Args:
            record: earlier rounds and this one's digest; default: for the first round.

        Raises:
            Refused: a round or the schedule differs from the published one, or the method fails on the answers.
            BudgetExceeded: all rounds together cost more than the plan says.
        """
        published = Record([self.digest]) if record is None else record
        composed = self.compose()
        problem = self._problem(composed)
        try:
            derived = next_round(composed.value, problem, self.seed, published)
        except Refused as error:
            raise Refused(f"this plan was made by cloister {self.version}: {error}. No report was made") from error
        except CloisterError:
            raise
        except Exception as error:  # published answers can be forged, and a method may fail on them in any way
            raise Refused("the method fails on the published answers: no report was made") from error
        if self.crowd is not None and (self.schedule or self.crowd != Crowd.of(derived)):
            raise Refused("this plan's facts of messages or crowd differ from its round's: no report was made")
        self.accountant(composed, derived if not self.schedule else None).charge(derived.index, derived.events)
        return derived

    def rounds(self) -> tuple[Round[Any], ...]:
        """Return all rounds as if every answer were zero; their events equal those of the real rounds.

        Raises: Refused: their costs differ from the plan's schedule.
        """
        if self._rounds:
            return self._rounds
        composed = self.compose()
        all_rounds = tuple(forecast(composed.value, self._problem(composed), self.seed))
        steps = zip(self.schedule, all_rounds, strict=False)
        if len(all_rounds) != self.length or not all(step.matches(round) for step, round in steps):
            raise Refused(
                f"this plan was made by cloister {self.version}, and the cost of its rounds comes out differently "
                f"here: no report was made"
            )
        object.__setattr__(self, "_rounds", all_rounds)
        return all_rounds

    def accountant(self, composed: Composed | None = None, only: Round[Any] | None = None) -> Accountant:
        """Return an accountant whose forecast of all rounds is within the plan's total.

        ``composed`` is the method, if already composed; ``only``, the round of a plan of one, replaces the forecast.
        """
        problem = self._problem(composed or self.compose())
        accountant = Accountant(self.total, problem.budget)
        accountant.forecast([round.events for round in ([only] if only is not None else self.rounds())])
        return accountant

    def statement(self, rounds: Sequence[Round[Any]], notes: tuple[str, ...] = ()) -> PrivacyStatement:
        """Return the privacy statement of all ``rounds``, with notes on how they were run."""
        from cloister.run.statement import state  # clients do not need it

        return state(
            rounds,
            self.total.epsilon,
            self.total.delta,
            trust=self.trust,
            rows=self.rows,
            seeded=False,
            private=True,
            epsilon_without_shuffler=math.inf if self.crowd is None else self.crowd.epsilon_without_shuffler,
            notes=notes,
        )

    def as_dict(self) -> dict[str, Any]:
        """Return plain data for JSON, with its hash."""
        return canonical_json.with_hash(self._facts())

    def write(self, folder: str | os.PathLike[str], words: str, extra_files: Mapping[str, bytes] | None = None) -> None:
        """Create the plan's folder atomically, with a description in words and other files (``bundle_folder.write``).

        Raises: InvalidInput: the folder is not empty, or cannot be written.
        """
        target = checked_folder(folder)
        temporary, plan = temporary_path(target), canonical_json.pretty_json(self.as_dict())
        files = {**(extra_files or {}), WORDS: words.encode() + b"\n", FILE: plan.encode() + b"\n"}
        try:
            with writing(target):
                temporary.mkdir(parents=True)
                for name, content in files.items():
                    with (temporary / name).open("wb") as file:
                        file.write(content)
                        flush(file)
                if target.exists():
                    target.rmdir()
                temporary.rename(target)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)

    @classmethod
    def read(cls, folder: str | os.PathLike[str]) -> CollectionPlan:
        """Read a plan's folder. Raises: InvalidInput: there is no plan. Damaged: it is not as it was published."""
        again = "is not a plan of cloister, or it is damaged: get it again from whoever published it"
        if Path(folder).is_file():
            raise InvalidInput(f"cannot read the plan {folder}: it is a file, but a plan is a folder with {FILE} in it")
        return canonical_json.read(
            Path(folder) / FILE, "plan", MAX_PLAN_BYTES, lambda content: cls.from_dict(parsed(content)), again
        )

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> CollectionPlan:
        steps = tuple(Step.from_dict(step) for step in data.get("rounds", ()))
        canonical_json.check_hash(data, FORMAT)
        problem, columns, outlook, size = (data[name] for name in ("problem", "columns", "expected", "bytes per user"))
        b = problem["bounds"]
        domain = Box(tuple(b["lower"]), tuple(b["upper"])) if "lower" in b else Ball(tuple(b["center"]), b["radius"])
        plan = cls(
            method=_method(data["method"]),
            k=canonical_json.whole_number(problem["k"]),
            rows=canonical_json.whole_number(problem["rows"]),
            domain=domain,
            columns=None if columns is None else tuple(canonical_json.as_text(c) for c in columns),
            total=PrivacyTarget(data["epsilon"], data["delta"]),
            seed=PublicRng(bytes.fromhex(data["seed"])),
            digest=canonical_json.as_text(data["digest"]),
            outlook=None
            if outlook is None
            else Outlook(float(outlook["error"]), canonical_json.whole_number(outlook["rows needed"])),
            size=Size.from_dict(size),
            warnings=tuple(canonical_json.as_text(w) for w in data["warnings"]),
            version=canonical_json.as_text(data["cloister"]),
            schedule=steps,
            crowd=None if data["trust"] == "Local" else Crowd.from_dict(data["crowd"]),
            categories=_categories(problem.get("categories", {})),
        )
        made = {f"{name}={value}" for name, values in plan.categories.items() for value in values}
        if (
            plan.hash != data["hash"]
            or (plan.columns is not None and len(plan.columns) != plan.dimension)
            or not made <= set(plan.columns or ())
        ):
            raise Refused("its facts contradict each other")
        return plan

    def _problem(self, composed: Composed) -> Problem:
        if self._cached_problem is None:
            object.__setattr__(
                self, "_cached_problem", problem_of(composed, self.total, self.k, self.domain, self.rows)
            )
        assert self._cached_problem is not None
        return self._cached_problem

    def _facts(self) -> dict[str, Any]:
        d, o = self.domain, self.outlook
        listed = {name: list(values) for name, values in self.categories.items()}
        rounds = {"rounds": [step.as_dict() for step in self.schedule]} if self.schedule else {}
        return {
            "format": FORMAT,
            "cloister": self.version,
            "trust": self.trust,
            "epsilon": self.total.epsilon,
            "delta": self.total.delta,
            "problem": {"k": self.k, "rows": self.rows, "bounds": plain(d)}
            | ({"categories": listed} if listed else {}),
            "users": self.rows,
            "columns": None if self.columns is None else list(self.columns),
            "dimension": self.dimension,
            "expected": None if o is None else {"error": o.error, "excess": o.excess, "rows needed": o.rows_needed},
            "bytes per user": self.size.as_dict(),
            "warnings": list(self.warnings),
            "method": self.method,
            "seed": self.seed.key.hex(),
            "digest": self.digest,
            **rounds,
            **({} if self.crowd is None else {"crowd": self.crowd.as_dict()}),
        }


read = CollectionPlan.read


def checked_folder(folder: str | os.PathLike[str]) -> Path:
    """Return the absolute path of a new plan's folder. Raises: InvalidInput: it is a file, or not empty."""
    target = Path(os.path.abspath(folder))
    if target.exists() and not target.is_dir():
        raise InvalidInput(f"cannot write {target}: it is a file")
    if target.is_dir() and any(target.iterdir()):
        raise InvalidInput(
            f"cannot write {target}: it is not empty. A published plan never changes: choose another folder"
        )
    return target


def _registry(names: set[str]) -> Registry:
    """Return the built-in components if they include all these names, else all installed ones."""
    components = built_in()
    return components if names <= {spec.name for spec in components.specs()} else registry()


def _categories(categories: Any) -> dict[str, tuple[str, ...]]:
    """Check and return values by column, all of them text."""
    listed = {
        canonical_json.as_text(name): tuple(map(canonical_json.as_text, values)) for name, values in categories.items()
    }
    if not all(listed.values()):
        raise TypeError("a category has values")
    return listed


def _method(config: Any) -> dict[str, Any]:
    """Check and return a configuration, recursively."""
    if not isinstance(config, dict) or set(config) != {"name", "options", "slots"}:
        raise TypeError("not a component")
    canonical_json.as_text(config["name"])
    for inner in config["slots"].values():
        _method(inner)
    if not isinstance(config["options"], dict):
        raise TypeError("options are named")
    return config
