"""Figures inside a page: SVG without what only a file of its own needs, in the page's colours and letters."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from xml.etree import ElementTree

from cloister.plotting.figures import image_of
from cloister.plotting.frame import ALARM, CELL, CENTRE, FAINT, GRID, INK, PAPER
from cloister.plotting.lines import LINES

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLOURS = {
    PAPER: "paper", INK: "ink", FAINT: "faint", GRID: "grid", ALARM: "alarm", CELL: "blue", CENTRE: "red",
    **dict(zip(LINES[2:], ("green", "purple", "brown", "grey"), strict=True)),
}  # fmt: skip
"""The figures' colours, and the page's names for them, which are others in the dark."""

HEX = re.compile(r"#[0-9a-f]{6}", re.IGNORECASE)
LETTERS = re.compile(r"font-family:[^;]*;?")
NAMES = {colour.lower(): f"var(--{name})" for colour, name in COLOURS.items()}


def svg_of(figure: Figure, name: str, title: str) -> str:
    """The figure as an element of a page.

    Args: name (of it on the page: ids of two figures must differ), title (the text alternative).
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
        return HEX.sub(lambda found: NAMES.get(found[0].lower(), found[0]), LETTERS.sub("", value))
    return value.replace("#", f"#{name}-") if key.endswith("href") or value.startswith("url(#") else value
