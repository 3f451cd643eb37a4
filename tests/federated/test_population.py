"""Whatever method asks only enumerable buckets runs pooled, with the curator's results; plans say what is wrong with
them; and one whose noise can be repeated protects nobody: no program obeys it unless the party says so itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cloister.core.errors import InvalidInput
from cloister.core.randomness import NoiseRng
from cloister.federated.plan import FederatedPlan, _components, pool_plan, read_pool_plan
from cloister.federated.protocol.collusion import PUBLISHED, statement
from cloister.federated.protocol.streams import new_private_key, public_key
from cloister.run.fit import fit
from tests.federated.pooling import FACTS, PARTS, ROWS, TOML, arrays, central, lay_out, pool, request
from tests.in_process import cloister, refused


@pytest.mark.parametrize(
    ("method", "components", "masks", "cuts"),
    [("gauss-lloyd", {}, "shared", [450]), ("one-round", {"tree": "grid"}, "pairwise", [1, 10, 899])],
)
def test_methods_on_enumerable_buckets_give_the_curators_result_bit_for_bit(
    method: str, components: dict[str, str], masks: str, cuts: list[int]
) -> None:
    parts = np.split(ROWS, cuts)
    options = dict.fromkeys(("counts.parties", "sums.parties"), len(parts))

    def asked(oracle: str) -> dict[str, Any]:
        return {"method": method, "components": {"counts": oracle, "sums": oracle, **components}}

    whole = central(options={}, **asked("discrete-gaussian"))
    masked = request(options=options, **asked("masked-gaussian"))
    pooled = fit(masked, pool(parts, masks), noise=NoiseRng.for_tests(2))
    assert (pooled.privacy.trust, pooled.privacy.simulated) == ("Aggregated", True)
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
        **FACTS,
        "columns": ["x", "y"],
        "party": listed("a", "b"),
        "coordinator_key": public_key(new_private_key()).hex(),
        **changes,
    }
    return {name: value for name, value in plan.items() if value is not None}


def test_an_agreement_names_a_plan_with_its_seeds() -> None:
    """Of which everything that is public and chance follows, and in a trial the noise, too."""
    given = facts()
    plans = [
        pool_plan({**given, **changes}).agreement.plan
        for changes in ({}, {"seed": 8}, {"test_noise_seed": 7}, {"test_noise_seed": 8}, {"k": 4}, {"epsilon": 2.0})
    ]
    assert len(set(plans)) == len(plans)
    assert pool_plan(given).agreement.plan == plans[0]


def drawn_by(plan: FederatedPlan) -> set[str]:
    """The oracles of its counts and sums."""
    return {part.spec.name for name, part in _components(plan.plan.composed) if name in ("counts", "sums")}


def test_nobody_knows_the_noise_unless_a_plan_says_so() -> None:
    """A result that is published then tells the coordinator nothing more: what draws the noise in one place has to be
    asked for."""
    plan, picked = pool_plan(facts()), pool_plan(facts(method=None))
    assert drawn_by(plan) == drawn_by(picked) == {"skellam"}
    assert plan.shares == 2
    assert not [words for words in plan.trust if "no privacy" in words or "may be published" in words]
    choice = picked.plan.choice
    assert choice is not None
    assert picked.plan.composed.spec.name == choice.picked
    known = pool_plan(facts(oracle="masked-gaussian"))
    assert known.shares == 1
    assert PUBLISHED in known.trust
    assert "no privacy" in " ".join(known.trust)


@pytest.mark.parametrize(("counts", "sums"), [(1, 3), (3, 1)])
def test_of_questions_that_withstand_differently_many_colluding_parties_the_least_is_stated(
    counts: int, sums: int
) -> None:
    options = {"counts.colluding": counts, "sums.colluding": sums}
    said = " ".join(pool_plan(facts(party=listed(*"abcde"), masks="pairwise", set=options)).trust)
    assert "the coordinator and at most 1 of 5 parties: the stated guarantee" in said
    assert "More than 1 colluding parties: less than the stated guarantee" in said


@pytest.mark.parametrize("colluding", [0, 1, 2, 3])
def test_those_who_may_collude_are_stated_and_not_those_who_are_honest(colluding: int) -> None:
    """Of five, so that neither is the other's number."""
    said = statement("pairwise", 5, colluding)
    assert f"controls the coordinator and at most {colluding} of 5 parties: the stated guarantee" in said[0]
    assert said[1].startswith(f"More than {colluding} colluding parties: less than the stated guarantee")


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
        ({"coordinator_key": "xyz"}, "--coordinator"),
        ({"masks": "none"}, "choose shared or pairwise"),
        ({"masks": "shared", "set": {"sums": {"colluding": 0}}}, "one share alone"),
        ({"seed": 1.5}, "whole number"),
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


def test_a_file_that_is_nested_too_deeply_is_no_plan(tmp_path: Path) -> None:
    (tmp_path / "bad.toml").write_text("k = " + "[" * 100_000)
    with pytest.raises(InvalidInput, match="not valid TOML"):
        read_pool_plan(tmp_path / "bad.toml")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("grpc")
    return lay_out(tmp_path_factory.mktemp("seeded"), "test_noise_seed = 4\n" + TOML)


COMMANDS = (
    "sign plan.toml --party north --cert certs/north.pem",
    "join plan.toml --party north --data north.csv --cert certs/north.pem --connect 127.0.0.1:9 --patience 0.2 "
    "--unsigned --journal north.journal",
    "coordinate plan.toml --listen 127.0.0.1:0 --cert certs/coordinator.pem --unsigned --patience 0.1 --timeout 0.1",
)


def test_a_seeded_plan_is_refused_without_the_partys_own_flag(folder: Path) -> None:
    for command in COMMANDS:
        words = refused(command, folder)
        assert "test_noise_seed" in words
        assert "--not-private" in words
    assert not {"plan.signatures", "north.journal"} & {path.name for path in folder.iterdir()}
    for command in COMMANDS:
        allowed = cloister(*command.split(), "--not-private", folder=folder).stderr
        assert "--not-private" not in allowed
        assert "protects nobody" in allowed


def test_what_a_seeded_plan_releases_says_that_it_is_not_private() -> None:
    seeded = fit(request(rounds=1), pool(), noise=NoiseRng.for_tests(1))
    assert seeded.privacy.headline.startswith("not private: seeded")
    (words,) = pool_plan(facts(test_noise_seed=4)).trust
    assert words.startswith("not private: seeded")
    assert "not private" not in " ".join(pool_plan(facts()).trust)
    assert not pool_plan(facts()).noise.seeded
