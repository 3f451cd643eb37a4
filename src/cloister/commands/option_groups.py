"""Commands whose options come from flags and from a config file.

``option_groups`` spreads every parameter of a command whose type is a class of options (``commands.options``) into
flags, with the same help and heading everywhere, and reads them back from the flags and from a config file, where an
option has the name of its flag or its name in Python. A value that no flag could have is rejected.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, final, get_args, get_origin, get_type_hints

import attrs

from cloister.commands.cli_option import CliOption, declared, typed
from cloister.commands.names import split_at_commas
from cloister.commands.options import RunOptions
from cloister.core.errors import InvalidInput, UnknownName
from cloister.rows.options import Reading

if TYPE_CHECKING:
    from cloister.run.result import Result

_kinds = cache(get_type_hints)
"""Types of a class's options, evaluated once."""

CONFIG: Final = "config"
"""Parameter of a command that also takes its options from a file."""


def pairs(items: list[str] | None, flag: str) -> dict[str, str]:
    """Parse repeated name=value flags.

    Raises:
        InvalidInput: an item has no name or no value, or a name has two values.
    """
    values = dict[str, str]()
    for item in items or []:
        name, equals, value = item.partition("=")
        if not equals or not name or not value:
            raise InvalidInput(f"{flag} takes name=value, not '{item}'")
        if values.setdefault(name, value) != value:
            raise InvalidInput(f"{flag} {name} was given twice, with different values")
    return values


def listed_values(items: list[str] | None) -> dict[str, list[str]]:
    """Parse repeated column=value,value flags; a value in double quotes may hold commas. Raises: InvalidInput."""
    texts = pairs(items, "--category")
    return {
        name: split_at_commas(text, f"the values of category '{name}' are {text!r}") for name, text in texts.items()
    }


def result_from(path: Path, names: str | None) -> Result:
    """Load a result from a file, with names of its groups if they are given. Raises: InvalidInput, Damaged."""
    from cloister.run.bounds import FILES
    from cloister.run.result import Result

    loaded = Result.load(path)
    if names is None:
        return loaded
    return loaded.named(
        mapping_in(Path(names), "names")
        if names.endswith(FILES)
        else pairs(split_at_commas(names, f"the names are {names!r}"), "--names")
    )


def with_start(reading: Reading, options: RunOptions) -> tuple[Reading, RunOptions]:
    """Fill in columns, categories, missing and k from the warm start, where they are not given.

    Bounds are taken later (``run.layers.warm_start.read``), since some methods take narrower ones.

    Raises:
        CloisterError: the start cannot be read.
    """
    if options.start is None:
        return reading, options
    from cloister.run.layers.warm_start import Start

    start = Start.of(options.start)
    categories = {**start.categories, **(reading.categories or {})}
    columns = start.columns(categories) if reading.columns is None else reading.columns
    missing = start.missing if reading.missing is None else reading.missing
    k = start.k if options.k is None else options.k
    filled = attrs.evolve(reading, columns=columns, categories=categories or None, missing=missing)
    return filled, attrs.evolve(options, k=k)


REPEATED: Mapping[str, Callable[[Any], Any]] = {
    "categories": listed_values,
    "components": lambda items: pairs(items, "--with"),
    "options": lambda items: pairs(items, "--set"),
}
"""Parsers of repeated flags."""


@final
@attrs.frozen
class TakenOptions:
    """Class of options as one command takes it.

    Args:
        kind: the class.
        missing: reason for each option that the command does not take.
        requires: names of options that must be given.
        defaults: descriptions of defaults that differ from the class's, by option.
    """

    kind: type
    missing: Mapping[str, str] = attrs.field(factory=dict)
    requires: tuple[str, ...] = ()
    defaults: Mapping[str, str] = attrs.field(factory=dict)

    @classmethod
    def of(cls, annotation: Any) -> TakenOptions | None:
        """Return the group that a parameter's type stands for; None if it is no class of options."""
        kind, *marks = get_args(annotation) if get_origin(annotation) is Annotated else (annotation,)
        if not (isinstance(kind, type) and attrs.has(kind)):
            return None
        mandatory = tuple(field.name for field in attrs.fields(kind) if field.default is attrs.NOTHING)
        group = cls(kind, requires=mandatory)
        for mark in marks:
            group = mark(group)
        return group

    @property
    def taken(self) -> dict[str, CliOption]:
        """Options that the command takes, by name."""
        return {name: option for name, option in declared(self.kind).items() if name not in self.missing}

    @property
    def _defaults(self) -> dict[str, Any]:
        return {field.name: field.default for field in attrs.fields(self.kind)}

    def parameters(self) -> Iterator[inspect.Parameter]:
        """Yield the parameters of the command, as typer reads them."""
        kinds, defaults = _kinds(self.kind), self._defaults
        for name, option in self.taken.items():
            kind = kinds[name] if option.kind is None else option.kind
            flag = kind is bool or bool in get_args(kind)
            default = inspect.Parameter.empty if name in self.requires else False if flag else defaults[name]
            if name in self.requires:
                kind = next((part for part in get_args(kind) if part is not type(None)), kind)
            yield inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY,
                default=default,
                annotation=Annotated[bool if flag else kind, self._in_help(name, option).option],
            )

    def _in_help(self, name: str, option: CliOption) -> CliOption:
        """Return an option with the default that it has in this command."""
        defaults = "" if name in self.requires else self.defaults.get(name)
        return option if defaults is None else option.with_default(defaults)

    def read(self, values_by_flag: dict[str, Any], config: Mapping[str, Any]) -> Any:
        """Return the options, an instance of the class.

        Args:
            values_by_flag: values of flags by name; those of this group are taken out.
            config: values of a config file by name.
        """
        kinds, defaults, values = _kinds(self.kind), self._defaults, dict[str, Any]()
        for name, option in self.taken.items():
            value = values_by_flag.pop(name)
            configured = as_declared(config.get(name), kinds[name], name)
            if name in REPEATED:
                values[name] = {**(configured or {}), **REPEATED[name](value)}
            elif value is None or value is False:
                values[name] = defaults[name] if configured is None else configured
            else:
                values[name] = value if option.read is None else option.read(value)
        return self.kind(**values)


Mark = Callable[[TakenOptions], TakenOptions]
"""Difference of one command from the class of options."""


def excludes(why: str, *names: str) -> Mark:
    """Mark options that a command does not take. Args: why (shown to whoever gives one), names."""
    return lambda group: attrs.evolve(group, missing={**group.missing, **dict.fromkeys(names, why)})


def requires(*names: str) -> Mark:
    """Mark options that must be given to a command."""
    return lambda group: attrs.evolve(group, requires=group.requires + names)


def default_of(name: str, words: str) -> Mark:
    """Mark an option that has another default in a command."""
    return lambda group: attrs.evolve(group, defaults={**group.defaults, name: words})


Command = Callable[..., None]
GROUPS = dict[str, dict[str, TakenOptions]]()
"""Classes of options that commands take, by the command's name and the parameter's."""


def option_groups(command: Command) -> Command:
    """Return a command whose parameters of classes of options are spread into flags."""
    signature = inspect.signature(command, eval_str=True)
    groups, spread = dict[str, TakenOptions](), list[inspect.Parameter]()
    for parameter in signature.parameters.values():
        group = TakenOptions.of(parameter.annotation)
        if group is None:
            spread.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY))
        else:
            groups[parameter.name] = group
            spread += group.parameters()

    def spread_command(**values: Any) -> None:
        config = dict[str, Any]()
        if CONFIG in values:
            options = {name: o for group in groups.values() for name, o in group.taken.items() if o.in_config}
            config = read_config(values.pop(CONFIG), options, command.__name__)
        read = {name: group.read(values, config) for name, group in groups.items()}
        command(**values, **read)

    GROUPS[command.__name__] = groups
    spread_command.__name__, spread_command.__doc__ = command.__name__, command.__doc__
    spread_command.__module__ = command.__module__
    spread_command.__annotations__ = {}
    vars(spread_command)["__signature__"] = signature.replace(parameters=spread)
    return spread_command


def why_excluded(command: str, flag: str) -> str:
    """Return why a command does not take an option that others take; empty if it has no reason.

    Args:
        command: its name.
        flag: of the option.
    """
    for group in GROUPS.get(command, {}).values():
        for name, option in declared(group.kind).items():
            if flag in option.flags and name in group.missing:
                return f"{command} takes no {flag}: {group.missing[name]}"
    return ""


def read_config(path: Path | None, options: Mapping[str, CliOption], command: str = "") -> dict[str, Any]:
    """Read options from a file, by their names in Python.

    Args:
        path: a .toml or .json file, or None.
        options: those that the file may have.
        command: the command that takes them.

    Raises:
        InvalidInput: the file cannot be read, has an option twice, or one that the command does not take.
        UnknownName: it has an option that does not exist.
    """
    values, names = dict[str, Any](), _names(options)
    for name, value in mapping_in(path, "config").items():
        key = name.replace("-", "_")
        if key not in names:
            if why := why_excluded(command, f"--{key.replace('_', '-')}"):
                raise InvalidInput(f"{why} (in the config file {path})")
            raise UnknownName("option", key, names, "(in the config file)")
        if names[key] in values:
            raise InvalidInput(f"the config file {path} sets {key} twice, by two names: leave one out")
        values[names[key]] = value
    return values


def _names(options: Mapping[str, CliOption]) -> dict[str, str]:
    """Return options by every name that they have: in Python, and as long flags."""
    flags = {flag: name for name, option in options.items() for flag in option.flags if flag.startswith("--")}
    long_names = {flag.lstrip("-").replace("-", "_"): name for flag, name in flags.items()}
    return {name: name for name in options} | long_names


def mapping_in(path: Path | None, noun: str) -> dict[str, Any]:
    """Read a table from a .toml or .json file; empty without a file.

    Args:
        path: the file.
        noun: noun for what it holds, in an error.

    Raises:
        InvalidInput: the file holds no table.
    """
    from cloister.run.bounds import table_from

    loaded = {} if path is None else table_from(path, noun)
    if not isinstance(loaded, dict):
        raise InvalidInput(f"the {noun} file {path} is not a table: give names with their values")
    return loaded


def as_declared(value: Any, kind: Any, name: str) -> Any:
    """Return a config file's value of an option of this type. Raises: InvalidInput: it has another type."""
    kinds = {getattr(part, "__origin__", part) for part in get_args(kind) or (kind,)}
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
        return split_at_commas(value, f"{name} in the config file is {value!r}")
    if not (isinstance(value, list) and all(isinstance(part, str) for part in value)):
        raise InvalidInput(f"{name} in the config file is {value!r}: give a list of names")
    return value


def flag(value: Any, name: str) -> bool:
    """Return an option that is true, false or not given, as a bool. Raises: InvalidInput for anything else."""
    if value not in (None, True, False):
        raise InvalidInput(f"{name} is {value!r}: give true or false")
    return value is True
