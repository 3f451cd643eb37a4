"""Options, each declared once: its name, its type, its words, its heading and what it goes with.

An option of several commands is a field (``cli_option``) of a frozen class of options. The flags, the keys of a
config file
and the names in Python follow from it (``commands.taking``), and so does the table of commands in docs/reference.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, final

import attrs
import typer

from cloister.commands.common import few, names, number_or_text, one_budget, share_or_word, whole
from cloister.core.defaults import DELTA
from cloister.core.errors import InvalidInput
from cloister.rows.options import Reading, Where, options_of_rows

ROWS, PRIVACY, METHOD, LEDGER, OUTPUT = "Rows", "Privacy", "Method", "Ledger", "Output"
HEADINGS = ROWS, PRIVACY, METHOD, LEDGER, OUTPUT
"""Headings of ``--help``, in order."""

WAYS = (
    ("rows in memory, or files", "Nothing: threads of this process, on every core. Memory does not grow with files."),
    ("files, and many cores", "--engine processes: a process on each core, which waits for no other."),
    ("files that several machines see", "--engine dask --scheduler tcp://HOST:8786."),
    ("a table of DuckDB", "duckdb:///FILE --table NAME. Parquet files are read faster as files."),
    (
        "a table of PostgreSQL",
        "postgres://USER@HOST/DATABASE --table NAME: by stream, nearly as fast as files, where psycopg's C is "
        "installed; --pass query where rows may not leave the server.",
    ),
    ("a table or a lake of Spark", "In Python, source(table): its workers make the passes where they have cloister."),
    (
        "another database",
        "Its address: by query, if Ibis knows it and it passes a trial of its arithmetic.",
    ),
)
"""Where rows are, and what reads them with the least time."""


@final
@attrs.frozen
class CliOption:
    """The words of an option.

    Args:
        help: for people, in one or two sentences.
        heading: one of ``HEADINGS``, or empty for none.
        flags: on the command line; empty: the field's name, in kebab case. Long ones are names in config files too.
        only: where rows must be for it to apply; None: anywhere.
        kind: type on the command line; None: the field's own.
        read: what makes the field's value of the command line's; None: nothing needs to.
        metavar: what stands for the value in ``--help``; None: the type's name.
        parser: what the command line's parser calls with the text, in place of the type.
        in_config: whether a config file may have it.
    """

    help: str
    heading: str
    flags: tuple[str, ...] = ()
    only: Where | None = None
    kind: Any = None
    read: Callable[[Any], Any] | None = None
    metavar: str | None = None
    parser: Callable[[str], Any] | None = None
    in_config: bool = True

    @property
    def words(self) -> str:
        """The help, with what it applies to."""
        return self.help if self.only is None else f"{self.help} For {self.only} alone."

    def with_default(self, words: str) -> CliOption:
        """The same, with another default in its help; empty: none."""
        return attrs.evolve(self, help=self.help.split(" Default: ")[0] + (f" Default: {words}." if words else ""))

    @property
    def option(self) -> Any:
        """The option as typer takes it."""
        return typer.Option(
            *self.flags, help=self.words, rich_help_panel=self.heading or None, metavar=self.metavar, parser=self.parser
        )


def cli_option(help: str, heading: str, *flags: str, default: Any = None, **more: Any) -> Any:
    """A field that is an option. Args: as of ``CliOption``; default (None: not given)."""
    return attrs.field(default=default, metadata={"said": CliOption(help, heading, flags, **more)})


SEVERAL: Mapping[str | None, dict[str, Any]] = {
    None: {},
    "list": {"kind": str | None, "read": names},
    "table": {"kind": list[str] | None},
}
"""Types of options of rows on the command line, by ``RowOption.written``."""


def declared(kind: type) -> dict[str, CliOption]:
    """The options of a class, by name, each with its flags."""
    if kind is Reading:
        return {
            name: CliOption(each.help, ROWS, (each.flag,), each.only, metavar=each.metavar, **SEVERAL[each.written])
            for name, each in options_of_rows().items()
        }
    found = {field.name: field.metadata["said"] for field in attrs.fields(kind)}
    kebab = {name: (f"--{name.replace('_', '-')}",) for name in found}
    return {name: attrs.evolve(each, flags=each.flags or kebab[name]) for name, each in found.items()}


Config = Annotated[
    Path | None,
    typer.Option(help="A .toml or .json file with the same options; flags win.", rich_help_panel=OUTPUT),
]


Verbose = Annotated[
    bool,
    typer.Option("--verbose", help="List what every question spends of the budget.", rich_help_panel=OUTPUT),
]


@final
@attrs.frozen(kw_only=True)
class Wanted:
    """Request of a run: privacy and method. ``run.request.Request`` says what each means."""

    k: Any = cli_option(
        "Number of centres; or a range such as 2..20, of which one run chooses one.",
        METHOD,
        "-k",
        "--k",
        kind=str | None,
        read=number_or_text,
        metavar="<int or range>",
    )
    epsilon: float | None = cli_option(
        "Privacy budget of this run, in nats: for all that a row or person costs.",
        PRIVACY,
        metavar="<float>",
        parser=one_budget,
    )
    delta: float | None = cli_option(
        f"Probability of failure of the guarantee; well below 1 / rows. Default: {DELTA:g}.", PRIVACY
    )
    trust: str | None = cli_option(
        "central, local, shuffled or aggregated: fill every slot for an oracle that --with does not name.", PRIVACY
    )
    bounds: Any = cli_option(
        "Public bounds: -1:1, or 0:120,0:1, or a .toml/.json file, or ball:RADIUS; unknown, for all columns or in "
        "place of a pair. Of compare also, and by default, rows: read off these rows, which a private run never does.",
        PRIVACY,
        kind=str | None,
    )
    public_rows: int | None = cli_option(
        "Public number of rows: a round figure of the right size. Default: 1% of the budget counts them.",
        PRIVACY,
        "--rows",
        metavar="<int>",
        parser=whole,
    )
    rows_per_user: int | None = cli_option(
        "Most rows of one user that count, a public number; --rows is then of these.", PRIVACY
    )
    pooled: bool | None = cli_option(
        "Simulate parties that pool masked sums: each path or pattern is one party's rows.", PRIVACY, "--pooled"
    )
    not_private: bool | None = cli_option("Allow methods that give no guarantee.", PRIVACY, "--not-private")
    method: str | None = cli_option(
        "Which algorithm; see 'cloister list Method'. Default: auto, the one that predicts the least error; of a plan "
        "one-round.",
        METHOD,
    )
    components: Mapping[str, str] | None = cli_option(
        "slot=component of the --method, e.g. counts=discrete-laplace. Repeatable.",
        METHOD,
        "--with",
        kind=list[str] | None,
    )
    options: Mapping[str, Any] | None = cli_option(
        "option=value of the --method, or NAME.option=value of a part of it, e.g. rounds=5. Repeatable.",
        METHOD,
        "--set",
        kind=list[str] | None,
    )
    zoom: Any = cli_option(
        "Pay to find where the rows are within wide bounds: auto (default), off, or a share of the budget.",
        METHOD,
        kind=str | None,
    )
    scale: Any = cli_option(
        "Units of distances: none, bounds (each column's width; default where widths differ by more than two), or a "
        ".toml/.json file with a weight per column.",
        METHOD,
        kind=str | None,
    )
    describe: list[str] | None = cli_option(
        "Columns that groups are described by, separated by commas: numbers with bounds, booleans, and categories, in "
        "the clustering or beside it. Counts of what each group's rows hold are released with the centres, of at "
        "most 8 columns: those that tell the groups apart best.",
        METHOD,
        kind=str | None,
        read=names,
    )
    describe_words: str | None = cli_option(
        "Column of texts or lists whose words tell groups apart, under a curator: those that many rows of a group "
        "have are released with their counts. Words are told apart by their first ten characters.",
        METHOD,
    )
    most_words: int | None = cli_option(
        "Words of a row that count, a public number. Default: 16.", METHOD, metavar="<int>", parser=whole
    )
    describe_share: float | None = cli_option(
        "Share of the budget for both. Default: 0.15; where both are asked each gets half.", METHOD
    )
    start: str | None = cli_option(
        "Public centres to begin from: an earlier result, or a .toml or .json file with a list of numbers per "
        "column. auto compares them with fresh ones; the method refit takes them to fit, and finds nothing else. A "
        "result also gives what is not given: columns, categories, bounds, k and missing.",
        METHOD,
    )
    seed: int | None = cli_option("Repeat the public choices (the start). Never the noise.", METHOD)

    @property
    def columns_of(self) -> dict[str, Any]:
        """Arguments of ``source`` by name: what else says which columns are read."""
        from cloister.rows.keywords import described

        return {"bounds": self.bounds, "described": described(self.describe, self.describe_words, self.most_words)}

    def request(self, parties: int = 0, **others: Any) -> Any:
        """The ``Request``. Args: parties (that pool their rows; 0: none), others (of the request, in place of these).

        Raises: InvalidInput: no k, no epsilon, or something that makes no sense.
        """
        from cloister.run.request import Request, pooled_trust

        for name, how in (("k", "-k"), ("epsilon", "--epsilon")):
            if getattr(self, name) is None:
                raise InvalidInput(f"no {name}: give {how}")
        given = {name: value for name, value in attrs.asdict(self, recurse=False).items() if value is not None}
        given["k"] = self.k if isinstance(self.k, (str, list)) else typed(self.k, int, "k")
        given["rows"] = given.pop("public_rows", None)
        if "zoom" in given:
            given["zoom"] = share_or_word(self.zoom)
        if given.pop("pooled", False):
            given |= {"trust": pooled_trust(parties, self.trust), "parties": parties}
        return Request(**given | others)


DESCRIBING = "describe", "describe_words", "most_words", "describe_share"
"""Options of a description of groups."""


@final
@attrs.frozen(kw_only=True)
class Charged:
    """The ledger that a run is charged to."""

    ledger: str | None = cli_option("File with lifetime budgets; needs --dataset.", LEDGER)
    dataset: str | None = cli_option("Declared name of the data set in the ledger.", LEDGER)
    resume: str | None = cli_option(
        "Id of a run in the ledger that was cut off; of a finished one, to print its result again.",
        LEDGER,
        in_config=False,
    )
    same_rows: bool | None = cli_option(
        "Resume though the rows seem to be others: you say that they are the same.",
        LEDGER,
        "--same-rows",
        in_config=False,
    )

    note: str | None = cli_option(
        "A line of your own, which the ledger shows: at most 200 characters.", LEDGER, in_config=False
    )

    def account(self) -> Any:
        """The ``Account``, if a run is charged to one. Raises: InvalidInput."""
        from cloister.run.account import Account

        return Account.of(self.ledger, self.dataset, self.resume, bool(self.same_rows), self.note)


@final
@attrs.frozen(kw_only=True)
class Printed:
    """Destination of a result."""

    out: str | None = cli_option("Save the result: .json or .npz.", OUTPUT)
    as_json: bool | None = cli_option("Print JSON for programs.", OUTPUT, "--json", in_config=False)


def by_itself(kind: type, name: str, default: str | None = None) -> Any:
    """An option of a class as typer takes it, for a command that takes few of the others: under no heading, and of
    whatever the command is given. Args: default (in words, where it is another)."""
    cli_option = declared(kind)[name] if default is None else declared(kind)[name].with_default(default)
    return attrs.evolve(cli_option, heading="", only=None).option


SaveTo = Annotated[Path | None, declared(Printed)["out"].option]
EngineName = Annotated[str, by_itself(Reading, "engine")]
Workers = Annotated[int | None, by_itself(Reading, "workers")]
Scheduler = Annotated[str | None, by_itself(Reading, "scheduler")]
Dimension = Annotated[
    int | None,
    typer.Option(
        "--dimension", help="Number of columns, whatever they are called.", rich_help_panel=ROWS, callback=few
    ),
]


def typed(value: Any, kind: Callable[[Any], Any], name: str) -> Any:
    """Convert a number by ``kind`` without changing its value. Raises: InvalidInput."""
    try:
        if isinstance(value, (bool, str)):
            raise TypeError
        if kind is int and int(value) != value:
            raise InvalidInput(f"{name} is {value!r}: give a whole number")
        return kind(value)
    except (TypeError, ValueError, OverflowError):
        raise InvalidInput(f"{name} is {value!r}, which is not a number") from None
