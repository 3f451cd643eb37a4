"""Options of the command line, each declared once, and the commands that take them.

``taking`` spreads every parameter of a command whose type is a class of options (``run.options``) into flags, in the
same words and under the same heading wherever they stand, and reads them back from the flags and from a config file.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Final, final, get_args, get_origin, get_type_hints

import attrs
import typer

from cloister.commands.common import listed_values, number_or_text, pairs, share_or_word, whole
from cloister.commands.config import as_declared, read_config, typed
from cloister.run.options import LEDGER, METHOD, OUTPUT, PRIVACY, Said, declared, said

CONFIG: Final = "config"
"""The parameter of a command that may have its options from a file, too."""

Config = Annotated[
    Path | None,
    typer.Option(help="A .toml or .json file with the same options; flags win.", rich_help_panel=OUTPUT),
]


@final
@attrs.frozen(kw_only=True)
class Wanted:
    """Request of a run: privacy and method. ``run.request.Request`` says what each means."""

    k: Any = said(
        "Number of centres; or a range such as 2..20, of which one run chooses one.",
        METHOD,
        "-k",
        "--k",
        kind=str | None,
        read=number_or_text,
        metavar="<int or range>",
    )
    epsilon: float | None = said("Privacy budget of this run, in nats: for all that a row or person costs.", PRIVACY)
    delta: float | None = said("Probability of failure of the guarantee; well below 1 / rows. Default: 0.", PRIVACY)
    trust: str | None = said(
        "central, local, shuffled or aggregated: fill every slot for an oracle that --with does not name.", PRIVACY
    )
    bounds: Any = said(
        "Public bounds: -1:1, or 0:120,0:1, or a .toml/.json file, or ball:RADIUS; unknown, for all columns or in "
        "place of a pair.",
        PRIVACY,
        kind=str | None,
    )
    public_rows: int | None = said(
        "Public number of rows: a round figure of the right size. Default: 1% of the budget counts them.",
        PRIVACY,
        "--rows",
        metavar="<int>",
        parser=whole,
    )
    rows_per_user: int | None = said(
        "Most rows of one user that count, a public number; --rows is then of these.", PRIVACY
    )
    pooled: bool | None = said(
        "Simulate parties that pool masked sums: each path or pattern is one party's rows.", PRIVACY, "--pooled"
    )
    not_private: bool | None = said("Allow methods that give no guarantee.", PRIVACY, "--not-private")
    method: str | None = said(
        "Which algorithm; see 'cloister list Method'. Default: auto, the one that predicts the least error; of a plan "
        "one-round.",
        METHOD,
    )
    components: Mapping[str, str] | None = said(
        "slot=component, e.g. counts=discrete-laplace. Repeatable.", METHOD, "--with", kind=list[str] | None
    )
    options: Mapping[str, Any] | None = said(
        "option=value, e.g. rounds=5. Repeatable.", METHOD, "--set", kind=list[str] | None
    )
    zoom: Any = said(
        "Pay to find where the rows are within wide bounds: auto (default), off, or a share of the budget.",
        METHOD,
        kind=str | None,
    )
    scale: Any = said(
        "Units of distances: none, bounds (each column's width; default where widths differ by more than two), or a "
        ".toml/.json file with a weight per column.",
        METHOD,
        kind=str | None,
    )
    seed: int | None = said("Repeat the public choices (the start). Never the noise.", METHOD)

    def request(self, parties: int = 0, **others: Any) -> Any:
        """The ``Request``. Args: parties (that pool their rows; 0: none), others (of the request, in place of these).

        Raises: InvalidInput: no k, no epsilon, or something that makes no sense.
        """
        from cloister.core.errors import InvalidInput
        from cloister.run.request import Request

        for name, how in (("k", "-k"), ("epsilon", "--epsilon")):
            if getattr(self, name) is None:
                raise InvalidInput(f"no {name}: give {how}")
        k = self.k if isinstance(self.k, (str, list)) else typed(self.k, int, "k")
        wanted = {
            "k": k,
            "method": "auto" if self.method is None else self.method,
            "epsilon": self.epsilon,
            "delta": self.delta or 0.0,
            "bounds": self.bounds,
            "rows": self.public_rows,
            "rows_per_user": self.rows_per_user,
            "components": self.components or {},
            "options": self.options or {},
            "trust": "aggregated" if parties else self.trust,
            "parties": parties,
            "zoom": share_or_word(self.zoom),
            "scale": self.scale,
            "not_private": bool(self.not_private),
            "seed": self.seed,
        }
        return Request(**wanted | others)


@final
@attrs.frozen(kw_only=True)
class Charged:
    """The ledger that a run is charged to."""

    ledger: str | None = said("File with lifetime budgets; needs --dataset.", LEDGER)
    dataset: str | None = said("Declared name of the data set in the ledger.", LEDGER)
    resume: str | None = said(
        "Id of a run in the ledger that was cut off; of a finished one, to print its result again.",
        LEDGER,
        in_config=False,
    )
    same_rows: bool | None = said(
        "Resume though the rows seem to be others: you say that they are the same.",
        LEDGER,
        "--same-rows",
        in_config=False,
    )

    note: str | None = said(
        "A line of your own on this run, which the ledger shows: at most 200 characters.", LEDGER, in_config=False
    )

    def account(self) -> Any:
        """The ``Account``, if a run is charged to one. Raises: InvalidInput."""
        from cloister.run.account import Account

        return Account.of(self.ledger, self.dataset, self.resume, bool(self.same_rows), self.note)


@final
@attrs.frozen(kw_only=True)
class Printed:
    """Destination of a result."""

    out: str | None = said("Save the result: .json or .npz.", OUTPUT)
    as_json: bool | None = said("Print JSON for programs.", OUTPUT, "--json", in_config=False)


FROM_WORDS: Mapping[str, Callable[[Any], Any]] = {
    "categories": listed_values,
    "components": lambda items: pairs(items, "--with"),
    "options": lambda items: pairs(items, "--set"),
}
"""Readers of repeated flags."""


@final
@attrs.frozen
class Lacks:
    """Options of a class that a command does not take. Args: why (for people, in the table of options), names."""

    why: str
    names: tuple[str, ...]


def lacks(why: str, *names: str) -> Lacks:
    return Lacks(why, names)


@final
@attrs.frozen
class Needs:
    """Options of a class that a command cannot do without."""

    names: tuple[str, ...]


def needs(*names: str) -> Needs:
    return Needs(names)


@final
@attrs.frozen
class TakenOptions:
    """A class of options as one command takes it. Args: kind (the class), lacks, needs."""

    kind: type
    lacks: tuple[Lacks, ...] = ()
    needs: tuple[str, ...] = ()

    @classmethod
    def of(cls, annotation: Any) -> TakenOptions | None:
        """The group that a parameter's type stands for, if any."""
        kind, *marks = get_args(annotation) if get_origin(annotation) is Annotated else (annotation,)
        if not (isinstance(kind, type) and attrs.has(kind)):
            return None
        needed = tuple(name for mark in marks if isinstance(mark, Needs) for name in mark.names)
        return cls(kind, tuple(mark for mark in marks if isinstance(mark, Lacks)), needed)

    @property
    def missing(self) -> dict[str, str]:
        """Why each option that the command does not take is none of its."""
        return {name: each.why for each in self.lacks for name in each.names}

    @property
    def taken(self) -> dict[str, Said]:
        return {name: each for name, each in declared(self.kind).items() if name not in self.missing}

    def parameters(self) -> Iterator[inspect.Parameter]:
        """Parameters of the command, as typer reads them."""
        kinds = get_type_hints(self.kind)
        for name, each in self.taken.items():
            flags = each.flags or (f"--{name.replace('_', '-')}",)
            option = typer.Option(
                *flags, help=each.words, rich_help_panel=each.heading, metavar=each.metavar, parser=each.parser
            )
            kind = kinds[name] if each.kind is None else each.kind
            flag = bool in get_args(kind)
            default = inspect.Parameter.empty if name in self.needs else False if flag else None
            if name in self.needs:
                kind = next(part for part in get_args(kind) if part is not type(None))
            yield inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY,
                default=default,
                annotation=Annotated[bool if flag else kind, option],
            )

    def read(self, given: dict[str, Any], config: Mapping[str, Any]) -> Any:
        """The options. Args: given (flags by name; those of this group are taken out), config (of a file, by name)."""
        kinds, found = get_type_hints(self.kind), dict[str, Any]()
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


def taking(command: Command) -> Command:
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
            config = read_config(given.pop(CONFIG), every)
        read = {name: group.read(given, config) for name, group in groups.items()}
        command(**given, **read)

    GROUPS[command.__name__] = groups
    spread_command.__name__, spread_command.__doc__ = command.__name__, command.__doc__
    spread_command.__module__ = command.__module__
    spread_command.__annotations__ = {}
    vars(spread_command)["__signature__"] = signature.replace(parameters=spread)
    return spread_command
