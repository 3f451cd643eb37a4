"""HTML page of a report, with its plots as inline SVG in the page's colours and fonts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

import attrs
import numpy as np

from cloister.core.errors import Damaged, MissingExtra
from cloister.run.result import Result
from cloister.showing.frame import ALARM, FAINT, GRID, GROUPS, INK, PAPER, group_colour, printable
from cloister.showing.parallel import Parallel, extent, most_varying, relative_positions
from cloister.showing.plot_data import Curve, Heading, Map, domain_of
from cloister.showing.plots import figure_of, image_of
from cloister.showing.profile import COUNTS_NOTE, profile_of
from cloister.showing.projection import TREE
from cloister.showing.report.budget import lines_of
from cloister.showing.report.clusters import cards_of, table_of
from cloister.showing.report.promise import in_a_line, meaning, warnings

if TYPE_CHECKING:
    from matplotlib.figure import Figure


COLOURS = {
    PAPER: "paper",
    INK: "ink",
    FAINT: "faint",
    GRID: "grid",
    ALARM: "alarm",
    **dict(zip(GROUPS, ("blue", "red", "green", "purple", "brown", "grey", "indigo", "wine"), strict=True)),
}
"""Colours of the plots, and their names on the page, whose values differ in dark mode."""

HEX = re.compile(r"#[0-9a-f]{6}", re.IGNORECASE)
LETTERS = re.compile(r"font-family:[^;]*;?")
NAMES = {colour.lower(): f"var(--{name})" for colour, name in COLOURS.items()}


def svg_of(figure: Figure, name: str, title: str) -> str:
    """Return a figure as an inline SVG element.

    Args:
        figure: to draw.
        name: prefix of its ids, unique on the page.
        title: the text alternative.
    """
    root = ElementTree.fromstring(image_of(figure, ".svg", title))
    for parent in list(root.iter()):
        for child in list(parent):
            if _tag(child) in ("metadata", "style"):
                parent.remove(child)
    for element in root.iter():
        element.tag = _tag(element)
        element.attrib = {key.rpartition("}")[2]: _value(key, value, name) for key, value in element.attrib.items()}
    root.attrib = {"viewBox": root.attrib["viewBox"], "role": "img"}
    return ElementTree.tostring(root, "unicode")


def _tag(element: ElementTree.Element) -> str:
    return element.tag.rpartition("}")[2]


def _value(key: str, value: str, name: str) -> str:
    if key == "id":
        return f"{name}-{value}"
    if key == "style":
        return HEX.sub(lambda match: NAMES.get(match[0].lower(), match[0]), LETTERS.sub("", value))
    return value.replace("#", f"#{name}-") if key.endswith("href") or value.startswith("url(#") else value


HERE = Path(__file__).parent


@attrs.frozen
class Picture:
    """Figure of the page. Args: svg (as markup), caption."""

    svg: str
    caption: str


def html_of(result: Result, axes: Sequence[str] | None = None) -> str:
    """Return a report of a result as one HTML page that loads nothing from a network.

    Args:
        result: of any method.
        axes: names of two columns for the map.

    Raises:
        InvalidInput, UnknownName: no such two columns.
        MissingExtra: matplotlib or Jinja2 is not installed.
        Damaged: the result lacks its facts, or they are invalid.
    """
    try:
        from jinja2 import Environment, FileSystemLoader, StrictUndefined
    except ImportError:
        raise MissingExtra("Jinja2", "plot", "a report") from None
    pages = Environment(
        loader=FileSystemLoader(HERE),
        autoescape=True,  # names of columns and clusters are untrusted
        undefined=StrictUndefined,
        finalize=_readable,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    heading = Heading.of(result, "Report")  # raises Damaged where the facts are missing
    try:
        return pages.get_template("page.html").render(_facts(result, heading, axes))
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise Damaged(f"this result cannot be reported: {error!r}") from error


def _facts(result: Result, heading: Heading, axes: Sequence[str] | None) -> dict[str, Any]:
    """Return the variables of the page's template."""
    privacy, profile = result.privacy, profile_of(result)
    return {
        "result": result,
        "privacy": privacy,
        "heading": heading,
        "k": len(result.centers),
        "warnings": [
            *warnings(privacy, result.details.get("auto")),
            *(("DO NOT TRUST", f"{text[0].upper()}{text[1:]}.") for text in profile.untrusted),
            *(("FEW ROWS HAVE A LISTED VALUE", f"{text}.") for text in profile.warnings),
            *(("A CLUSTER MAY LIE FURTHER OUT", f"{text[0].upper()}{text[1:]}.") for text in profile.beyond),
        ],
        "in_a_line": in_a_line(privacy),
        "meaning": meaning(privacy),
        "colour": lambda number: NAMES[group_colour(number).lower()],
        "lines": lines_of(privacy.spends),
        "maps": _maps(result, axes),
        "parallel": _parallel(result),
        "curve": _curve(result),
        "cards": cards_of(result, profile),
        "table": table_of(result, profile),
        "profile": profile,
        "counted": COUNTS_NOTE,
        "errors": profile.clusters[0].center_error is not None,
        "style": (HERE / "page.css").read_text("utf-8"),
        "parts": list(_parts("method", result.method)),
    }


def _maps(result: Result, axes: Sequence[str] | None) -> list[Picture]:
    """Return the map, and a public projection of more than two columns."""
    d = len(result.columns)
    if d <= 2:
        return [_map(Map.of(result, axes), "map")]
    low, high = extent(domain_of(result))
    heights, numeric = relative_positions(result.centers, low, high), result.numeric
    two = [result.columns[numeric[j]] for j in most_varying(heights[:, numeric], 2)]
    projection = _map(Map.of(result, project=True), "projection")
    if axes is not None:
        return [_map(Map.of(result, axes), "map", ", in the two columns you chose"), projection]
    if any(result.columns.count(name) > 1 for name in two):  # columns that share a name cannot be chosen
        return [projection]
    of = " of numbers" if len(numeric) < d else ""
    return [_map(Map.of(result, two), "map", f", the two columns{of} in which the centres vary most"), projection]


def _map(picture: Map, name: str, why: str = "") -> Picture:
    """Return the map with a caption that says what it shows."""
    columns = " and ".join(name for name in picture.view.names if name)
    plane = {None: columns, TREE: TREE}.get(picture.view.projected, "the two directions in which the centres vary most")
    sentences = [f"The clusters in {plane}{why}."]
    if picture.weights is not None:
        sentences.append("A dot's area grows with its cluster's noisy size.")
    if len(picture.cells):
        omitted = "" if len(picture.cells) == picture.all_cells else f" The {len(picture.cells):,} heaviest are drawn."
        sentences.append(f"Bluer cells of the released tree have more rows per area.{omitted}")
    if len(picture.paths) > 1:
        sentences.append("Thin lines are the paths of the centres over the rounds.")
    return _drawn(picture, name, " ".join(sentences))


def _parallel(result: Result) -> Picture | None:
    if len(result.columns) <= 2:  # the map shows all
        return None
    lines = Parallel.of(result)
    ends = "over the interval that the run released" if "unseen" in result.details else "from bound to bound"
    caption = f"A line per cluster: {lines.text()}, each column {ends}."
    return _drawn(lines, "parallel", caption)


def _curve(result: Result) -> Picture | None:
    if not any(np.size(result.details.get(name, ())) for name in ("curve", "costs")):
        return None
    curve = Curve.of(result)
    words = f"The cost with {curve.numbers[0]} to {curve.numbers[-1]} centres, from released values. "
    if not curve.suggested:
        return _drawn(curve, "curve", f"{words}Where the line is flat, more centres reduce it little.")
    why = str(result.details["curve"].get("why", ""))
    return _drawn(curve, "curve", f"{words}It suggests k = {curve.k}{f': {why}' if why else ''}.")


def _drawn(picture: Map | Curve | Parallel, name: str, caption: str) -> Picture:
    from markupsafe import Markup

    return Picture(Markup(svg_of(figure_of(picture, bare=True), name, caption)), caption)


def _parts(slot: str, config: dict[str, Any]) -> Any:
    """Yield the slot, name and options (as text) of a component and of all components in its slots."""
    options = ", ".join(f"{name} = {value}" for name, value in config.get("options", {}).items() if value is not None)
    yield slot, config["name"], options
    for name, inner in config.get("slots", {}).items():
        yield from _parts(f"{slot}.{name}" if slot != "method" else name, inner)
    for added in ("frame", "description", "words"):
        if added in config:
            yield from _parts(added, config[added])


def _readable(value: Any) -> Any:
    """Replace control characters and lone surrogates in untrusted text: no page can hold them."""
    from markupsafe import Markup

    if isinstance(value, str) and not isinstance(value, Markup):
        return "\n".join(printable(line) for line in value.split("\n"))
    return value
