"""A plan whose noise can be repeated protects nobody: no program obeys it unless the party says so itself."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("grpc")

from cloister.core.errors import InvalidInput
from cloister.core.randomness import NoiseRng
from cloister.federated.plan import pool_plan, read_pool_plan
from cloister.run.fit import fit
from tests.federated.pooling import TOML, lay_out, pool, request
from tests.federated.test_population import facts
from tests.in_process import cloister

SEEDED = "test_noise_seed = 4\n" + TOML


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return lay_out(tmp_path_factory.mktemp("seeded"), SEEDED)


COMMANDS = {
    "sign": "--party north --cert certs/north.pem",
    "join": "--party north --data north.csv --cert certs/north.pem --connect 127.0.0.1:9 --patience 0.2 --unsigned "
    "--journal north.journal",
    "coordinate": "--listen 127.0.0.1:0 --cert certs/coordinator.pem --unsigned --patience 0.1 --timeout 0.1 "
    "--attempts 1",
}


def test_a_seeded_plan_is_refused_without_the_partys_own_flag(folder: Path) -> None:
    for name, flags in COMMANDS.items():
        refused = cloister(name, "plan.toml", *flags.split(), folder=folder)
        assert refused.returncode == 2
        assert "test_noise_seed" in refused.stderr
        assert "--not-private" in refused.stderr
    assert not {"plan.signatures", "north.journal"} & {path.name for path in folder.iterdir()}
    for name, flags in COMMANDS.items():
        allowed = cloister(name, "plan.toml", *flags.split(), "--not-private", folder=folder)
        assert "--not-private" not in allowed.stderr
        assert "protects nobody" in allowed.stderr


def test_a_program_that_reads_a_seeded_plan_has_to_say_so(folder: Path) -> None:
    with pytest.raises(InvalidInput, match="test_noise_seed"):
        read_pool_plan(folder / "plan.toml")
    assert read_pool_plan(folder / "plan.toml", not_private=True).noise.seeded


def test_what_a_seeded_plan_releases_says_that_it_is_not_private() -> None:
    seeded = fit(request(rounds=1), pool(), noise=NoiseRng.for_tests(1))
    assert seeded.privacy.headline.startswith("not private: seeded")
    (words,) = pool_plan(facts(test_noise_seed=4)).trust
    assert words.startswith("not private: seeded")
    assert "not private" not in " ".join(pool_plan(facts()).trust)
    assert not pool_plan(facts()).noise.seeded


def test_a_plan_that_is_nested_too_deeply_is_refused(tmp_path: Path) -> None:
    (tmp_path / "plan.toml").write_text("k = " + "[" * 100_000)
    with pytest.raises(InvalidInput, match="not valid TOML"):
        read_pool_plan(tmp_path / "plan.toml")
