"""Results in notebooks: the promise, and the centres with their noisy sizes."""

from __future__ import annotations

from cloister.run.estimates import center_texts, table
from cloister.run.result import Result

MANY_COLUMNS = 20
"""Most columns that a notebook shows; the result holds all."""


def html_of(result: Result) -> str:
    """A table of centres, with the privacy statement below. Released values only."""
    shown = result.columns[:MANY_COLUMNS]
    more = [] if len(shown) == len(result.columns) else [f"... {len(result.columns) - len(shown)} more"]
    sizes = [] if result.weights is None else ["rows (noisy)"]
    rows = [
        [str(i), *([] if result.weights is None else [f"{result.weights[i]:.0f}"]), *texts[: len(shown)]]
        for i, texts in enumerate(center_texts(result.centers, result.details))
    ]
    caption = f"{len(result.centers)} private centres by {result.method['name']}"
    return f"{table(['centre', *sizes, *shown, *more], rows, caption)}{result.privacy._repr_html_()}"
