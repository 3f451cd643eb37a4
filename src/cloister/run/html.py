"""Results in notebooks: HTML in which every text is escaped, since names of columns are other people's."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape


def table(head: Sequence[str], rows: Sequence[Sequence[str]], caption: str) -> str:
    """A table of texts. Args: head (one per column), rows (cells), caption (above)."""
    cells = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
    names = "".join(f"<th>{escape(name)}</th>" for name in head)
    return f"<table><caption>{escape(caption)}</caption><thead><tr>{names}</tr></thead><tbody>{cells}</tbody></table>"


def promise(headline: str, text: str, alarm: bool) -> str:
    """A privacy statement: its headline, with the whole text folded away. Args: alarm (nobody is protected)."""
    style = ' style="color: #a01010"' if alarm else ""
    return (
        f"<p><strong{style}>{escape(headline)}</strong></p><details><summary>Privacy statement</summary>"
        f'<pre style="white-space: pre-wrap">{escape(text)}</pre></details>'
    )
