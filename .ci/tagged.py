"""Refuses to publish what the source does not say that it is: ``python .ci/tagged.py v0.1.0 https://host/owner/name``.

The tag is the version, the changelog has it, and ``[project.urls]`` says that the source is where this is published
from: else the index would send people to somebody else's repository.
"""

import sys
import tomllib
from pathlib import Path


def faults(root: Path, tag: str, address: str) -> list[str]:
    """What does not fit, a line each; none if it may be published."""
    project = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]
    version, named = project["version"], project.get("urls", {}).get("Source")
    checks = {
        f"the tag is {tag}, the version {version}: tag v{version}": tag == f"v{version}",
        f"the source is at {address}, and pyproject.toml says {named}: "
        f'[project.urls] must have Source = "{address}"': named == address,
        f"CHANGELOG.md has no heading {version}": f"\n## {version}\n" in (root / "CHANGELOG.md").read_text("utf-8"),
    }
    return [fault for fault, holds in checks.items() if not holds]


if __name__ == "__main__":
    sys.exit("\n".join(faults(Path(__file__).parents[1], *sys.argv[1:])) or None)
