"""One import for authors of plugins: everything is there, explained, and imported only when it is asked for."""

from __future__ import annotations

import ast
import subprocess
import sys
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import cloister.plugin as face
from cloister.core.errors import UnknownName, WrongComposition
from cloister.plugin import make


def explained(module: str) -> set[str]:
    """The names that a file defines and says something about: a docstring, or a line of text below an assignment."""
    source = import_module(module).__file__
    assert source is not None
    body = ast.parse(Path(source).read_text()).body
    found = {n.name for n in body if isinstance(n, ast.ClassDef | ast.FunctionDef) and ast.get_docstring(n)}
    for one, after in pairwise(body):
        if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
            found |= {n.id for n in ast.walk(one) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    return found


@pytest.mark.parametrize("name", dir(face))
def test_every_name_is_there_and_explained_where_it_is_defined(name: str) -> None:
    value, home = getattr(face, name), import_module(face._HOMES[name])
    assert value is getattr(home, name)
    assert name in explained(home.__name__)


def loaded(code: str) -> set[str]:
    """The modules of a new process that runs this."""
    shown = [sys.executable, "-c", f"import sys; {code}; print(*sys.modules)"]
    return set(subprocess.run(shown, capture_output=True, text=True, check=True).stdout.split())


def test_a_manifest_loads_nothing_heavy() -> None:
    assert not loaded("import cloister.plugin") & {"numpy", "scipy", "pluggy", "attr", "cloister.core"}
    assert not loaded("from cloister.plugin import Spec, hookimpl") & {"numpy", "scipy", "opendp"}


def test_components_are_made_by_their_names() -> None:
    lloyd: Any = make("Method", "fastlloyd", counts="discrete-laplace", rounds=3)
    assert (lloyd.rounds, type(lloyd.counts)) == (3, type(make("FrequencyOracle", "discrete-laplace")))
    with pytest.raises(UnknownName, match="laplace"):
        make("FrequencyOracle", "laplace")
    with pytest.raises(WrongComposition, match="Local"):
        make("Method", "fastlloyd", counts="explicit-histogram")
