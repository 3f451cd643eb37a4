"""Puts a built site beside those of other versions: ``python docs/_ext/versions.py docs/_build/html SITE``.

Each version has a folder of its own name in SITE. ``versions.json`` lists them, the newest first, for the choice in the
pages' margin (``_static/versions.js``), and ``index.html`` leads to the newest that is no release candidate.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

from packaging.version import Version

from cloister._version import __version__


def add(built: Path, site: Path, version: str) -> list[str]:
    """All versions that the site has, this one's pages anew."""
    shutil.rmtree(site / version, ignore_errors=True)
    shutil.copytree(built, site / version)
    found = [path.parent.name for path in site.glob("*/index.html")]
    versions = sorted(found, key=Version, reverse=True)
    newest = next((each for each in versions if not Version(each).is_prerelease), versions[0])
    (site / "versions.json").write_text(json.dumps(versions) + "\n", "utf-8")
    (site / "index.html").write_text(
        f'<!doctype html><meta http-equiv="refresh" content="0; url={newest}/">\n', "utf-8"
    )
    return versions


if __name__ == "__main__":
    built, site = sys.argv[1:]
    print(f"{site} has the versions", *add(Path(built), Path(site), __version__))
