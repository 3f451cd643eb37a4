"""The figures of the docs, a page at a time: made again, or only looked at whether the code has changed since.

    python benchmarks/pages.py docs/explanation/trees.md    the machine, and then all that the page quotes
    python benchmarks/pages.py --stale                      pages whose figures are older than the code they measure

``pages.toml`` says what prints a page's figures and what code they measure. A page's figures are as old as the last
commit that changed a line of a table in it (if it has none, a line with a number); code has changed if a later commit
added, changed or removed a file there. Moving is no change, of a file as of a table to another page. That a figure is
old does not say that it is wrong.
"""

from __future__ import annotations

import argparse
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
PAGES: dict[str, dict[str, Any]] = tomllib.loads((HERE / "pages.toml").read_text("utf-8"))


def git(root: Path, *arguments: str) -> list[str]:
    """Lines that git prints."""
    done = subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def aged(root: Path, page: str) -> tuple[str, str]:
    """The commit that a page's figures are from, and its day. A table from another page is as old as it was there."""
    told = "\n".join(git(root, "blame", "-C", "--line-porcelain", "HEAD", "--", page))
    lines = re.findall(r"^(\w{40}) (?:.*\n)*?committer-time (\d+)\n(?:.*\n)*?\t(.*)$", told, re.MULTILINE)
    figures = r"\|.*\d" if any(re.match(r"\|.*\d", text) for *_, text in lines) else r".*\d"
    _, commit = max((int(time), commit) for commit, time, text in lines if re.match(figures, text))
    return commit, git(root, "log", "-1", "--format=%cs", commit)[0]


def stale(root: Path, pages: dict[str, dict[str, Any]]) -> Iterator[tuple[str, str, list[str]]]:
    """Pages whose figures are older than the code: the day of the figures, and the later commits, newest first."""
    for page, facts in pages.items():
        commit, day = aged(root, page)
        changed = ("log", "--format=%h %cs %s", "--find-renames", "--diff-filter=AMD", f"{commit}..HEAD", "--")
        if later := git(root, *changed, *facts["measures"]):
            yield page, day, later


def run(page: str) -> int:
    """The page's commands, one after the other, after a line that names the machine. The first failure's exit code."""
    from cloister.lab.machine import machine

    print(f"{page}, on {machine()}", flush=True)
    scripts = [
        (
            f"python benchmarks/{command}",
            [str(HERE / part) if part.endswith(".py") else part for part in shlex.split(command)],
        )
        for command in PAGES[page].get("run", ())
    ]
    papers = [
        (f"cloister reproduce {paper}", ["-m", "cloister", "reproduce", paper])
        for paper in PAGES[page].get("reproduce", ())
    ]
    for told, arguments in (*scripts, *papers):
        print(f"\n$ {told}", flush=True)
        if code := subprocess.run([sys.executable, *arguments], check=False).returncode:
            return code
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("page", nargs="?", choices=PAGES, help="a page of docs, to make its figures again")
    what.add_argument("--stale", action="store_true", help="the pages whose figures are older than the code")
    asked = parser.parse_args()
    if not asked.stale:
        return run(asked.page)
    for page, day, later in stale(HERE.parent, PAGES):
        print(f"{page}: figures of {day}, {len(later)} later changes of what they measure, the last: {later[0]}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
