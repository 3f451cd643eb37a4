"""One word for one thing: a name that two public classes share stands for two."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

import cloister

SOURCE = Path(cloister.__file__).parent


def test_no_two_public_classes_have_one_name() -> None:
    homes = defaultdict[str, list[str]](list)
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.parse(path.read_text("utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes[node.name].append(str(path.relative_to(SOURCE)))
    assert len(homes) > 200
    assert {name: files for name, files in homes.items() if len(files) > 1} == {}
