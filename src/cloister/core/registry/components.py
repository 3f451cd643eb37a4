"""Components and their options, declared once: constructor, validation, flags, config files and ``describe`` follow.

A component is a frozen attrs class with ``option`` and ``slot`` fields. A ``Spec`` says where it is found, so that
listing the installed components imports nothing heavy.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterator, Mapping
from functools import cache
from types import UnionType
from typing import Any, Literal, TypeAlias, TypeVar, Union, dataclass_transform, get_args, get_origin, get_type_hints

import attrs

from cloister.core.doubles import as_float
from cloister.core.errors import InvalidInput
from cloister.core.trust import TRUSTS

GROUP = "cloister"

Role: TypeAlias = Literal[
    "Method", "FrequencyOracle", "VectorSumOracle", "TreeBuilder", "NonPrivateSolver", "Population"
]
ROLES: tuple[Role, ...] = (
    "Method",
    "FrequencyOracle",
    "VectorSumOracle",
    "TreeBuilder",
    "NonPrivateSolver",
    "Population",
)

ANY_TRUST = "any trust"
"""How ``cloister list`` shows the trust of a component that works under any."""

C = TypeVar("C")


def _marker(name: str | None) -> str | None:
    return None if name == ANY_TRUST else name


@attrs.frozen
class Spec:
    """One component that a plugin offers, described without importing it.

    Args:
        name: kebab-case; unique in its role; API.
        role: one of ``ROLES``.
        target: "module:Class".
        summary: one line.
        trust: name of the trust marker; None (or 'any trust', as ``cloister list`` shows it) for any.
        paper: the source of the algorithm.
        presets: option values, and component names for slots, where this name differs from the class's defaults.
        private: False for a component without a guarantee, which must be asked for by an explicit flag.
        objective: of a method, what it makes small: "k-means" or "k-median". A method that has one is a candidate of
            ``auto`` or ``auto-median`` if its class predicts its error (``core.capabilities.PredictsError``).
        fills: an oracle's place in the order in which those of its trust are tried where a trust model fills the slots,
            low numbers first; None: only where it is named.
        alternatives: of a method, other components for its slots, a mapping for each way. If ``auto``
            picks it, it is judged with them, too, under a curator, where the caller leaves these slots open.
        adds: of a method that wraps another one (``core.wrappers.Wrapper``), what it adds: a result records the inner
            method, and under this key the wrapper. Of several that add the same, a run takes the one with the lowest
            ``fills``. A built-in layer asks for "frame" (options ``share`` and ``scale``), "description" (``share``,
            ``columns`` and ``beside``) or "words" (``share`` and ``slots``).
        starts: of a method that begins from public centres, the path of the option that they are; else empty. What
            ``auto`` picks stands in the slot ``fresh`` of the one with the lowest ``fills``, where a run has a start.
        reads: of a population, what ``run.fit.source`` and ``parties`` make it of: rows in "memory", "files" or
            "databases", or "parties". Of several the first plugin's is taken.

    Raises:
        InvalidInput: there is no such trust marker.
    """

    name: str
    role: Role
    target: str
    summary: str
    trust: str | None = attrs.field(default=None, converter=_marker)
    paper: str = ""
    presets: Mapping[str, Any] = attrs.field(factory=dict)
    private: bool = True
    objective: str = ""
    fills: int | None = None
    alternatives: tuple[Mapping[str, str], ...] = ()
    adds: str = ""
    starts: str = ""
    reads: str = ""

    def __attrs_post_init__(self) -> None:
        if self.trust is not None and self.trust not in TRUSTS:
            raise InvalidInput(
                f"the trust of '{self.name}' is {self.trust!r}: choose {', '.join(TRUSTS)}, or leave it out for any"
            )


@attrs.frozen
class Option:
    """Facts about an option. Args: help, unit, bounds (low, high; open where ``above``), choices."""

    help: str
    unit: str = ""
    low: float | None = None
    high: float | None = None
    above: bool = False
    choices: tuple[Any, ...] = ()

    @property
    def range(self) -> str:
        """The allowed values, for people."""
        if self.choices:
            return " | ".join(str(c) for c in self.choices)
        left = "" if self.low is None else f"{'>' if self.above else '>='} {self.low:g}"
        right = "" if self.high is None else f"<= {self.high:g}"
        return ", ".join(part for part in (left, right) if part)

    def check(self, name: str, value: Any, hint: Any = None) -> None:
        """Raise InvalidInput unless the value is allowed, and of the annotated type. A NaN never is."""
        if self.choices:
            if value not in self.choices:
                raise InvalidInput(f"option '{name}' is {value!r}: choose from {self.range}")
            return
        if hint is not None and not fits(value, hint):
            kind = getattr(hint, "__name__", hint)
            raise InvalidInput(
                f"option '{name}' is {value!r}: it takes {', '.join(filter(None, (str(kind), self.range)))}"
            )
        if isinstance(value, numbers.Real):
            low = -math.inf if self.low is None else self.low
            high = math.inf if self.high is None else self.high
            number: Any = value
            if math.isinf(as_float(value)) and (isinstance(value, numbers.Integral) or low <= number <= high):
                raise InvalidInput(f"option '{name}' is beyond 1.8e308, the largest double: give a finite number")
            if not low <= number <= high or (
                self.above and not number > low
            ):  # also for integers too large for a float
                raise InvalidInput(f"option '{name}' is {value!r}: it must be {self.range or 'a number'}")


def own_number(value: Any) -> Any:
    """Convert a number of any library to int or float, so that equal numbers are alike; pass other values through."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        return value
    return int(value) if isinstance(value, numbers.Integral) else as_float(value)


def fits(value: Any, hint: Any) -> bool:
    """Whether a value is of an option's type: integers count as floats, booleans as neither."""
    if get_origin(hint) in (Union, UnionType):
        return any(fits(value, part) for part in get_args(hint))
    if get_origin(hint) is Literal:
        return value in get_args(hint)
    kinds: dict[Any, type] = {int: numbers.Integral, float: numbers.Real, type(None): type(None)}
    kind = kinds.get(hint, hint)
    return not isinstance(kind, type) or (isinstance(value, kind) and (hint is bool or not isinstance(value, bool)))


@cache
def _hints(cls: Any) -> dict[str, Any]:
    """Return a class's annotations; none if they name types that only a type checker imports."""
    try:
        return get_type_hints(cls)
    except NameError:
        return {}


@attrs.frozen
class Slot:
    """Facts about a slot. Args: default (a component's registry name, or None if it must be filled), help."""

    default: str | None
    help: str


@attrs.frozen
class CandidateSlot(Slot):
    """Facts about a slot that every fitting component fills. Args: default (the objective that they share), help."""


def fields(cls: type[Any]) -> tuple[attrs.Attribute[Any], ...]:
    """Return the attrs fields of a class; none of a class without attrs, such as a population."""
    return tuple(attrs.fields(cls)) if attrs.has(cls) else ()


def option(
    *,
    default: Any,
    help: str,
    unit: str = "",
    low: float | None = None,
    high: float | None = None,
    above: bool = False,
    choices: tuple[Any, ...] = (),
) -> Any:
    """Declare a public option of a component: its default, meaning, unit and bounds."""
    facts = Option(help, unit, low, high, above, choices)

    def valid(component: object, attribute: attrs.Attribute[Any], value: Any) -> None:
        cls: Any = type(component)
        facts.check(attribute.name, value, _hints(cls).get(attribute.name))

    return attrs.field(default=default, converter=own_number, validator=valid, metadata={"cloister": facts})


EMPTY = object()
"""Marks an unfilled slot."""


def slot(prefer: str | None = None, *, help: str) -> Any:
    """Declare a slot for a component: a constructor argument in Python, filled by ``prefer`` when composed by name."""
    return attrs.field(default=EMPTY, validator=_full, metadata={"cloister": Slot(prefer, help)})


def choices(objective: str, *, help: str) -> Any:
    """Declare a slot for all installed methods of one objective that predict their errors, by name.

    Each name is a slot of its own (``--with NAME.slot=...``, ``--set NAME.option=...``). ``--with NAME=none`` leaves
    one out; ``--with NAME=METHOD`` leaves out all that are not named so.
    """
    return attrs.field(
        default=EMPTY, converter=_held, validator=_full, metadata={"cloister": CandidateSlot(objective, help)}
    )


class ComponentMap(Mapping[str, C]):
    """Components by name, in order of names: a value, which can be hashed."""

    def __init__(self, parts: Mapping[str, C]) -> None:
        self._parts = dict(sorted(parts.items()))

    def __getitem__(self, name: str) -> C:
        return self._parts[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._parts)

    def __len__(self) -> int:
        return len(self._parts)

    def __hash__(self) -> int:
        return hash(tuple(self._parts.items()))

    def __repr__(self) -> str:
        return repr(self._parts)


def _held(value: Any) -> Any:
    return ComponentMap(value) if isinstance(value, Mapping) else value


def _full(component: object, attribute: attrs.Attribute[Any], value: Any) -> None:
    if value is EMPTY:
        name = type(component).__name__
        empty = [slot for slot in slots_of(type(component)) if getattr(component, slot) is EMPTY]
        raise TypeError(
            f"{name} has empty slots: {', '.join(empty)}. Fill them, as in {name}({empty[0]}=...): "
            f"cloister.plugin.filled({name}) uses the preferred components, cloister.plugin.make(role, name) makes one "
            f"by its registry name"
        )


FACTS: dict[str, Any] = {"uses_delta": False, "asks_all_users": False, "biased": False}
"""Class attributes that default to False: see ``core.roles.FrequencyOracle``."""


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(option, slot, choices))
def component(cls: type[C]) -> type[C]:
    """Make a class a component: frozen, keyword-only, every field an ``option`` or a ``slot``, with all ``FACTS``."""
    made = attrs.frozen(kw_only=True)(cls)
    for field in fields(made):
        if "cloister" not in field.metadata:
            raise TypeError(
                f"{cls.__name__}.{field.name} is neither an option() nor a slot(); what a class says of itself has no "
                f"annotation: {field.name} = ..."
            )
    for name, default in FACTS.items():
        if not hasattr(made, name):
            setattr(made, name, default)
    return made


def trust_of(cls: type[Any]) -> str | None:
    """Return the name of a class's own trust marker; None if it takes that of its slots, or works under any."""
    marker = getattr(cls, "trust", None)
    return marker.__name__ if isinstance(marker, type) else None


def options_of(cls: type[Any]) -> dict[str, tuple[Option, Any]]:
    """Option facts and defaults of a component class, by name."""
    return {
        f.name: (f.metadata["cloister"], f.default)
        for f in fields(cls)
        if isinstance(f.metadata.get("cloister"), Option)
    }


def slots_of(cls: type[Any]) -> dict[str, Slot]:
    """Slot facts of a component class, by name."""
    return {f.name: f.metadata["cloister"] for f in fields(cls) if isinstance(f.metadata.get("cloister"), Slot)}


def parts_of(component: Any) -> dict[str, Any]:
    """Return the parts in a component's slots by name, with all that ``choices`` hold."""
    found = dict[str, Any]()
    for name, facts in slots_of(type(component)).items():
        held = getattr(component, name)
        found |= held if isinstance(facts, CandidateSlot) else {name: held}
    return found
