"""Which files reports are read from: each once, however many names it has."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cloister.collection.intake.sources import find_files
from cloister.collection.intake.validator import MESSAGES, REPORTS, SHUFFLED, InputKind, Intake
from cloister.core.errors import Refused


def test_a_file_is_read_once_however_many_names_it_has(tmp_path: Path) -> None:
    """In a folder and by a pattern, and by links of either kind, as snapshots make them."""
    for folder in ("monday", "tuesday"):
        (tmp_path / folder).mkdir()
    first, second = tmp_path / "monday" / "a.reports", tmp_path / "monday" / "b.reports"
    first.write_bytes(b"1")
    second.write_bytes(b"1")
    os.link(first, tmp_path / "tuesday" / "a.reports")
    os.symlink(second, tmp_path / "tuesday" / "c.reports")
    found, others = find_files([tmp_path / "monday", str(tmp_path / "*" / "*.reports"), tmp_path / "tuesday"])
    assert (len(found), others) == (2, 0)
    assert {os.stat(path).st_ino for path in found} == {os.stat(path).st_ino for path in (first, second)}


@pytest.mark.parametrize("kind", [REPORTS, SHUFFLED, MESSAGES], ids=["reports", "shuffled", "messages"])
def test_a_strict_intake_has_an_error_for_every_reason(kind: InputKind) -> None:
    for reason in kind.reasons:
        with pytest.raises(Refused, match="a-file"):
            Intake(kind, strict=True).refuse(reason, 1, "a-file")
