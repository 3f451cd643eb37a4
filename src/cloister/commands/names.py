"""Names in one text of the command line, separated by commas."""

from __future__ import annotations

import csv
import io

from cloister.core.errors import InvalidInput


def split_names(text: str | None) -> list[str] | None:
    """Split names at commas. Raises: InvalidInput: as ``split_at_commas``."""
    return None if text is None else split_at_commas(text, f"the names are {text!r}")


def split_at_commas(text: str, described: str) -> list[str]:
    """Split a text at the commas outside double quotes, as cells of CSV.

    Args:
        text: the text.
        described: clause that names the text in an error.

    Raises:
        InvalidInput: quotes do not end where a part does.
    """
    try:
        rows = list(csv.reader(io.StringIO(text, newline=""), skipinitialspace=True, strict=True))
    except csv.Error:
        rows = []
    if text and len(rows) != 1:
        raise InvalidInput(f'{described}: separate them by commas, and quote one that holds a comma: "A, B",C')
    return [part.strip() for part in rows[0]] if rows else [""]
