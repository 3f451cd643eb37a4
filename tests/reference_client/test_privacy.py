"""Privacy on the path of bundles: exact chances, in words of 2^64, from a bundle's integers alone.

Each test enumerates the intervals of secret words on which the reference client sends one answer, sees at both edges of
each that it does, and compares the intervals' lengths between all inputs, 'in no bucket' included. Vectors tie the
client to cloister, and cloister's own enumerations (``tests/plugins/oracles``) its randomisers to their proofs.
"""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations, product
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from cloister.core.fixed_order import quarter_sines
from cloister.plugins.oracles.shuffled.blanket_histogram import delta_of
from tests.reference_client import counts, units
from tests.reference_client.checks import ALL, Wrong, check, power
from tests.reference_client.client import Client
from tests.reference_client.normals import words_for
from tests.reference_client.words import Words, word

VECTORS = Path(__file__).parents[1] / "vectors"
FILES = ("local-counts", "local-vectors", "local-others", "shuffled")
USER = 12345

Facts: TypeAlias = dict[str, Any]
Law: TypeAlias = dict[tuple[int, ...], Fraction]


def questions() -> Iterator[tuple[Facts, Facts]]:
    """Every bundle of small vectors, with each of its questions."""
    for name in FILES:
        for one in json.loads((VECTORS / f"{name}.json").read_text())["bundles"]:
            facts = json.loads(one["bundle"])
            yield from ((facts, question) for question in facts["questions"])


def levels(randomiser: str, most: int = 2**16) -> list[tuple[Facts, Facts, Fraction]]:
    """Channels and levels with a randomiser and at most so many buckets, each kind once, with e^epsilon of one
    answer."""
    found = dict[str, tuple[Facts, Facts, Fraction]]()
    for _, question in questions():
        channel = question["channel"]
        for level in channel["levels"]:
            if level.get("randomiser") == randomiser and int(level.get("size", 0)) <= most:
                parts = len(channel["levels"]) if channel["level_key"] is None else 1
                coins = {name: value for name, value in level.items() if len(str(value)) != 32 and name != "signs"}
                limit = power(Fraction(question["alone"]) / parts)
                found.setdefault(json.dumps(coins, sort_keys=True), (channel, level, limit))
    return list(found.values())


def worst(laws: list[Law]) -> Fraction:
    """The largest ratio of the chances of one answer. Laws that do not reach the same answers have none."""
    assert all(law.keys() == laws[0].keys() for law in laws)
    assert all(sum(law.values()) == 1 for law in laws)
    return max(max(law[z] for law in laws) / min(law[z] for law in laws) for z in laws[0])


def edges(ends: list[int]) -> list[tuple[int, int]]:
    """Intervals of words [low, high] that end at these, and at 2^64."""
    starts = sorted({0, *ends})
    return [(a, b - 1) for a, b in zip(starts, [*starts[1:], ALL], strict=True) if a < b]


def on_both_edges(send: Any, spans: tuple[tuple[int, int], ...]) -> tuple[int, ...]:
    """What is sent at every corner of a box of words: the same."""
    found = {tuple(send(corner)) for corner in product(*spans)}
    assert len(found) == 1
    return found.pop()


def length(span: tuple[int, int]) -> Fraction:
    return Fraction(span[1] - span[0] + 1, ALL)


def law_of(send: Any, cuts: list[list[int]]) -> Law:
    """Chances of the answers that are sent for words, one per list of cuts."""
    law: Law = {}
    for spans in product(*map(edges, cuts)):
        chance = Fraction(1)
        for span in spans:
            chance *= length(span)
        answer = on_both_edges(send, spans)
        law[answer] = law.get(answer, Fraction(0)) + chance
    return law


def laws_of(level: dict[str, Any], cuts: list[list[int]]) -> list[Any]:
    """The exact law of what is sent (``law_of``) from every bucket, and from none."""
    return [
        law_of(lambda words, x=x: counts.answer(level, x, USER, Words(words)), cuts) for x in range(-1, level["size"])
    ]


@pytest.mark.parametrize("randomiser", ["direct", "hashed", "signed"])
def test_responses_keep_epsilon_exactly(randomiser: str) -> None:
    found = levels(randomiser, 16)
    assert found
    for _, level, limit in found:
        k, keep = level["symbols"], int(level["keep"])
        cuts = [[keep], [-(-y * ALL // k) for y in range(k)]]
        assert 1 < worst(laws_of(level, cuts)) <= limit


def test_unary_bits_keep_epsilon_exactly() -> None:
    found = levels("unary", 4)
    assert found
    for _, level, limit in found:
        cuts = [[int(level["flip"]), 2**63]] * level["size"]
        assert 1 < worst(laws_of(level, cuts)) <= limit


def test_subsets_keep_epsilon_exactly_whatever_set_was_drawn() -> None:
    found = levels("subset", 4)
    assert found
    for _, level, limit in found:
        m, k, keep = level["size"] + 1, level["chosen"], int(level["keep"])
        cuts = [[-(-y * ALL // k) for y in range(k)], [keep], [-(-y * ALL // m) for y in range(m)]]
        for chosen in combinations(range(m), k):
            ranks = [0 if at in chosen else ALL - 1 for at in range(m)]
            laws = [
                law_of(
                    lambda words, x=x, ranks=ranks, level=level: counts.answer(level, x, USER, Words([*ranks, *words])),
                    cuts,
                )
                for x in range(-1, level["size"])
            ]
            reached = set[tuple[int, ...]]().union(*laws)
            assert worst([{z: law.get(z, Fraction(0)) for z in reached} for law in laws]) <= limit


def test_codewords_have_two_chances_whose_ratio_is_within_epsilon() -> None:
    """For rows of any kind every codeword is sent on exactly one interval of words, of length near or far."""
    found = [one for one in levels("codebook") if one[1]["size"] == 128]
    assert found
    for channel, level, limit in found[:2]:
        near, far, inside, d = int(level["near"]), int(level["far"]), level["inside"], channel["dimension"]
        cuts = [near * i for i in range(inside)]
        cuts += [near * inside + far * i for i in range(2 * level["size"] - inside)]
        laws = list[Law]()
        for bucket, vector in ((0, [0] * d), (1, [channel["l2"]] + [0] * (d - 1)), (-1, [0] * d)):
            unit = units.lifted(vector, units.sign(level, bucket, USER), channel["l2"], bucket < 0)
            laws.append(
                law_of(lambda words, unit=unit, level=level: units.codebook(level, unit, USER, Words(words)), [cuts])
            )
        assert all(len(law) == 2 * level["size"] for law in laws)
        assert all(set(law.values()) == {Fraction(near, ALL), Fraction(far, ALL)} for law in laws)
        assert worst(laws) == Fraction(near, far) <= limit


def vectors_of(channel: Facts) -> list[tuple[int, list[int]]]:
    """Buckets and vectors: in none, at the bound both ways, in the middle."""
    d, l2 = channel["dimension"], channel["l2"]
    return [(-1, [0] * d), (0, [l2] + [0] * (d - 1)), (0, [-l2] + [0] * (d - 1)), (1, [0] * d), (1, [l2 // 3] * d)]


def candidate(channel: Facts, seed: int) -> list[int]:
    """The words of one vector's normals."""
    g = random.Random(seed)
    return [g.getrandbits(64) for _ in range(words_for(channel["dimension"] + 1))]


def test_duchi_sends_one_of_two_vectors_with_two_chances() -> None:
    """Given the words of the normals all rows send the same two answers, one on ``coin`` words, one on the others."""
    found = levels("duchi")
    assert found
    for channel, level, limit in found:
        coin, known = int(level["coin"]), {**level, "sines": sines()}
        for seed in range(20):
            laws = [
                law_of(
                    lambda words, one=one, seed=seed, channel=channel, known=known: units.answer(
                        channel, known, *one, USER, Words([*words, *candidate(channel, seed)])
                    ),
                    [[coin]],
                )
                for one in vectors_of(channel)
            ]
            assert worst(laws) <= Fraction(coin, ALL - coin) <= limit


def test_privunit_keeps_whatever_the_coin_says_and_else_the_cap_alone() -> None:
    """What a candidate would send does not depend on the row; below ``coin`` every row keeps it. So whatever one row
    sends with weight 1 another sends with ``coin`` / 2^64 at least; ``checks`` bounds what that comes to."""
    found = levels("privunit")
    assert found
    for channel, level, limit in found:
        coin, one, kept = int(level["coin"]), {**level, "sines": sines(), "together": 1}, list[bool]()
        for seed in range(40):
            sure = set[tuple[tuple[int, ...], bool]]()
            for where in vectors_of(channel):
                sure |= {sent_first(channel, one, where, seed, word) for word in (0, coin - 1)}
                beyond = {sent_first(channel, one, where, seed, word) for word in (coin, ALL - 1)}
                assert len(beyond) == 1
                kept += [first for _, first in beyond]
                assert beyond == sure or not kept[-1]
            ((_, first),) = sure
            assert first
        assert 0 < sum(kept) < len(kept)
        assert Fraction(ALL, coin) <= limit


def sent_first(
    channel: Facts, level: Facts, where: tuple[int, list[int]], seed: int, coin: int
) -> tuple[tuple[int, ...], bool]:
    """What is sent if the first candidate's coin is this word and the second is kept, and whether it is the first."""
    own = candidate(channel, seed)
    words = Words([coin, *own, 0, *candidate(channel, -1 - seed)])
    answer = tuple(units.answer(channel, level, *where, USER, words))
    return answer, words.taken == 1 + len(own)


def sines() -> list[float]:
    return [float(x) for x in quarter_sines()]


def test_under_a_shuffler_her_number_and_her_role_depend_on_no_row() -> None:
    """The number that stands for her is drawn before anything of her row is read, and it decides all else."""
    (one,) = [one for one in shuffled() if "blanket" not in one["bundle"] and '"shares"' not in one["bundle"]]
    client, g = Client(one["bundle"], base64.b64decode(one["arrays"])), random.Random(1)
    for _ in range(20):
        drawn, places = [g.getrandbits(64) for _ in range(100)], set[bytes]()
        for row in ([0.0, 0.0], [1.0, 0.0], [-0.3, 0.4]):
            report, at = client.report(row, USER, Words(drawn)), 18
            assert report is not None
            for drawing in client.bundle["drawings"]:
                places.add(report[at : at + 2 + 8])
                at += drawing["bytes"]
        assert len(places) == len(client.bundle["drawings"])
        assert {int.from_bytes(place[2:], "little") for place in places} == set(drawn[: len(places)])


def shuffled() -> list[Facts]:
    found: list[Facts] = json.loads((VECTORS / "shuffled.json").read_text())["bundles"]
    return found


def test_blankets_hide_one_message_among_those_of_honest_users() -> None:
    found = [(f, q) for f, q in questions() if q["channel"]["kind"] == "blanket"]
    assert found
    for facts, question in found:
        channel = question["channel"]
        least = -(-9 * facts["users"] // 10)
        delta = delta_of(question["epsilon"], channel["blankets"] * least, channel["values"], len(channel["levels"]))
        assert delta <= question["delta"] * (1 + 1e-9)


COINS = {"keep": 1, "flip": -1, "coin": 1}


def test_one_word_beyond_epsilon_is_found_in_every_coin() -> None:
    """The adversary publishes a bundle that is a word in 2^64 dearer than it says. 'privunit' is checked in doubles:
    a part in a million."""
    changed = 0
    for name in FILES:
        for one in json.loads((VECTORS / f"{name}.json").read_text())["bundles"]:
            facts = json.loads(one["bundle"])
            facts["arrays"] = {"bytes": 0, "sha256": "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"}
            text = json.dumps(facts)
            for question in facts["questions"]:
                for level in question["channel"]["levels"][:1]:
                    changed += sum(refused(facts, level, coin) for coin in COINS if coin in level)
            assert json.dumps(facts) == text
    assert changed >= 20


def _without_place(one: Facts) -> Facts:
    return {"type": one["type"], "shape": one["shape"]} if "shape" in one else one


def refused(facts: Facts, level: Facts, coin: str) -> bool:
    """Whether a bundle is refused whose coin is one word dearer, and is not as it is."""
    before = level[coin]
    step = -int(before) // 10**6 if level["randomiser"] == "privunit" else COINS[coin]
    without_arrays = json.loads(json.dumps(facts), object_hook=_without_place)
    check(json.dumps(without_arrays), b"")
    level[coin] = str(int(before) + step)
    without_arrays = json.loads(json.dumps(facts), object_hook=_without_place)
    level[coin] = before
    with pytest.raises(Wrong, match="beyond epsilon"):
        check(json.dumps(without_arrays), b"")
    return True


def test_sizes_that_lie_send_no_bucket_as_it_is() -> None:
    """A bundle that passes every check, whose bucketing has more buckets than it says: the others count as none."""
    for one in json.loads((VECTORS / "local-counts.json").read_text())["bundles"]:
        facts = json.loads(one["bundle"])
        levels = facts["questions"][0]["channel"]["levels"]
        if levels[0]["randomiser"] != "direct" or facts["questions"][0]["channel"]["level_key"] is None:
            continue
        facts["bucketings"].append({**facts["bucketings"][0], "sizes": [1] * len(levels)})
        facts["questions"][0]["bucketing"] = 1
        for level in levels:
            level.update(size=1, symbols=2, keep=str(2**60))
        arrays = base64.b64decode(one["arrays"])
        check(json.dumps(facts), arrays)
        client, g = Client(json.dumps(facts), arrays), random.Random(1)
        for _ in range(50):
            row, user = [g.gauss(0, 1) for _ in range(3)], g.randrange(facts["users"])
            report = client.report(row, user, Words([0] * 8))
            assert report is not None
            assert report[18] in (0, 1)
        return
    raise AssertionError("no bundle with direct answers is among the vectors")


def test_the_rounds_that_one_person_answers_cost_the_plan_s_epsilon_together() -> None:
    """What a client remembers and adds up: the questions that she was asked, over all rounds."""
    for file in VECTORS.glob("method-*.json"):
        bundles = [json.loads(one["bundle"]) for one in json.loads(file.read_text())["bundles"]]
        for user in range(50):
            asked = [q for facts in bundles for q in facts["questions"] if is_asked(q["share"], user)]
            for cost in ("epsilon", "delta"):
                assert sum(q[cost] for q in asked) <= bundles[0][cost] * (1 + 1e-9)


def is_asked(share: Facts | None, user: int) -> bool:
    return share is None or share["from"] <= word(share["key"], user) >> 11 < share["to"]
