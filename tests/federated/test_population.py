"""Whatever method asks only enumerable buckets runs pooled, with the curator's results; and plans say what is wrong
with them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cloister.core.errors import InvalidInput, UnknownName
from cloister.core.randomness import NoiseRng
from cloister.core.registry.registry import registry
from cloister.federated.plan import _parts, pool_plan, read_pool_plan
from cloister.federated.protocol.agreement import PUBLISHED
from cloister.federated.protocol.messages import HEAD, TAG
from cloister.federated.protocol.streams import new_private_key, public_key
from cloister.federated.protocol.vectors import channels_of, outline, shape_bytes
from cloister.run.fit import fit
from cloister.run.request import Request

ROWS = np.clip(np.random.default_rng(0).normal(0, 0.4, (3000, 2)), -1, 1)
METHODS: dict[str, tuple[str, ...]] = {"gauss-lloyd": ("counts", "sums"), "one-round": ("counts", "sums")}


def population(name: str, rows: Any) -> Any:
    return registry().load(registry().spec("Population", name))(rows)


def run(method: str, oracle: str, where: Any, components: dict[str, str], noise: NoiseRng | None) -> Any:
    slots = METHODS[method]
    options = {f"{slot}.parties": 3 for slot in slots} if oracle != "discrete-gaussian" else {}
    request = Request(
        method=method,
        k=3,
        epsilon=1.0,
        delta=1e-6,
        bounds="-1:1",
        rows=3000,
        seed=1,
        components={**dict.fromkeys(slots, oracle), **components},
        options=options,
    )
    return fit(request, where, noise=noise)


@pytest.mark.parametrize(
    ("method", "components"), [("gauss-lloyd", {}), ("one-round", {"tree": "grid"}), ("one-round", {})]
)
def test_methods_on_enumerable_buckets_give_the_curators_result(method: str, components: dict[str, str]) -> None:
    central = run(method, "discrete-gaussian", population("arrays", ROWS), components, NoiseRng.for_tests(1))
    parts = [population("arrays", part) for part in np.array_split(ROWS, 3)]
    pooled = run(method, "masked-gaussian", population("parties", parts), components, NoiseRng.for_tests(1))
    assert np.array_equal(central.centers, pooled.centers)
    assert run(method, "skellam", population("parties", parts), components, None).privacy.private


def test_parties_and_oracles_of_another_trust_do_not_mix() -> None:
    parts = [population("arrays", part) for part in np.array_split(ROWS, 3)]
    with pytest.raises(InvalidInput, match="Aggregated oracles only"):
        run("gauss-lloyd", "discrete-gaussian", population("parties", parts), {}, None)
    with pytest.raises(InvalidInput, match="where parties pool"):
        run("gauss-lloyd", "skellam", population("arrays", ROWS), {}, None)
    with pytest.raises(InvalidInput, match="'parties'"):
        run("gauss-lloyd", "skellam", population("parties", parts[:2]), {}, None)
    with pytest.raises(InvalidInput, match="two parties"):
        population("parties", parts[:1])
    with pytest.raises(InvalidInput, match="columns"):
        population("parties", [parts[0], population("arrays", ROWS[:, :1])])


def facts(**changes: Any) -> dict[str, Any]:
    party = [{"name": n, "key": public_key(new_private_key()).hex()} for n in ("a", "b")]
    plan = {
        "k": 3,
        "epsilon": 1.0,
        "delta": 1e-6,
        "rows": 3000,
        "columns": ["x", "y"],
        "bounds": [[-1, 1], [-1, 1]],
        "seed": 1,
        "party": party,
        "method": "fastlloyd",
        "coordinator_key": public_key(new_private_key()).hex(),
        **changes,
    }
    return {name: value for name, value in plan.items() if value is not None}


def test_a_plan_fills_every_slot_that_asks() -> None:
    for method, slots in METHODS.items():
        plan = pool_plan(facts(method=method, oracle="skellam"))
        config = plan.plan.composed.config()["slots"]
        assert all(config[slot]["name"] == "skellam" and config[slot]["options"]["parties"] == 2 for slot in slots)
        assert any("at most 1 of 2" in words for words in plan.trust)
    assert "no privacy" in " ".join(pool_plan(facts(oracle="masked-gaussian")).trust)


def test_nobody_knows_the_noise_unless_a_plan_says_so() -> None:
    """A result that is published then tells the coordinator nothing more: what draws the noise in one place has to be
    asked for."""
    plan = pool_plan(facts())
    assert {part.spec.name for name, part in _parts(plan.plan.composed) if name in ("counts", "sums")} == {"skellam"}
    assert plan.shares == 2
    assert "may be published" not in " ".join(plan.trust)
    known = pool_plan(facts(oracle="masked-gaussian"))
    assert known.shares == 1
    assert PUBLISHED in known.trust


def test_a_plan_fills_the_slots_of_a_method_that_another_one_starts_from() -> None:
    plan = pool_plan(facts(method="hst-means", oracle="skellam"))
    start = plan.plan.composed.config()["slots"]["start"]["slots"]
    assert [start[slot]["name"] for slot in ("tree_counts", "counts", "sums")] == ["skellam"] * 3
    assert start["tree_counts"]["options"]["parties"] == 2


def test_a_plan_without_a_method_picks_one_whose_noise_the_parties_draw() -> None:
    plan = pool_plan(facts(method=None))
    assert plan.plan.choice is not None
    assert plan.plan.composed.spec.name == plan.plan.choice.picked
    assert plan.plan.composed.trust == "Aggregated"
    assert {part.spec.name for name, part in _parts(plan.plan.composed) if name in ("counts", "sums")} == {"skellam"}


@pytest.mark.parametrize("slot", ["counts", "sums"])
def test_a_plan_whose_coordinator_draws_any_of_the_noise_promises_nothing_against_it_and_a_party(slot: str) -> None:
    mixed = " ".join(pool_plan(facts(oracle="skellam", **{"with": {slot: "masked-gaussian"}})).trust)
    assert "The coordinator together with any one party: no privacy" in mixed
    assert "must be kept from whoever runs the coordinator" in mixed
    assert "nobody knows all of it" not in mixed


def test_both_ends_take_messages_as_long_as_the_longest_round() -> None:
    plan = pool_plan(facts(method="tree-means", set={"tree.depth": 23}))
    assert plan.most_bytes > HEAD.size + TAG + shape_bytes(outline(plan.script.rounds[0], 2)) > 2**26


def test_a_plan_has_as_many_parties_as_it_lists() -> None:
    party = [{"name": f"p{i}", "key": public_key(new_private_key()).hex()} for i in range(40)]
    many, few = pool_plan(facts(party=party)), pool_plan(facts())
    assert all(c.parties == 40 for round in many.script.rounds for c in channels_of(round, 40))
    assert shape_bytes(outline(few.script.rounds[0], 2)) < shape_bytes(outline(many.script.rounds[0], 40))


def test_no_party_has_the_coordinators_name() -> None:
    party = [{"name": n, "key": public_key(new_private_key()).hex()} for n in ("a", "coordinator")]
    with pytest.raises(InvalidInput, match="pass for the coordinator"):
        pool_plan(facts(party=party))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"k": None, "bounds": None}, "no k, bounds"),
        ({"oracle": "discrete-gaussian"}, "choose skellam or masked-gaussian"),
        ({"coordinator_key": None}, "no coordinator_key"),
        ({"coordinator_key": "xyz"}, "--coordinator"),
        ({"coordinator_key": "aa"}, "32 bytes"),
        ({"coordinator_key": 5}, "--coordinator"),
        ({"masks": "none"}, "choose shared or pairwise"),
        ({"masks": "shared", "oracle": "skellam", "set": {"sums": {"colluding": 0}}}, "one share alone"),
        ({"seed": 1.5}, "whole number"),
        ({"party": [{"name": "a"}]}, "2 to 1024"),
        ({"party": [{"key": "x"}]}, r"\[\[party\]\]"),
        ({"with": {"sums": "discrete-gaussian"}}, "slot 'sums'"),
        ({"with": dict.fromkeys(("counts", "sums"), "discrete-gaussian")}, "is Central, and the trust model asked"),
        ({"set": 3}, "must be a table"),
        ({"columns": "xy"}, "list of names"),
        ({"columns": 2}, "list of names"),
        ({"method": 5}, "no Method '5'"),
        ({"test_noise_seed": "x"}, "whole number"),
        (
            {"masks": "shared", "oracle": "skellam", "method": "tree-means", "set": {"tree_counts": {"colluding": 0}}},
            "'tree_counts' draws",
        ),
        (
            {
                "masks": "shared",
                "oracle": "skellam",
                "method": "hst-means",
                "set": {"start": {"tree_counts": {"colluding": 0}}},
            },
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
    (tmp_path / "bad.toml").write_text("k = ")
    with pytest.raises(InvalidInput, match="not valid TOML"):
        read_pool_plan(tmp_path / "bad.toml")


def test_a_plan_may_ask_for_zoom_and_scale_and_otherwise_works_in_its_bounds_as_they_are() -> None:
    plain, zoomed = (pool_plan(facts(**more)) for more in ({}, {"zoom": 0.1, "scale": [1, 2]}))
    assert plain.plan.composed.spec.name == "fastlloyd"
    assert len(zoomed.script.rounds) == 1 + len(plain.script.rounds)
    assert zoomed.plan.composed.config()["options"] == {"share": 0.1, "scale": "1.0,2.0"}
    assert zoomed.agreement != plain.agreement
