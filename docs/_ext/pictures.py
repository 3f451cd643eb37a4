"""Pictures that cloister draws itself: figures of which pyplot, whose figures the gallery shows, knows nothing."""

from __future__ import annotations

from typing import Any

from matplotlib import pyplot
from matplotlib.figure import Figure
from sphinx_gallery.scrapers import figure_rst, matplotlib_scraper


def scraped(block: Any, variables: dict[str, Any], configuration: dict[str, Any], **further: Any) -> str:
    """The figures of a part of an example, saved and named. pyplot's are matplotlib's own scraper's."""
    if pyplot.get_fignums():
        return matplotlib_scraper(block, variables, configuration, **further)
    figure = variables["example_globals"].get("figure")
    if not isinstance(figure, Figure):
        return ""
    path = next(variables["image_path_iterator"])
    figure.savefig(path, dpi=100)
    return figure_rst([path], configuration["src_dir"])
