"""Options that commands share, each declared once, and the ways to read rows."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, final

import attrs
import typer

from cloister.commands.cli_option import (
    LEDGER,
    METHOD,
    OUTPUT,
    PRIVACY,
    REPORTS,
    ROWS,
    borrowed,
    cli_option,
    declared,
    typed,
)
from cloister.commands.common import (
    check_dimension,
    number_or_text,
    parse_epsilon,
    parse_whole,
    share_or_word,
)
from cloister.commands.names import split_names
from cloister.core.defaults import DELTA
from cloister.core.errors import InvalidInput
from cloister.rows.options import Reading

WAYS = (
    ("rows in memory, or files", "Nothing: threads of this process use every core. Memory does not grow with files."),
    ("files, and many cores", "--engine processes: one process per core, none of which waits for another."),
    ("files that several machines see", "--engine dask --scheduler tcp://HOST:8786."),
    ("a table of DuckDB", "duckdb:///FILE --table NAME. Parquet files are faster when read as files."),
    (
        "a table of PostgreSQL",
        "postgres://USER@HOST/DATABASE --table NAME. Reads by stream, nearly as fast as files if psycopg's C "
        "extension is installed; --pass query if rows may not leave the server.",
    ),
    ("a table or a lake of Spark", "In Python, source(table): Spark's workers make the passes if they have cloister."),
    ("another database", "Its address: reads by query, if Ibis supports it and its arithmetic passes a trial."),
)
"""Places where rows may be, and the fastest way to read them there."""


Config = Annotated[
    Path | None,
    typer.Option(help="Take options from this .toml or .json file; flags override it.", rich_help_panel=OUTPUT),
]


Verbose = Annotated[
    bool,
    typer.Option("--verbose", help="Also list the budget that each question spends.", rich_help_panel=OUTPUT),
]


@final
@attrs.frozen(kw_only=True)
class RunOptions:
    """Privacy and method of a run; ``run.request.Request`` says what each means."""

    k: Any = cli_option(
        "Number of centres, or a range such as 2..20 from which the run chooses.",
        METHOD,
        "-k",
        "--k",
        kind=str | None,
        read=number_or_text,
        metavar="<int or range>",
    )
    epsilon: float | None = cli_option(
        "Privacy budget epsilon of the whole run, in nats.", PRIVACY, metavar="<float>", parser=parse_epsilon
    )
    delta: float | None = cli_option(
        f"Probability that the guarantee fails; choose it well below 1 / rows. Default: {DELTA:g}.", PRIVACY
    )
    trust: str | None = cli_option(
        "Trust model: central, local, shuffled or aggregated. Chooses the oracles of all slots that --with leaves "
        "open.",
        PRIVACY,
    )
    bounds: Any = cli_option(
        "Public bounds of the columns: -1:1 for all, 0:120,0:1 for each, a .toml or .json file, or ball:RADIUS; "
        "'unknown' in place of a pair, or of everything. For compare also 'rows' (default): the rows' own extremes, "
        "which a private run never reads.",
        PRIVACY,
        kind=str | None,
    )
    public_rows: int | None = cli_option(
        "Approximate number of rows, as a public figure. Default: 1% of the budget counts them.",
        PRIVACY,
        "--rows",
        metavar="<int>",
        parser=parse_whole,
    )
    rows_per_user: int | None = cli_option(
        "Maximum number of rows kept per user, a public number; --rows then counts the kept rows.", PRIVACY
    )
    pooled: bool | None = cli_option(
        "Simulate aggregated trust: each path or pattern is one party's rows, and parties add up masked sums.",
        PRIVACY,
        "--pooled",
    )
    not_private: bool | None = cli_option("Allow methods that give no guarantee.", PRIVACY, "--not-private")
    method: str | None = cli_option(
        "Clustering method; 'cloister list Method' lists them. Default: auto, which picks the one with the smallest "
        "predicted error; for a plan one-round.",
        METHOD,
    )
    components: Mapping[str, str] | None = cli_option(
        "Component in a slot of the --method, as SLOT=COMPONENT: counts=discrete-laplace. Repeatable.",
        METHOD,
        "--with",
        kind=list[str] | None,
    )
    options: Mapping[str, Any] | None = cli_option(
        "Option of the --method, as OPTION=VALUE (rounds=5), or of a component in one of its slots, as "
        "SLOT.OPTION=VALUE (start.depth=6). Repeatable.",
        METHOD,
        "--set",
        kind=list[str] | None,
    )
    zoom: Any = cli_option(
        "Share of the budget spent on locating the rows within wide bounds, or off. Default: auto, which chooses the "
        "share from public figures.",
        METHOD,
        kind=str | None,
    )
    scale: Any = cli_option(
        "Units of distances: none (the columns' own), bounds (the width of each column's bounds), or a .toml or .json "
        "file with a weight per column. Default: bounds if widths differ by more than a factor of two, otherwise none.",
        METHOD,
        kind=str | None,
    )
    describe: list[str] | None = cli_option(
        "Columns to describe groups by, separated by commas: numbers with bounds, booleans and categories, whether "
        "clustered or not. Private histograms of each group are released with the centres, for up to 8 columns that "
        "separate the groups best.",
        METHOD,
        kind=str | None,
        read=split_names,
    )
    describe_words: str | None = cli_option(
        "Column of texts or lists to describe groups by, under central trust: keywords that many rows of a group "
        "hold are released with their counts. Keywords are compared by their first ten characters.",
        METHOD,
    )
    most_words: int | None = cli_option(
        "Maximum number of keywords counted per row, a public number. Default: 16.",
        METHOD,
        metavar="<int>",
        parser=parse_whole,
    )
    describe_share: float | None = cli_option(
        "Share of the budget for --describe and --describe-words together (half each). Default: 0.15.", METHOD
    )
    start: str | None = cli_option(
        "Public centres for a warm start: an earlier result, or a .toml or .json file with a list of numbers per "
        "column. --method auto also tries fresh centres and compares; --method refit only improves these. A result "
        "also supplies columns, categories, bounds, k and missing, unless they are given.",
        METHOD,
    )
    seed: int | None = cli_option("Seed of the public choices, such as the start. Never seeds the noise.", METHOD)

    @property
    def columns_of(self) -> dict[str, Any]:
        """Arguments of ``source`` that also decide which columns are read, by name."""
        from cloister.rows.keywords import described

        return {"bounds": self.bounds, "described": described(self.describe, self.describe_words, self.most_words)}

    def request(self, parties: int = 0, **overrides: Any) -> Any:
        """Return the ``Request``.

        Args:
            parties: number of parties that aggregate their rows; 0: none.
            overrides: fields of the request, in place of these.

        Raises:
            InvalidInput: k or epsilon is not given, or some option makes no sense.
        """
        from cloister.core.registry.making import drafted
        from cloister.run.request import Request, pooled_trust

        for name, flag in (("k", "-k"), ("epsilon", "--epsilon")):
            if getattr(self, name) is None:
                raise InvalidInput(f"no {name}: give {flag}")
        values = {name: value for name, value in attrs.asdict(self, recurse=False).items() if value is not None}
        values["k"] = self.k if isinstance(self.k, (str, list)) else typed(self.k, int, "k")
        values["rows"] = values.pop("public_rows", None)
        if "zoom" in values:
            values["zoom"] = share_or_word(self.zoom)
        if values.pop("pooled", False):
            values |= {"trust": pooled_trust(parties, self.trust), "parties": parties}
        values = values | overrides
        method = drafted(values.get("method", "auto"), values.pop("components", None), values.pop("options", None))
        request: dict[str, Any] = values | {"method": method}
        return Request(**request)


DESCRIBING = "describe", "describe_words", "most_words", "describe_share"
"""Options of histograms and keywords of groups."""


@final
@attrs.frozen(kw_only=True)
class LedgerOptions:
    """Ledger that a run is charged to."""

    ledger: str | None = cli_option("Ledger file that the run is charged to; needs --dataset.", LEDGER)
    dataset: str | None = cli_option("Name of the data set in the ledger.", LEDGER)
    resume: str | None = cli_option(
        "Id of an interrupted run in the ledger, to finish it; or of a finished run, to print its result again.",
        LEDGER,
        in_config=False,
    )
    same_rows: bool | None = cli_option(
        "Resume although the rows look different: you assert that they are the same.",
        LEDGER,
        "--same-rows",
        in_config=False,
    )
    note: str | None = cli_option(
        "Text of at most 200 characters that the ledger shows next to the run.", LEDGER, in_config=False
    )

    def account(self) -> Any:
        """Return the ``Account`` that a run is charged to, if any. Raises: InvalidInput."""
        from cloister.run.account import Account

        return Account.of(self.ledger, self.dataset, self.resume, bool(self.same_rows), self.note)


@final
@attrs.frozen(kw_only=True)
class OutputOptions:
    """Destination of a result."""

    out: str | None = cli_option("Save the result to this file: .json or .npz.", OUTPUT)
    as_json: bool | None = cli_option("Print JSON for programs.", OUTPUT, "--json", in_config=False)


@final
@attrs.frozen(kw_only=True)
class ReportOptions:
    """Reading of people's reports, and the checks that they must pass."""

    strict: bool = cli_option(
        "Stop at the first file, report or person that would be rejected.", REPORTS, "--strict", default=False
    )
    accept_shares: bool = cli_option(
        "Decode even if response rates or report statistics differ from the plan by more than chance.",
        REPORTS,
        "--accept-shares",
        default=False,
    )
    robust: float | None = cli_option(
        "Assume this fraction of reports is malicious (such as 0.01), and discard what it could fabricate. Groups as "
        "small as that are lost.",
        REPORTS,
        metavar="SHARE",
    )
    engine: str = borrowed(Reading, "engine", REPORTS, default="serial")
    workers: int | None = borrowed(Reading, "workers", REPORTS)
    scheduler: str | None = borrowed(Reading, "scheduler", REPORTS)

    def arguments(self, *but: str) -> dict[str, Any]:
        """Return the options by name. Args: but (those to leave out)."""
        return {name: value for name, value in attrs.asdict(self).items() if name not in but}


SaveTo = Annotated[Path | None, declared(OutputOptions)["out"].option]
Dimension = Annotated[
    int | None,
    typer.Option(
        "--dimension", help="Number of columns, if they have no names.", rich_help_panel=ROWS, callback=check_dimension
    ),
]
