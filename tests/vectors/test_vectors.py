"""The vectors are what cloister sends, and a client written from the specification alone gives all of them."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from tests.reference_client.checks import Wrong, check
from tests.reference_client.client import Client
from tests.reference_client.snapping import snap
from tests.reference_client.words import Words, below, hashed, word
from tests.vectors import make, plans

HERE = Path(__file__).parent
REFERENCE = Path(__file__).parents[2] / "docs" / "reference"
SPECIFICATION = "".join(page.read_text() for page in (REFERENCE / "format.md", *REFERENCE.glob("format_*.md")))
FILES = [group.name for group in plans.GROUPS]
STEPS = json.loads((HERE / "primitives.json").read_text())
WRONG = json.loads((HERE / "wrong.json").read_text())["cases"]


@cache
def bundles(name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((HERE / f"{name}.json").read_text())["bundles"]
    return found


def levels() -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Every channel of every vector, with each of its levels."""
    for one in chain(*map(bundles, FILES)):
        for question in json.loads(one["bundle"])["questions"]:
            yield from ((question["channel"], level) for level in question["channel"]["levels"])


@pytest.mark.parametrize("name", FILES)
def test_a_client_that_knows_the_specification_alone_takes_the_bundle_and_sends_the_same_bytes(name: str) -> None:
    for one in bundles(name):
        arrays = base64.b64decode(one["arrays"])
        check(one["bundle"], arrays)
        client = Client(one["bundle"], arrays)
        for case in one["cases"]:
            words = Words(int(w, 16) for w in case["words"])
            report = client.report(case["row"], int(case["user"]), words)
            assert (report.hex() if report else None) == case["report"]
            assert words.taken == len(case["words"])


def test_wrong_bundles_are_refused() -> None:
    assert [case["why"] for case in WRONG if passes(case)] == []


def passes(case: dict[str, str]) -> bool:
    try:
        check(case["bundle"], base64.b64decode(case["arrays"]))
    except Wrong:
        return False
    return True


LATER_ROUNDS = {
    "kinds",
    "method-fastlloyd",
    "method-zoom",
    "method-tree-means",
    "method-hst-means",
    "method-described",
}
"""Files of plans with all their rounds that are made again every day: centres, frames, trees, centres that people are,
and what groups hold, in later rounds."""


def belated(group: plans.Group) -> bool:
    return any(plan.rounds for plan in group.plans) and group.name not in LATER_ROUNDS


@pytest.mark.thorough
@pytest.mark.parametrize(
    "group", [pytest.param(g, id=g.name, marks=[pytest.mark.long] * belated(g)) for g in plans.GROUPS]
)
def test_the_generator_writes_what_lies_there(group: plans.Group) -> None:
    found = [one for plan in group.plans for one in make.of(plan)]
    assert make.text(group.name, group.what, bundles=found) == (HERE / f"{group.name}.json").read_text()


@pytest.mark.thorough
def test_the_generator_writes_the_steps_and_the_wrong_bundles_that_lie_there() -> None:
    assert make.steps() == (HERE / "primitives.json").read_text()
    assert make.refused() == (HERE / "wrong.json").read_text()


def test_all_randomisers_and_channels_are_among_the_vectors() -> None:
    """As many as the specification has."""
    named = {(channel["kind"], level.get("randomiser"), channel.get("share")) for channel, level in levels()}
    counts = {"direct", "hashed", "signed", "unary", "subset"}
    shares = ("users", "budget")
    wanted: set[tuple[str, str | None, str | None]] = {("counts", one, share) for one in counts for share in shares}
    wanted |= {("vectors", one, share) for one in ("codebook", "duchi", "privunit") for share in shares}
    wanted |= {("gaussian-vectors", None, "users"), ("blanket", None, None), ("shares", None, None)}
    assert named == wanted
    assert {level["size"] for _, level in levels() if level.get("randomiser") == "codebook"} == {128, 256, 512}
    assert any(level.get("place") for _, level in levels())


def test_words_at_the_edge_of_every_coin_are_among_the_vectors() -> None:
    drawn = {int(w, 16) for name in FILES for one in bundles(name) for case in one["cases"] for w in case["words"]}
    assert {0, 2**64 - 1, 2**63, 2**63 - 1} <= drawn
    coins = {int(level["keep"]) for _, level in levels() if "keep" in level}
    assert sum({coin, coin - 1} <= drawn for coin in coins) >= len(coins) // 2


def test_steps_are_what_the_specification_says() -> None:
    for one in STEPS["word"]:
        assert f"{word(one['key'], int(one['u'])):016x}" == one["word"]
    for one in STEPS["below"]:
        assert below(int(one["word"], 16), one["m"]) == one["below"]
    for one in STEPS["hash"]:
        found = hashed(one["low"], one["high"], one["shift"], int(one["v"]), int(one["x"]), one["k"])
        assert found == one["hash"]
    for one in STEPS["snap"]:
        assert snap(one["domain"], one["row"]) == one["lattice"]


def test_batches_and_tickets_are_what_the_specification_says() -> None:
    for one in STEPS["batch"]:
        records = b"".join(int(r["user"]).to_bytes(8, "little") + bytes.fromhex(r["answer"]) for r in one["records"])
        count, crc = (x.to_bytes(4, "little") for x in (len(one["records"]), crc32(records)))
        head = bytes.fromhex(one["head"])[:8] + bytes([one["round"]])
        assert (b"\xc2" + head + count + crc + records).hex() == one["batch"]
    for one in STEPS["ticket"]:
        signed = b"cloister ticket 1\n" + bytes.fromhex(one["plan"]) + int(one["user"]).to_bytes(8, "little")
        Ed25519PublicKey.from_public_bytes(bytes.fromhex(one["public"])).verify(bytes.fromhex(one["ticket"]), signed)


def test_the_example_of_the_specification_is_a_vector() -> None:
    text = SPECIFICATION
    dump = text[text.index("C1                       a report") :].partition("```")[0]
    shown = "".join(line.partition("  ")[0].replace(" ", "") for line in dump.splitlines()).lower()
    cases = [case for one in bundles("local-others") for case in one["cases"]]
    (case,) = [case for case in cases if case["report"] == shown]
    assert (case["row"], case["user"]) == ([1.0, 1.0], "44885")
    words = re.search(r"secret words ([0-9A-F]{16}) and ([0-9A-F]{16})", text)
    assert words is not None
    assert [w.lower() for w in words.groups()] == case["words"]


def test_every_member_of_a_bundle_is_in_the_specification() -> None:
    """A member that it does not name is one that nobody can use."""
    members = {member for name in FILES for one in bundles(name) for member in _members(json.loads(one["bundle"]))}
    assert not {member for member in members if not re.search(rf"\b{member}\b", SPECIFICATION)}


def _members(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        yield from value
    if isinstance(value, (dict, list)):
        for one in value.values() if isinstance(value, dict) else value:
            yield from _members(one)
