"""One import for authors of plugins: everything is there, explained, and imported only when it is asked for."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from inspect import isclass, isroutine

import pytest

import cloister.plugin as face


@pytest.mark.parametrize("name", dir(face))
def test_every_name_is_there_and_those_that_are_called_are_explained(name: str) -> None:
    value = getattr(face, name)
    assert value is getattr(import_module(face._HOMES[name]), name)
    assert value.__doc__ or not (isclass(value) or isroutine(value))


def loaded(code: str) -> set[str]:
    """The modules of a new process that runs this."""
    shown = [sys.executable, "-c", f"import sys; {code}; print(*sys.modules)"]
    return set(subprocess.run(shown, capture_output=True, text=True, check=True).stdout.split())


def test_a_manifest_loads_nothing_heavy() -> None:
    assert not loaded("import cloister.plugin") & {"numpy", "scipy", "pluggy", "attr", "cloister.core"}
    assert not loaded("from cloister.plugin import Spec, hookimpl") & {"numpy", "scipy", "opendp"}
