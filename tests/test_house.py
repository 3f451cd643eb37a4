"""What keeps the house in order: no circle among files, no component that knows another one, no face that grows."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path

import grimp
import pytest

import cloister
from cloister.core.registry.registry import built_in

ROOT = Path(cloister.__file__).parent
FACE = {"__init__", "__main__", "_version", "cli", "metrics", "plugin"}


@pytest.fixture(scope="module")
def imports() -> grimp.ImportGraph:
    """Who imports whom, for types alone too."""
    return grimp.build_graph("cloister", exclude_type_checking_imports=False, cache_dir=None)


def test_no_file_imports_itself_by_way_of_others(imports: grimp.ImportGraph) -> None:
    """Files that nothing is imported by, or that import nothing, are in no circle: without them others are not, until
    none is left."""
    left = set(imports.modules)
    while free := {m for m in left if not imports.find_modules_directly_imported_by(m) & left}:
        left -= free
    assert left == set()


def test_a_component_never_imports_another_one(imports: grimp.ImportGraph) -> None:
    """It receives it in a slot. Which files hold components is the manifest's to say."""
    files = sorted({spec.target.partition(":")[0] for spec in built_in().specs()})
    assert len(files) > 30
    chains = [imports.find_shortest_chain(one, other) for one, other in permutations(files, 2)]
    assert [chain for chain in chains if chain] == []


def test_the_packages_face_holds_what_everybody_uses_and_folders() -> None:
    assert {path.stem for path in ROOT.glob("*.py")} == FACE
