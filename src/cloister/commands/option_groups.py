"""Commands that take options: from flags and from a config file.

``option_groups`` spreads every parameter of a command whose type is a class of options (``commands.options``) into
flags, in
the same words and under the same heading wherever they stand, and reads them back from the flags and from a config
file, where an option has the name of its flag or its name in Python. A value that no flag could have is refused.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, final, get_args, get_origin, get_type_hints

import attrs

from cloister.commands.common import parted
from cloister.commands.options import CliOption, Wanted, declared, typed
from cloister.core.errors import InvalidInput, UnknownName
from cloister.rows.options import Reading

if TYPE_CHECKING:
    from cloister.run.result import Result

_kinds = cache(get_type_hints)
"""Types of a class's options, evaluated once."""

CONFIG: Final = "config"
"""The parameter of a command that may have its options from a file, too."""


def pairs(items: list[str] | None, flag: str) -> dict[str, str]:
    """Parse repeated name=value flags. Raises: InvalidInput for anything else, and for one name with two values."""
    found = dict[str, str]()
    for item in items or []:
        name, equals, value = item.partition("=")
        if not equals or not name or not value:
            raise InvalidInput(f"{flag} takes name=value, not '{item}'")
        if found.setdefault(name, value) != value:
            raise InvalidInput(f"{flag} {name} was given twice, with different values")
    return found


def listed_values(items: list[str] | None) -> dict[str, list[str]]:
    """Parse repeated column=value,value flags; a value in double quotes may have commas, as a cell of CSV.

    Raises: InvalidInput: as ``pairs``, or quotes that do not end where a value does.
    """
    known = pairs(items, "--category")
    return {name: parted(text, f"the values of category '{name}' are {text!r}") for name, text in known.items()}


def result_from(path: Path, names: str | None) -> Result:
    """The result in a file, with the groups' names if they are given. Raises: InvalidInput, Damaged."""
    from cloister.run.bounds import FILES
    from cloister.run.result import Result

    loaded = Result.load(path)
    if names is None:
        return loaded
    return loaded.named(
        mapping_in(Path(names), "names")
        if names.endswith(FILES)
        else pairs(parted(names, f"the names are {names!r}"), "--names")
    )


def with_start(reading: Reading, asked: Wanted) -> tuple[Reading, Wanted]:
    """Return the options with what the start says where nothing is given: columns, categories, missing and k.

    Bounds are taken later (``run.layers.warm_start.read``), since some methods take narrower ones.

    Raises: CloisterError: the start cannot be read.
    """
    if asked.start is None:
        return reading, asked
    from cloister.run.layers.warm_start import Start

    start = Start.of(asked.start)
    categories = {**start.categories, **(reading.categories or {})}
    columns = start.columns(categories) if reading.columns is None else reading.columns
    missing = start.missing if reading.missing is None else reading.missing
    k = start.k if asked.k is None else asked.k
    given = attrs.evolve(reading, columns=columns, categories=categories or None, missing=missing)
    return given, attrs.evolve(asked, k=k)


FROM_WORDS: Mapping[str, Callable[[Any], Any]] = {
    "categories": listed_values,
    "components": lambda items: pairs(items, "--with"),
    "options": lambda items: pairs(items, "--set"),
}
"""Readers of repeated flags."""


@final
@attrs.frozen
class Excludes:
    """Options of a class that a command does not take. Args: why (for people, in the table of options), names."""

    why: str
    names: tuple[str, ...]


def excludes(why: str, *names: str) -> Excludes:
    return Excludes(why, names)


@final
@attrs.frozen
class Requires:
    """Options of a class that a command cannot do without."""

    names: tuple[str, ...]


def requires(*names: str) -> Requires:
    return Requires(names)


@final
@attrs.frozen
class DefaultOf:
    """The default of an option in one command, for its help. Args: name, words."""

    name: str
    words: str


def default_of(name: str, words: str) -> DefaultOf:
    return DefaultOf(name, words)


@final
@attrs.frozen
class TakenOptions:
    """Class of options as one command takes it.

    Args:
        kind: the class.
        excludes: options that the command does not take.
        requires: names of options that must be given.
        defaults: descriptions of defaults that differ from the class's, by option.
    """

    kind: type
    excludes: tuple[Excludes, ...] = ()
    requires: tuple[str, ...] = ()
    defaults: Mapping[str, str] = attrs.field(factory=dict)

    @classmethod
    def of(cls, annotation: Any) -> TakenOptions | None:
        """The group that a parameter's type stands for, if any."""
        kind, *marks = get_args(annotation) if get_origin(annotation) is Annotated else (annotation,)
        if not (isinstance(kind, type) and attrs.has(kind)):
            return None
        needed = tuple(name for mark in marks if isinstance(mark, Requires) for name in mark.names)
        defaults = {mark.name: mark.words for mark in marks if isinstance(mark, DefaultOf)}
        return cls(kind, tuple(mark for mark in marks if isinstance(mark, Excludes)), needed, defaults)

    @property
    def missing(self) -> dict[str, str]:
        """Why each option that the command does not take is none of its."""
        return {name: each.why for each in self.excludes for name in each.names}

    @property
    def taken(self) -> dict[str, CliOption]:
        return {name: each for name, each in declared(self.kind).items() if name not in self.missing}

    def parameters(self) -> Iterator[inspect.Parameter]:
        """Parameters of the command, as typer reads them."""
        kinds = _kinds(self.kind)
        for name, each in self.taken.items():
            kind = kinds[name] if each.kind is None else each.kind
            flag = bool in get_args(kind)
            default = inspect.Parameter.empty if name in self.requires else False if flag else None
            if name in self.requires:
                kind = next(part for part in get_args(kind) if part is not type(None))
            yield inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY,
                default=default,
                annotation=Annotated[bool if flag else kind, self._in_help(name, each).option],
            )

    def _in_help(self, name: str, words: CliOption) -> CliOption:
        """An option with the default that it has in this command."""
        own = "" if name in self.requires else self.defaults.get(name)
        return words if own is None else words.with_default(own)

    def read(self, given: dict[str, Any], config: Mapping[str, Any]) -> Any:
        """The options. Args: given (flags by name; those of this group are taken out), config (of a file, by name)."""
        kinds, found = _kinds(self.kind), dict[str, Any]()
        for name, each in self.taken.items():
            value = given.pop(name)
            kept = as_declared(config.get(name), kinds[name], name)
            if name in FROM_WORDS:
                found[name] = {**(kept or {}), **FROM_WORDS[name](value)}
            elif value is None or value is False:
                found[name] = kept
            else:
                found[name] = value if each.read is None else each.read(value)
        return self.kind(**found)


Command = Callable[..., None]
GROUPS = dict[str, dict[str, TakenOptions]]()
"""Classes of options that commands take, by the command's name and the parameter's."""


def option_groups(command: Command) -> Command:
    """A command whose parameters of classes of options are spread into flags."""
    signature = inspect.signature(command, eval_str=True)
    groups, spread = dict[str, TakenOptions](), list[inspect.Parameter]()
    for parameter in signature.parameters.values():
        group = TakenOptions.of(parameter.annotation)
        if group is None:
            spread.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY))
        else:
            groups[parameter.name] = group
            spread += group.parameters()

    def spread_command(**given: Any) -> None:
        config = dict[str, Any]()
        if CONFIG in given:
            every = {name: each for group in groups.values() for name, each in group.taken.items() if each.in_config}
            config = read_config(given.pop(CONFIG), every, command.__name__)
        read = {name: group.read(given, config) for name, group in groups.items()}
        command(**given, **read)

    GROUPS[command.__name__] = groups
    spread_command.__name__, spread_command.__doc__ = command.__name__, command.__doc__
    spread_command.__module__ = command.__module__
    spread_command.__annotations__ = {}
    vars(spread_command)["__signature__"] = signature.replace(parameters=spread)
    return spread_command


def why_lacking(command: str, flag: str) -> str:
    """Return why a command does not take an option that others take; empty if nothing is said of it. Args: command (its
    name), flag (of the option)."""
    for group in GROUPS.get(command, {}).values():
        for name, each in declared(group.kind).items():
            if flag in each.flags and name in group.missing:
                return f"{command} takes no {flag}: {group.missing[name]}"
    return ""


def read_config(path: Path | None, options: Mapping[str, CliOption], command: str = "") -> dict[str, Any]:
    """Read options from a file, by their own names. Args: options (that it may have), command (that takes them).

    Raises: InvalidInput: it cannot be read, says an option twice, or one that the command does not take. UnknownName:
        it has another one.
    """
    found, known = dict[str, Any](), _names(options)
    for name, value in mapping_in(path, "config").items():
        plain = name.replace("-", "_")
        if plain not in known:
            if why := why_lacking(command, f"--{plain.replace('_', '-')}"):
                raise InvalidInput(f"{why} (in the config file {path})")
            raise UnknownName("option", plain, known, "(in the config file)")
        if known[plain] in found:
            raise InvalidInput(f"the config file {path} says {plain} twice, by two names: leave one out")
        found[known[plain]] = value
    return found


def _names(options: Mapping[str, CliOption]) -> dict[str, str]:
    """Options by every name that they have: in Python, and as long flags."""
    flags = {flag: name for name, each in options.items() for flag in each.flags if flag.startswith("--")}
    called = {flag.lstrip("-").replace("-", "_"): name for flag, name in flags.items()}
    return {name: name for name in options} | called


def mapping_in(path: Path | None, what: str) -> dict[str, Any]:
    """The table in a .toml or .json file, empty without one. Args: what (it is of). Raises: InvalidInput: there is
    none."""
    from cloister.run.bounds import table_from

    loaded = {} if path is None else table_from(path, what)
    if not isinstance(loaded, dict):
        raise InvalidInput(f"the {what} file {path} is no table: give names with their values")
    return loaded


def as_declared(value: Any, kind: Any, name: str) -> Any:
    """A config file's value of an option of this type, without a change. Raises: InvalidInput: it is of another."""
    kinds = {getattr(each, "__origin__", each) for each in get_args(kind) or (kind,)}
    if value is None or Any in kinds:
        return value
    if bool in kinds:
        return flag(value, name)
    if isinstance(value, list) and (float in kinds or int in kinds):
        raise InvalidInput(
            f"{name} in the config file is {value!r}: give one number (only compare takes budgets as lists)"
        )
    if float in kinds or int in kinds:
        return typed(value, float if float in kinds else int, name)
    if kinds & {list, Sequence}:
        return _listed(value, name)
    if str in kinds and not isinstance(value, str):
        raise InvalidInput(f"{name} in the config file is {value!r}: give text, in quotes")
    if str not in kinds and not isinstance(value, dict):
        raise InvalidInput(f"'{name}' in the config file is {value!r}: give a table of names and values")
    return value


def _listed(value: Any, name: str) -> list[str]:
    if isinstance(value, str):
        return parted(value, f"{name} in the config file is {value!r}")
    if not (isinstance(value, list) and all(isinstance(each, str) for each in value)):
        raise InvalidInput(f"{name} in the config file is {value!r}: give a list of names")
    return value


def flag(value: Any, name: str) -> bool:
    """An option that is true, false or not given, as a bool. Raises: InvalidInput for anything else."""
    if value not in (None, True, False):
        raise InvalidInput(f"{name} is {value!r}: give true or false")
    return value is True
