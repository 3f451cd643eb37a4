"""What a comparison found, as text and as a picture. **NOT private.**"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, final

import attrs

from cloister.comparing.figures import Figures
from cloister.comparing.picture import figure_of, save
from cloister.comparing.tables import text_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@final
@attrs.frozen
class Study(Figures):
    """What a comparison found. NOT private. Args: as ``Figures``."""

    def table(self, width: int = 110) -> str:
        """The tables as text, a table per budget. Args: width (characters of a line)."""
        return text_of(self, width)

    def plot(self, path: str | Path | None = None) -> Figure:
        """Cost against budget with error bars, and saved as PNG or SVG if a path is given.

        Raises: MissingExtra: matplotlib is not installed. InvalidInput: the place cannot be written.
        """
        figure = figure_of(self)
        if path is not None:
            save(figure, Path(path))
        return figure
