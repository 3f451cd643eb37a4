"""Figures that notebooks show by themselves, whichever backend of matplotlib is set, if any. Imported where matplotlib
is known to be installed."""

from __future__ import annotations

import io

from matplotlib.figure import Figure


class InlineFigure(Figure):
    """A figure without a window that is shown as a picture where it is the value of a cell."""

    def _repr_png_(self) -> bytes:
        image = io.BytesIO()
        self.savefig(image, format="png", dpi=110)
        return image.getvalue()
