"""Looks over an environment that holds the core alone: it asks for what pyproject.toml says, and nothing else is there.

Run by the environment's own Python: ``.ci/run wheel``.
"""

import re
import sys
import tomllib
from importlib.metadata import distributions, requires
from pathlib import Path

GIVEN = {"pip", "setuptools"}
"""Brought by every new environment."""


def name(requirement: str) -> str:
    return re.sub(r"[-_.]+", "-", re.match(r"[\w.-]+", requirement)[0]).lower()


def main() -> int:
    said = {name(each) for each in tomllib.loads(Path("pyproject.toml").read_text("utf-8"))["project"]["dependencies"]}
    asked = {name(each) for each in requires("cloister") if "extra ==" not in each}
    there = {name(each.metadata["Name"]): each for each in distributions()}
    needed, left = {"cloister"}, said & set(there)
    while left:
        needed |= left
        left = {name(each) for one in left for each in there[one].requires or () if "extra ==" not in each}
        left = left & set(there) - needed
    more = set(there) - needed - GIVEN
    print(
        f"the core asks for {len(said)} packages, which bring {len(needed - said) - 1} more: "
        + ", ".join(sorted(needed - {"cloister"}))
    )
    if asked != said or more:
        print(f"asked for and not in pyproject.toml: {sorted(asked - said)}; needed by nobody: {sorted(more)}")
    return int(asked != said or bool(more))


if __name__ == "__main__":
    sys.exit(main())
