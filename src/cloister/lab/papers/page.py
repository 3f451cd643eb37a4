"""Files of a reproduction: a CSV of all figures, a plot of each table, and a page of Markdown that shows them."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from cloister._version import __version__
from cloister.core.errors import InvalidInput, cause
from cloister.lab.machine import machine
from cloister.lab.papers.cells import PaperTable
from cloister.lab.papers.drawing import draw
from cloister.lab.papers.reproduction import Reproduction
from cloister.run.saving import checked_target, put

NOTE = "NOT private: every figure was computed from the rows themselves."


def checked_folder(folder: Path, papers: Sequence[str]) -> Path:
    """Return a folder that can hold the papers' files, made if it does not exist.

    Raises:
        InvalidInput: it cannot be made or written.
        MissingExtra: matplotlib is not installed.
    """
    from cloister.showing.frame import settings

    with settings():
        pass
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInput(f"cannot write to {folder}: {cause(error)}") from error
    for paper in papers:
        for ending in (".csv", ".md"):
            checked_target(folder / f"{paper}{ending}", (ending,), "reproductions")
    return folder


def save(made: Reproduction, folder: Path) -> list[Path]:
    """Write the files of a reproduction, and return their paths. Raises: InvalidInput: one cannot be written."""
    name, records = made.paper.name, made.records()
    plots = [table for table in made.paper.tables if any(record["table"] == table.name for record in records)]
    files = [folder / f"{name}-{table.name.replace(', ', '-').replace(' ', '-')}.svg" for table in plots]
    for table, file in zip(plots, files, strict=True):
        draw(made, table, file)
    put(folder / f"{name}.csv", _csv(records).encode())
    text = "\n".join(_page(made, list(zip(plots, files, strict=True)))) + "\n"
    put(folder / f"{name}.md", text.encode())
    return [folder / f"{name}.md", folder / f"{name}.csv", *files]


def _csv(records: list[dict[str, Any]]) -> str:
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, list(records[0]) if records else ["paper"], lineterminator="\n")
    writer.writeheader()
    writer.writerows(records)
    return text.getvalue()


def _page(made: Reproduction, plots: list[tuple[PaperTable, Path]]) -> Iterator[str]:
    paper = made.paper
    form = "the quick form" if made.quick else "the long form"
    yield f"# {paper.title}\n"
    yield f"{NOTE} Made by `cloister reproduce {paper.name}{' --quick' if made.quick else ''}`, {form}, of cloister "
    yield f"{__version__} on {machine()}.\n"
    yield f"{paper.protocol}\n"
    yield "| claim | published | ours | |\n| --- | --- | --- | --- |"
    for headline in made.headlines:
        yield f"| {headline.claim} | {headline.published} | {headline.ours} | {headline.verdict} |"
    for title, reasons in (("Skipped", made.skipped), ("Refused", made.refused)):
        if reasons:
            yield f"\n{title}:\n"
            yield from (f"* {name}: {reason}" for name, reason in reasons.items())
    for table, file in plots:
        yield f"\n## {table.name.capitalize()}: {table.caption}\n"
        yield f"Published: {table.source or 'no figures'}.\n"
        yield f"![{table.caption}]({file.name})\n"
        yield from _figures([record for record in made.records() if record["table"] == table.name], table)


def _figures(records: list[dict[str, Any]], table: PaperTable) -> Iterator[str]:
    """Yield the lines of a table: a row for each panel and line, a column for each x."""
    at = sorted({record["x"] for record in records})
    yield f"| {table.quantity} | | " + " | ".join(f"{table.x} = {x:g}" for x in at) + " |"
    yield "| --- | --- |" + " --- |" * len(at)
    for panel, line in dict.fromkeys((record["panel"], record["series"]) for record in records):
        of_line = {r["x"]: r for r in records if (r["panel"], r["series"]) == (panel, line)}
        yield f"| {panel} | {line} | " + " | ".join(_cell(of_line.get(x)) for x in at) + " |"


def _cell(record: dict[str, Any] | None) -> str:
    if record is None:
        return ""
    parts = []
    if record["ours"] is not None:
        error = "" if record["standard_error"] is None else f" ± {record['standard_error']:.2g}"
        parts.append(f"{record['ours']:.4g}{error}")
    if record["published"] is not None:
        error = "" if record["published_error"] is None else f" ± {record['published_error']:.2g}"
        parts.append(f"*published {record['published']:.4g}{error}*")
    return "; ".join(parts)
