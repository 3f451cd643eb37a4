"""What a built site must not have: links that lead nowhere, and anything that a browser would fetch from elsewhere."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

FETCHED = {"script": "src", "img": "src", "link": "href", "iframe": "src", "source": "src", "object": "data"}


class Page(HTMLParser):
    """Where a page's links go, what it fetches, and what in it can be linked to."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.fetched: list[str] = []
        self.anchors = {""}
        self.feed(path.read_text("utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.anchors |= {given[name] for name in ("id", "name") if name in given}
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        if tag in FETCHED and FETCHED[tag] in given and given.get("rel") not in ("canonical", "search"):
            self.fetched.append(given[FETCHED[tag]])


def faults(folder: Path) -> list[str]:
    """One line per fault of the site in this folder; none if it is sound."""
    pages = {path: Page(path) for path in sorted(folder.rglob("*.html"))}
    found = []
    for path, page in pages.items():
        here = path.relative_to(folder)
        found += [f"{here}: fetches {link}" for link in page.fetched if "//" in link]
        for link in [*page.links, *page.fetched]:
            name, _, anchor = unquote(link).partition("#")
            if "//" in link or link.startswith(("mailto:", "data:")):
                continue
            target = (path.parent / name.partition("?")[0]).resolve() if name else path
            if not target.is_file():
                found.append(f"{here}: there is no {link}")
            elif target in pages and anchor not in pages[target].anchors:
                found.append(f"{here}: {link} names no part of that page")
    return found
