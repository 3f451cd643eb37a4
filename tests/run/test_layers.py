"""A run as a stack of layers: equal to what it was, written down in ``layers.json``, and open to one layer more."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.run.layer_cases import EVERY

GOLDEN = Path(__file__).parent / "layers.json"


def plain(value: Any) -> Any:
    """Plain data, with six digits of each number: more of them may differ from machine to machine."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, dict):
        return {str(key): plain(part) for key, part in value.items()}
    return [plain(part) for part in value] if isinstance(value, list | tuple) else value


def hashed(value: Any) -> str:
    return hashlib.sha256(json.dumps(plain(value), sort_keys=True).encode()).hexdigest()[:16]


@pytest.mark.parametrize("name", EVERY)
def test_digests_schedules_texts_and_results_are_as_they_were(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """``CLOISTER_GOLDEN=write`` accepts what changed."""
    monkeypatch.setattr("cloister.run.request.__version__", "0")
    facts = {part: hashed(value) for part, value in EVERY[name]().items()}
    golden = json.loads(GOLDEN.read_text("utf-8")) if GOLDEN.exists() else {}
    if os.environ.get("CLOISTER_GOLDEN") == "write":
        GOLDEN.write_text(json.dumps({**golden, name: facts}, indent=1, sort_keys=True) + "\n", "utf-8")
    else:
        assert facts == golden[name]
