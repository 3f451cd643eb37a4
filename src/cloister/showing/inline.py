"""Figures that notebooks display under any backend of matplotlib.

Import this only where matplotlib is known to be installed.
"""

from __future__ import annotations

import io

from matplotlib.figure import Figure


class InlineFigure(Figure):
    """Figure without a window, displayed as PNG when it is the value of a cell."""

    def _repr_png_(self) -> bytes:
        image = io.BytesIO()
        self.savefig(image, format="png", dpi=110)
        return image.getvalue()
