"""Docstrings, which are plain text with a few habits, as reStructuredText that means the same."""

from __future__ import annotations

import inspect
import re
import textwrap

SECTIONS = ("Args", "Attributes", "Raises", "Returns", "Warns", "Yields")
MARKUP = re.compile(r"(``[^`]+``|(?<![\w*(])\*\*?(?=[^\s*])[^*`|_]+(?<=[^\s*])\*\*?(?![\w*]))")
BULLET = re.compile(r"(\* |- |\d+\. )")


def escaped(text: str) -> str:
    """Text in which nothing is markup but ``code``, *emphasis* and **strong emphasis**."""
    parts = re.split(MARKUP, text)
    return "".join(part if i % 2 else re.sub(r"([*_`|\\])", r"\\\1", part) for i, part in enumerate(parts))


def rst(docstring: str) -> list[str]:
    """Its lines as reStructuredText.

    Paragraphs stay paragraphs, lists stay lists, what is indented by itself is shown as it stands, and a section such
    as ``Args:`` becomes a list of its items.
    """
    lines: list[str] = []
    section, hang = False, ""  # what a list's further paragraphs are indented by
    for block in re.split(r"\n[ ]*\n", inspect.cleandoc(docstring)):
        rows = [row.rstrip() for row in block.strip("\n").split("\n")]
        head = rows[0].rstrip(":")
        if head in SECTIONS and rows[0].endswith(":"):
            lines += [f"**{head}**", "", *_items(rows[1:]), ""]
            section, hang = True, ""
        elif rows[0].startswith("    ") and section and _is_item(rows[0]):
            lines += [*_items(rows), ""]
        elif hang and rows[0].startswith(hang + "    "):
            lines += [*_shown(rows, hang), ""]
        elif hang and rows[0].startswith(hang) and rows[0][len(hang)] != " ":
            lines += [*map(_bullet, rows), ""]
        elif BULLET.match(rows[0].lstrip()):
            rows = textwrap.dedent("\n".join(rows)).split("\n")
            section, hang = False, " " * len(rows[0].split(" ")[0] + " ")
            lines += [*_paragraph(rows), ""]
        elif rows[0].startswith("  "):
            lines += [*_shown(rows), ""]
        else:
            section, hang = False, ""
            lines += [*_paragraph(rows), ""]
    return lines


def _shown(rows: list[str], hang: str = "") -> list[str]:
    """Lines as they stand, as a part of a list if it is indented by ``hang``."""
    return [hang + "::", "", *(hang + "    " + row.removeprefix(hang) for row in rows)]


def _is_item(row: str) -> bool:
    return re.match(r" {4}[\w., *]+(\([^)]*\))?: ", row) is not None


def _items(rows: list[str]) -> list[str]:
    """``name: what it is``, with further lines indented, as a list. What has no name is a paragraph."""
    found: list[list[str]] = []
    for row in rows:
        if row.startswith("        ") and found:
            found[-1].append(row.strip())
        elif _is_item(row) or not found:
            found.append([row.strip()])
        else:
            found[-1].append(row.strip())
    lines = []
    for item in (" ".join(parts) for parts in found):
        name, colon, text = item.partition(": ")
        named = colon and "``" not in name
        lines.append(f"* ``{name}``: {escaped(text)}" if named else f"* {escaped(item)}")
    return lines


def _paragraph(rows: list[str]) -> list[str]:
    """A paragraph, or a list. Lines indented under a line that ends in a colon are shown as they stand."""
    if BULLET.match(rows[0]):
        return [_bullet(row) for row in rows]
    deeper = next((i for i, row in enumerate(rows) if i and row.startswith("  ") and rows[i - 1].endswith(":")), None)
    if deeper is not None:
        return [*_paragraph(rows[:deeper]), "", *_shown(rows[deeper:])]
    first = next((i for i, row in enumerate(rows) if i and BULLET.match(row)), None)
    if first is not None:
        return [*_paragraph(rows[:first]), "", *_paragraph(rows[first:])]
    return escaped("\n".join(row.strip() for row in rows)).split("\n")


def _bullet(row: str) -> str:
    """A line of a list: its mark stays, and what follows is indented to it."""
    found = BULLET.match(row)
    return (
        found[0] + escaped(row[found.end() :]) if found else row[: len(row) - len(row.lstrip())] + escaped(row.strip())
    )
