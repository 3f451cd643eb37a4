"""What the page says of numbers that no double holds, of how many questions there are, and of numbers as text."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from tests.reference_client import forms
from tests.reference_client.checks import Wrong, check

VECTORS = Path(__file__).parents[1] / "vectors"
Facts: TypeAlias = dict[str, Any]


def bundle(file: str, text: str) -> tuple[str, bytes]:
    """The first bundle of some vectors that has this text."""
    for one in json.loads((VECTORS / f"{file}.json").read_text())["bundles"]:
        if text in one["bundle"]:
            return one["bundle"], base64.b64decode(one["arrays"])
    raise AssertionError(text)


def checked(file: str, text: str, change: Callable[[Facts], None]) -> None:
    """Raises: Wrong."""
    content, arrays = bundle(file, text)
    facts = json.loads(content)
    change(facts)
    check(json.dumps(facts), arrays)


def gaussian(epsilon: float, mu: float) -> Callable[[Facts], None]:
    """Noise of this sensitivity over sigma, at this epsilon and a delta of 1e-6."""

    def change(facts: Facts) -> None:
        (question,) = (one for one in facts["questions"] if one["channel"]["kind"] == "gaussian-vectors")
        channel = question["channel"]
        levels = 1 if channel["level_key"] else len(channel["levels"])
        sigma = 2 * math.sqrt(levels) * channel["l2"] / mu
        channel["shift"] = 50 - math.frexp(sigma)[1]
        channel["sigma"] = math.ldexp(sigma, channel["shift"])
        facts["epsilon"] = 1024.0
        question.update(epsilon=epsilon, alone=epsilon, delta=1e-6)

    return change


@pytest.mark.parametrize("epsilon", [700.0, 709.0, 710.0, 1000.0])
def test_an_epsilon_whose_power_no_double_holds_passes_noise_that_is_enough_and_no_other(epsilon: float) -> None:
    checked("local-others", '"gaussian-vectors"', gaussian(epsilon, 20))
    for mu in (math.sqrt(2 * epsilon), 100.0):  # half of the law, and nearly all of it, is beyond this epsilon
        with pytest.raises(Wrong, match="sigma is beyond"):
            checked("local-others", '"gaussian-vectors"', gaussian(epsilon, mu))


def test_the_sphere_s_caps_are_looked_at_as_at_100_for_every_larger_epsilon() -> None:
    def dear(facts: Facts) -> None:
        facts["epsilon"] = 1024.0
        for question in facts["questions"]:
            question["epsilon"] = question["alone"] = 1000.0 / len(facts["drawings"])

    checked("local-vectors", '"privunit"', dear)


@pytest.mark.parametrize(("count", "why"), [(0, "questions"), (65_534, "no such bucketing"), (65_535, "questions")])
def test_there_are_at_most_65534_questions(count: int, why: str) -> None:
    with pytest.raises(Wrong, match=f"^{why}$"):
        checked(
            "local-counts", '"keep"', lambda facts: facts.update(questions=[{"bucketing": 0}] * count, bucketings=[])
        )


def test_a_number_as_text_is_written_in_one_way() -> None:
    texts = ["064", " 64", "64 ", "+64", "-64", "6_4", "64.0", "0x40", "", "٦٤", "6" * 20]
    for value in [*texts, 64, ["64"], None, True]:
        with pytest.raises(Wrong):
            forms.decimal(value)
    assert (forms.decimal("64"), forms.decimal("0"), forms.listed(64), forms.listed("64")) == (64, 0, 64, 64)
