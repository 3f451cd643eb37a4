"""The population of a run: how callers name rows in a database, and whether what a population holds goes with the run.

Whose rows are whose: users may have several each, or one each and a number that they answer by.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any

from cloister.accounting.ledger.run import Run
from cloister.accounting.privacy_target import PrivacyTarget
from cloister.core.aggregated import most_rows, pools
from cloister.core.capabilities import HoldsUsers, Joining, NumbersByName
from cloister.core.errors import CloisterError, InvalidInput, MissingExtra
from cloister.core.lattice import CAP
from cloister.core.population import Population
from cloister.core.questions import Round
from cloister.core.randomness import PublicRng
from cloister.core.registry.registry import registry
from cloister.core.shuffling import check_enough_people
from cloister.core.trust import TRUSTS

LOOKS = {
    **dict.fromkeys(("postgres", "postgresql"), "postgres://user@host:5432/database"),
    "duckdb": "duckdb:///lake.db",
    "pyspark": "pyspark://",
}
"""Looks of addresses that are written without their slashes, by their beginnings."""


def is_address(rows: Any) -> bool:
    """Whether a text is a database's address, such as duckdb:///lake.db, and not a file's path."""
    return isinstance(rows, str) and "://" in rows


STORES = frozenset(
    ("s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "adl", "hdfs", "hf", "http", "https", "ftp", "ftps", "sftp")
)
"""Kinds of addresses that files have, and no database."""


def refuse_foreign_address(rows: Any) -> None:
    """Raise InvalidInput if a text is a file's address elsewhere, such as s3://, or a database's without its slashes,
    such as duckdb:lake.db."""
    for each in rows if isinstance(rows, (list, tuple)) else [rows]:
        scheme = each.lstrip().partition("://")[0].lower() if is_address(each) else None
        if scheme == "file":
            raise InvalidInput("'file://' begins the address of a file: give its path alone")
        if scheme in STORES:
            raise InvalidInput(
                f"'{scheme}://' begins the address of a file elsewhere: fetch it first, and give its path"
            )
        kind = each.partition(":")[0] if isinstance(each, str) and ":" in each else None
        if kind in LOOKS and not is_address(each):
            raise InvalidInput(f"'{kind}:' begins a database's address: write it as {LOOKS[kind]}, with --table NAME")


def is_ibis_table(rows: Any) -> bool:
    """Whether rows are a table of Ibis, or an expression that is one. Imports nothing."""
    return type(rows).__module__.partition(".")[0] == "ibis" and hasattr(rows, "get_backend")


def in_database(rows: Any) -> bool:
    """Whether rows are an address, several things of which one is, or a table of Ibis."""
    several = rows if isinstance(rows, (list, tuple)) else [rows]
    return any(is_address(each) for each in several) or is_ibis_table(rows)


def _is_relation(rows: Any) -> bool:
    return type(rows).__name__ == "DuckDBPyRelation"


def refuse_relation(rows: Any) -> None:
    """Raises: InvalidInput: rows are a relation of DuckDB's own, which has no snapshot and no connection to ask."""
    if _is_relation(rows):
        raise InvalidInput(
            "rows are a relation of DuckDB: give a table of Ibis on the same connection, "
            "ibis.duckdb.from_connection(con).table('NAME'), or the file's address with table='NAME'"
        )


def refuse_lazy(rows: Any) -> None:
    """Raises: InvalidInput: rows are a lazy frame of polars or Dask, whose cells are nowhere yet. Imports nothing."""
    module, kind = type(rows).__module__.partition(".")[0], type(rows).__name__
    how = {
        ("polars", "LazyFrame"): "collect",
        ("dask", "DataFrame"): "compute",
        ("dask_expr", "DataFrame"): "compute",
        ("dask", "Array"): "compute",
    }.get((module, kind))
    if how is not None:
        raise InvalidInput(
            f"rows are a lazy {kind} of {module.partition('_')[0]}: fetch them first, as in rows.{how}(), or save them "
            f"as Parquet and give the files to the command line (cloister fit)"
        )


def refuse_path(rows: Any) -> None:
    """Raises: InvalidInput: rows are a path or an address, where a table is meant."""
    if isinstance(rows, (str, PathLike)):
        how = (
            "give ibis.connect(address).table('NAME'), a table of Ibis"
            if is_address(rows)
            else "read it first, as in pandas.read_parquet(path) or pandas.read_csv(path)"
        )
        raise InvalidInput(
            f"rows are a text or a path, and an estimator takes tables: {how}, or run 'cloister fit', which takes "
            f"paths and addresses and streams them"
        )


def refuse_unordered(rows: Any) -> None:
    """Raises: InvalidInput: rows are in a database, where they have no order that answers could be given in."""
    if is_ibis_table(rows) or _is_relation(rows):
        what, how = ("relation of DuckDB", "df") if _is_relation(rows) else ("table of Ibis", "to_pandas")
        raise InvalidInput(
            f"rows of a {what} have no order: fetch them, as in rows.{how}(), or have the engine label them "
            f"(cloister predict --sql)"
        )


def table_population(
    rows: Any, table: str | None, threads: int | None, others: Mapping[str, Any], arguments: Mapping[str, Any]
) -> Any:
    """The population of a table in a database.

    Args:
        rows: an address, or a list of one, with the name of its ``table``; or a table of Ibis.
        others: options of files by name: none may be given.
        arguments: of the population.

    Raises: CloisterError: it cannot be connected to, or something does not go with it.
    """
    if named := [name for name, value in others.items() if value is not None]:
        raise InvalidInput(f"these rows are in a database: leave out {', '.join(named)}, for files alone")
    users = arguments.get("users")
    if users is not None and not isinstance(users, str):
        raise InvalidInput("users of rows in a database are named by one of the table's columns: give its name")
    kind = registry().load(registry().spec("Population", "sql"))
    if is_ibis_table(rows):
        if table is not None:
            raise InvalidInput("rows are a table of Ibis already: leave table out")
        return kind(rows, **arguments)
    if isinstance(rows, (list, tuple)):
        if len(rows) > 1:
            raise InvalidInput("rows in a database are one table: give one address, and nothing beside it")
        rows = next(iter(rows))
    if not table:
        raise InvalidInput("the rows are in a database: say in which table, --table NAME (table=)")
    try:
        from cloister.rows.databases.connecting import opened
    except ImportError as error:
        raise MissingExtra("ibis", "sql", "reading databases") from error
    found = opened(rows, table, threads)
    try:
        return kind(found, owned=True, **arguments)
    except BaseException:
        found.get_backend().disconnect()
        raise


def check_trust(total: PrivacyTarget, method: str, trust: str | None) -> None:
    """Raises: InvalidInput: a promise to users, where nobody sees which rows are one user's."""
    if total.unit == "users" and trust not in (None, "Central"):
        raise InvalidInput(
            f"'{method}' as composed is {trust}, and rows per user need a curator (Central): nobody else sees which "
            f"rows are one user's. Choose central components, or give every user one row"
        )


def check_users(total: PrivacyTarget, population: Population[Any], trust: str) -> None:
    """Raises: InvalidInput unless rows say whose they are if, and only if, the promise is about users, or users have
    numbers that nothing else gives them. Reads no row."""
    known = isinstance(population, HoldsUsers) and population.has_users
    if _numbered(trust):
        if isinstance(population, NumbersByName):
            if not known:
                population.number_by_name()  # which says what is missing
        elif known:
            raise InvalidInput(
                f"under {trust} trust a row's user is numbered by its place here, and has this row alone: leave the "
                f"user column out"
            )
        return
    if known and total.unit == "rows":
        raise InvalidInput(
            "rows are of users: give the most rows of one user that may count, a public number (--rows-per-user M, "
            "rows_per_user=M)"
        )
    if total.unit == "users" and not known:
        raise InvalidInput(
            "at most so many rows of each user may count, but the rows do not say whose they are: give the column that "
            "does (--user-column NAME, user_column=, or users= for an array)"
        )


def number_users(population: Population[Any], trust: str) -> None:
    """The validation pass over users who are numbered by their names. Raises: InvalidInput: two rows name one."""
    if _numbered(trust) and isinstance(population, NumbersByName):
        population.number_by_name()


def _numbered(trust: str) -> bool:
    """Whether every row is a person with a number of her own, to whom her report belongs."""
    return TRUSTS[trust].relation == "replace one row"


def keep_rows(total: PrivacyTarget, population: Population[Any], seed: PublicRng) -> None:
    """Keep at most so many rows of each user, by coins of the run's public seed: a run that goes on keeps the same."""
    if isinstance(population, HoldsUsers) and total.rows_per_user is not None:
        population.keep(total.rows_per_user, seed.child("rows of users"))


def check_pooling(trust: str, population: Population[Any]) -> None:
    """Check that oracles and population agree on trust: parties pool their rows under Aggregated trust, and only there.

    Raises: InvalidInput: they do not.
    """
    if pools(population) != (trust == "Aggregated"):
        raise InvalidInput(
            "the method as composed adds its noise where parties pool their rows: 'cloister coordinate' and 'cloister "
            "join' run it, and 'cloister fit --pooled' (the population 'parties') simulates it with a file per party"
            if not pools(population)
            else f"parties pool their rows with Aggregated oracles only, and the method as composed is {trust}: "
            f"choose counts and sums from masked-gaussian and skellam"
        )


def validate(population: Population[Any], rounds: Sequence[Round[Any]]) -> None:
    """The validation pass: go or refuse, told to the data holder alone (law 7). Pooled rows have a hard cap on their
    number, and shuffled messages need enough people.

    Raises: InvalidInput: as the population says. Refused: too few people.
    """
    population.check(most_rows(rounds) if pools(population) else CAP)
    for round in rounds:
        check_enough_people(round, population)


def join_others(population: Population[Any], run: Run | None) -> None:
    """Let a party's population join the others', once its own rows are checked and its budget is reserved.

    Nothing that depends on a row is sent before the first round opens: a run that could not begin gives its reservation
    back.
    """
    if not isinstance(population, Joining):
        return
    try:
        population.join()
    except (CloisterError, KeyboardInterrupt):
        if run is not None and not run.record.digests:
            run.finish(())
        raise
