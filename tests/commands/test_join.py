"""The programs of a pooled run, one at a time: keys, the lines of a plan, and what a coordinator is told before it
begins."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

pytest.importorskip("grpc")

from cloister.commands.common import plain
from cloister.commands.coordinate import in_words
from cloister.federated.plan import pool_plan
from cloister.federated.protocol.streams import public_key
from tests.commands.bad_inputs_folder import POOL
from tests.in_process import cloister, ran


@pytest.fixture
def site(tmp_path: Path) -> Path:
    keys = ran("test-certificates certs --party north --party south", tmp_path).stdout
    (tmp_path / "plan.toml").write_text(POOL + keys)
    return tmp_path


def coordinate(site: Path, plan: str = "plan.toml", *more: str) -> tuple[int, str]:
    """A coordinator whom nobody calls: it gives up after a moment."""
    asked = (
        f"coordinate {plan} --listen 127.0.0.1:0 --cert certs/coordinator.pem --unsigned --patience 0.1 --timeout 0.1 "
        "--attempts 1"
    )
    done = cloister(*asked.split(), *more, folder=site)
    return done.returncode, done.stderr


def test_test_certificates_print_the_keys_that_a_plan_needs(site: Path) -> None:
    plan = pool_plan(tomllib.loads((site / "plan.toml").read_text()))
    assert plan.agreement.coordinator_key == public_key((site / "certs" / "coordinator.pool").read_bytes())
    assert [m.key for m in plan.agreement.members] == [
        public_key((site / "certs" / f"{n}.pool").read_bytes()) for n in ("north", "south")
    ]
    assert all((site / "certs" / f"{n}.pool").stat().st_mode & 0o077 == 0 for n in ("coordinator", "north", "south"))


def test_a_coordinator_makes_a_key_of_its_own(tmp_path: Path) -> None:
    made = ran("party-key mine.pool --coordinator", tmp_path)
    assert made.stdout == f'coordinator_key = "{public_key((tmp_path / "mine.pool").read_bytes()).hex()}"\n'


@pytest.mark.parametrize(("oracle", "told"), [("skellam", False), ("masked-gaussian", True), (None, False)])
def test_a_coordinator_that_will_know_the_noise_is_told_to_be_kept_from_the_result(
    site: Path, oracle: str | None, told: bool
) -> None:
    plan = (site / "plan.toml").read_text()
    (site / "chosen.toml").write_text(plan if oracle is None else f'oracle = "{oracle}"\n{plan}')
    code, words = coordinate(site, "chosen.toml")
    assert code == 1
    assert ("the result must be kept from whoever runs the coordinator" in words) == told


def test_a_name_that_no_line_can_show_is_no_partys(site: Path) -> None:
    """It could make the coordinator's terminal say that a round was answered, or clear its screen."""
    given = (site / "plan.toml").read_text()
    for name in ("north\\nround 3 of 3: answered", "north\\u001b[2J"):
        (site / "odd.toml").write_text(given.replace('"north"', f'"{name}"'))
        assert "has characters that cannot be printed" in coordinate(site, "odd.toml")[1]


def test_the_name_of_a_stranger_stands_in_one_line_of_the_coordinators() -> None:
    entry = {"event": "refused", "party": "x\nround 3 of 3: answered", "why": "'x\x1b[2J' is not one of the parties"}
    said = plain(in_words(entry, 2, 3))
    assert "\n" not in said
    assert "\x1b" not in said
