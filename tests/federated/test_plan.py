"""A plan whose noise can be repeated protects nobody: no program obeys it unless the party says so itself."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("grpc")

from cloister.core.errors import InvalidInput
from cloister.core.randomness import NoiseRng
from cloister.federated.plan import pool_plan, read_pool_plan
from cloister.run.fit import fit, parties
from tests.federated.test_population import facts
from tests.federated.transport.test_service import NAMES, PARTS, arrays, request
from tests.in_process import cloister

SEEDED = """k = 3
epsilon = 1.0
delta = 1e-6
rows = 900
columns = ["0", "1"]
bounds = [[-1, 1], [-1, 1]]
seed = 1
test_noise_seed = 4

"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A seeded plan, certificates and rows."""
    made = cloister("test-certificates", "certs", *(x for n in NAMES for x in ("--party", n)), folder=tmp_path)
    (tmp_path / "plan.toml").write_text(SEEDED + made.stdout)
    np.save(tmp_path / "north.npy", PARTS[0])
    return tmp_path


COMMANDS = {
    "sign": "--party north --cert certs/north.pem",
    "join": "--party north --data north.npy --cert certs/north.pem --connect 127.0.0.1:9 --patience 0.2 --unsigned "
    "--journal north.journal",
    "coordinate": "--listen 127.0.0.1:0 --cert certs/coordinator.pem --unsigned --patience 0.1 --timeout 0.1 "
    "--attempts 1",
}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_seeded_plan_is_refused_without_the_partys_own_flag(name: str, folder: Path) -> None:
    command = name, "plan.toml", *COMMANDS[name].split()
    refused = cloister(*command, folder=folder)
    assert refused.returncode == 2
    assert "test_noise_seed" in refused.stderr
    assert "--not-private" in refused.stderr
    assert not (folder / "plan.signatures").exists()
    assert not (folder / "north.journal").exists()
    allowed = cloister(*command, "--not-private", folder=folder)
    assert "--not-private" not in allowed.stderr
    assert "protects nobody" in allowed.stderr


def test_a_program_that_reads_a_seeded_plan_has_to_say_so(folder: Path) -> None:
    with pytest.raises(InvalidInput, match="test_noise_seed"):
        read_pool_plan(folder / "plan.toml")
    assert read_pool_plan(folder / "plan.toml", not_private=True).noise.seeded


def test_what_a_seeded_plan_releases_says_that_it_is_not_private() -> None:
    members = {name: arrays(part) for name, part in zip(NAMES, PARTS, strict=True)}
    assert fit(request(), parties(members), noise=NoiseRng.for_tests(1)).privacy.headline.startswith(
        "not private: seeded"
    )
    (words,) = pool_plan(facts(test_noise_seed=4)).trust
    assert words.startswith("not private: seeded")
    assert "not private" not in " ".join(pool_plan(facts()).trust)
