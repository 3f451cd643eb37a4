"""Whatever method asks only enumerable buckets runs pooled, with the curator's results; plans say what is wrong with
them; and one whose noise can be repeated protects nobody: no program obeys it unless the party says so itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cloister.core.errors import InvalidInput, UnknownName
from cloister.core.randomness import NoiseRng
from cloister.federated.plan import FederatedPlan, _parts, pool_plan, read_pool_plan
from cloister.federated.protocol.agreement import PUBLISHED
from cloister.federated.protocol.streams import new_private_key, public_key
from cloister.run.fit import fit
from tests.federated.pooling import PARTS, ROWS, TOML, arrays, central, lay_out, pool, request
from tests.in_process import cloister


@pytest.mark.parametrize(
    ("method", "components", "masks", "cuts"),
    [
        ("fastlloyd", {}, "pairwise", [1, 10, 899]),
        ("gauss-lloyd", {}, "shared", [450]),
        ("one-round", {"tree": "grid"}, "pairwise", [300, 500]),
    ],
)
def test_methods_on_enumerable_buckets_give_the_curators_result_bit_for_bit(
    method: str, components: dict[str, str], masks: str, cuts: list[int]
) -> None:
    parts = np.split(ROWS, cuts)
    options = {"counts.parties": len(parts), "sums.parties": len(parts)}
    if method == "fastlloyd":
        options["rounds"] = 4
    curators = "discrete-gaussian"
    whole = central(method, components={"counts": curators, "sums": curators, **components})
    for oracle, noise in (("masked-gaussian", NoiseRng.for_tests(2)), ("skellam", None)):
        slots = {"counts": oracle, "sums": oracle, **components}
        pooled = fit(request(method=method, components=slots, options=options), pool(parts, masks), noise=noise)
        assert (pooled.privacy.trust, pooled.privacy.simulated) == ("Aggregated", True)
        if noise is None:
            assert pooled.privacy.private
        else:
            assert np.array_equal(whole.centers, pooled.centers)
            assert np.array_equal(whole.weights, pooled.weights)


def test_parties_and_oracles_of_another_trust_do_not_mix() -> None:
    skellam = request("skellam")
    for words, run in {
        "Aggregated oracles only": lambda: fit(request("discrete-gaussian", options={}), pool()),
        "where parties pool": lambda: fit(skellam, arrays(ROWS)),
        "'parties'": lambda: fit(skellam, pool(PARTS[:2])),
        "two parties": lambda: pool(PARTS[:1]),
        "columns": lambda: pool([PARTS[0], ROWS[:, :1]]),
    }.items():
        with pytest.raises(InvalidInput, match=words):
            run()


def listed(*names: str) -> list[dict[str, str]]:
    return [{"name": name, "key": public_key(new_private_key()).hex()} for name in names]


def facts(**changes: Any) -> dict[str, Any]:
    plan = {
        "k": 3,
        "epsilon": 1.0,
        "delta": 1e-6,
        "rows": 3000,
        "columns": ["x", "y"],
        "bounds": [[-1, 1], [-1, 1]],
        "seed": 1,
        "party": listed("a", "b"),
        "method": "fastlloyd",
        "coordinator_key": public_key(new_private_key()).hex(),
        **changes,
    }
    return {name: value for name, value in plan.items() if value is not None}


def drawn_by(plan: FederatedPlan) -> set[str]:
    """The oracles of its counts and sums."""
    return {part.spec.name for name, part in _parts(plan.plan.composed) if name in ("counts", "sums")}


def test_nobody_knows_the_noise_unless_a_plan_says_so() -> None:
    """A result that is published then tells the coordinator nothing more: what draws the noise in one place has to be
    asked for."""
    plan, picked = pool_plan(facts()), pool_plan(facts(method=None)).plan
    assert drawn_by(plan) == {"skellam"}
    assert plan.shares == 2
    assert "may be published" not in " ".join(plan.trust)
    assert picked.choice is not None
    assert picked.composed.spec.name == picked.choice.picked
    assert drawn_by(pool_plan(facts(method=None))) == {"skellam"}
    known = pool_plan(facts(oracle="masked-gaussian"))
    assert known.shares == 1
    assert PUBLISHED in known.trust
    assert "no privacy" in " ".join(known.trust)


@pytest.mark.parametrize("slot", ["counts", "sums"])
def test_a_plan_whose_coordinator_draws_any_of_the_noise_promises_nothing_against_it_and_a_party(slot: str) -> None:
    mixed = " ".join(pool_plan(facts(oracle="skellam", **{"with": {slot: "masked-gaussian"}})).trust)
    assert "The coordinator together with any one party: no privacy" in mixed
    assert "must be kept from whoever runs the coordinator" in mixed
    assert "nobody knows all of it" not in mixed


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"k": None, "bounds": None}, "no k, bounds"),
        ({"oracle": "discrete-gaussian"}, "choose skellam or masked-gaussian"),
        ({"coordinator_key": None}, "no coordinator_key"),
        ({"coordinator_key": "xyz"}, "--coordinator"),
        ({"coordinator_key": "aa"}, "32 bytes"),
        ({"masks": "none"}, "choose shared or pairwise"),
        ({"masks": "shared", "set": {"sums": {"colluding": 0}}}, "one share alone"),
        ({"seed": 1.5}, "whole number"),
        ({"party": [{"name": "a"}]}, "2 to 1024"),
        ({"party": [{"key": "x"}]}, r"\[\[party\]\]"),
        ({"with": {"sums": "discrete-gaussian"}}, "slot 'sums'"),
        ({"party": listed("a", "coordinator")}, "pass for the coordinator"),
        ({"with": dict.fromkeys(("counts", "sums"), "discrete-gaussian")}, "is Central, and the trust model asked"),
        ({"set": 3}, "must be a table"),
        ({"columns": "xy"}, "list of names"),
        ({"method": 5}, "no Method '5'"),
        ({"test_noise_seed": "x"}, "whole number"),
        ({"masks": "shared", "method": "tree-means", "set": {"tree_counts": {"colluding": 0}}}, "'tree_counts' draws"),
        (
            {"masks": "shared", "method": "hst-means", "set": {"start": {"tree_counts": {"colluding": 0}}}},
            "'start.tree_counts' draws",
        ),
    ],
)
def test_a_plan_that_makes_no_sense_says_why(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        pool_plan(facts(**changes))


def test_unknown_entries_and_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UnknownName, match="epsilon"):
        pool_plan(facts(epsilom=1))
    with pytest.raises(InvalidInput, match="cannot read"):
        read_pool_plan(tmp_path / "none.toml")
    for text in ("k = ", "k = " + "[" * 100_000):
        (tmp_path / "bad.toml").write_text(text)
        with pytest.raises(InvalidInput, match="not valid TOML"):
            read_pool_plan(tmp_path / "bad.toml")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("grpc")
    return lay_out(tmp_path_factory.mktemp("seeded"), "test_noise_seed = 4\n" + TOML)


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


def test_what_a_seeded_plan_releases_says_that_it_is_not_private() -> None:
    seeded = fit(request(rounds=1), pool(), noise=NoiseRng.for_tests(1))
    assert seeded.privacy.headline.startswith("not private: seeded")
    (words,) = pool_plan(facts(test_noise_seed=4)).trust
    assert words.startswith("not private: seeded")
    assert "not private" not in " ".join(pool_plan(facts()).trust)
    assert not pool_plan(facts()).noise.seeded
