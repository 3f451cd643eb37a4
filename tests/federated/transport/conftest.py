"""Certificates for all tests of this folder."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def certs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of two authorities ("ours", "theirs"), and of one that is over ("ended")."""
    from tests.federated.transport.ends import certified  # which needs gRPC

    folder = tmp_path_factory.mktemp("certificates")
    certified(folder / "ours", {"coordinator": 30, "north": 15, "south": 30, "over": 0})
    certified(folder / "theirs", {"coordinator": 30, "north": 30, "south": 30})
    certified(folder / "ended", {"coordinator": 30, "north": 30}, authority_days=0)
    return folder
