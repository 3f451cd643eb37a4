"""HTML page of a benchmark's results."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cloister.core.errors import MissingExtra
from cloister.lab.bench.report.figures import QUANTITIES, plot_of
from cloister.lab.bench.report.summary import BASELINES, BenchSummary
from cloister.lab.bench.report.text import COSTS
from cloister.showing.frame import printable
from cloister.showing.report import page as report_page

HERE = Path(__file__).parent


def page_of(summary: BenchSummary) -> str:
    """Return one HTML page with badges, tables and plots, which loads nothing from a network.

    Raises: MissingExtra: matplotlib or Jinja2 is not installed.
    """
    try:
        from jinja2 import Environment, FileSystemLoader, StrictUndefined
    except ImportError:
        raise MissingExtra("Jinja2", "plot", "a report") from None
    pages = Environment(
        loader=FileSystemLoader(HERE),
        autoescape=True,  # what entrants say of themselves is untrusted
        undefined=StrictUndefined,
        finalize=_readable,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    styles = {entrant.name: number for number, entrant in enumerate(summary.entrants)}
    plots = [
        {quantity: plot_of(panel, quantity, f"p{number}{quantity}", styles) for quantity in QUANTITIES}
        for number, panel in enumerate(summary.panels)
    ]
    style = (Path(report_page.__file__).with_name("page.css")).read_text("utf-8")
    return pages.get_template("page.html").render(
        summary=summary,
        plots=plots,
        baselines=BASELINES,
        costs=COSTS,
        style=style + (HERE / "page.css").read_text("utf-8"),
    )


def _readable(value: Any) -> Any:
    """Replace what is not printable in text; markup of plots is kept."""
    if not isinstance(value, str) or hasattr(value, "__html__"):
        return value
    return "\n".join(map(printable, value.split("\n")))
