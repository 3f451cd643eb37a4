"""Groups told by words: what one row moves, what one row alone shows, and what many rows have in common."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, strategies as st
from scipy import stats

from cloister.core.budget import Budget
from cloister.core.clustering import Clustering, Problem
from cloister.core.domains import Ball, Box
from cloister.core.errors import Damaged, InvalidInput
from cloister.core.frames import cube
from cloister.core.nearest import NearestCenter
from cloister.core.randomness import NoiseRng, PublicRng
from cloister.core.session import Session
from cloister.metrics import labels
from cloister.plugins.methods.worded import GROUPS, Worded, WordsOfGroups
from cloister.plugins.oracles.central.discrete_gaussian import DiscreteGaussian
from cloister.plugins.oracles.central.thresholded_gaussian import ThresholdedGaussian
from cloister.rows.keywords import HALF, WHOLE, Texts, code_of, slot_of
from cloister.run.fit import fit, source
from cloister.run.layers.keywords import words_of
from cloister.run.request import Request, prepare
from cloister.run.result import Result
from cloister.showing.profile import profile_of
from tests.alarms import Alarm
from tests.asking import asking

CENTERS = np.array([[-0.5], [0.5]])
MOST = 4


@attrs.frozen
class Known:
    """A method that asks nothing: its centres are public."""

    def cluster(self, problem: Problem, session: Session[Any], rng: PublicRng) -> Clustering:
        return Clustering(CENTERS, None, {})


def frame(ages: Any, texts: Any) -> pd.DataFrame:
    return pd.DataFrame({"age": ages, "notes": texts})


def request_of(**given: Any) -> Request:
    """A run that counts words."""
    usual = {"k": 2, "epsilon": 1.0, "delta": 1e-5, "method": "hst-means", "bounds": {"age": (-1, 1)}, "seed": 1}
    return asking(**usual | {"describe_words": "notes"} | given)


def spoken(rows: pd.DataFrame, most: int = MOST) -> Any:
    """Rows whose notes' words are counted."""
    return source(rows, columns=["age"], described=[Texts("notes", most)])


def told(people: pd.DataFrame, noise: int = 0, most: int = MOST, **more: Any) -> Result:
    request = request_of(**{"rows": len(people), "most_words": most} | more)
    return fit(request, spoken(people, most), noise=NoiseRng.for_tests(noise))


def worded() -> Any:
    """Words of groups that are known."""
    return Worded(method=Known(), counts=ThresholdedGaussian(), slots=MOST, share=0.5)


def common(n: int, seed: int = 0) -> pd.DataFrame:
    """Two groups: fever in most rows of one, fractures in the other, a cough in some of both, and a word of each row's
    own."""
    g = np.random.default_rng(seed)
    old = g.random(n) < 0.5
    ages = np.where(old, 0.5, -0.5) + g.normal(0, 0.05, n)
    first = np.where(old, "fractures", "fever")
    texts = [
        f"{word if g.random() < 0.7 else ''} and {'cough' if g.random() < 0.4 else ''} x{i}"
        for i, word in enumerate(first)
    ]
    return frame(ages, texts)


NUMBERS = st.integers(-(2**31), 2**31 - 1)


@given(st.lists(st.tuples(NUMBERS, *[st.integers(0, HALF - 1)] * (2 * MOST)), max_size=8))
def test_a_row_is_in_at_most_one_bucket_of_each_level_whatever_its_cell_holds_and_by_itself(rows: list[Any]) -> None:
    """So neighbours differ by one, in one count of each level at most: the sensitivity that the oracle pays for."""
    near = NearestCenter(cube(1).snap(CENTERS), cube(1).max_norm)
    cells, lattice = WordsOfGroups(near, 2, MOST), np.array(rows, np.int64).reshape(-1, 1 + 2 * MOST)
    lattice[:, 0] = np.clip(lattice[:, 0], -cube(1).max_norm, cube(1).max_norm)
    found = cells.locate(lattice)
    assert cells.space.sizes == (2 * WHOLE,) * MOST
    for row, ids in zip(lattice, found, strict=True):
        assert np.array_equal(cells.locate(row[None])[0], ids)
        words = row[1::2] * HALF + row[2::2]
        assert ids.tolist() == np.where(words > 0, (row[0] > 0) * WHOLE + words, -1).tolist()


def asked(rows: pd.DataFrame, budget: Budget, noise: int) -> tuple[Clustering, Any]:
    box = Box((-1.0, *(0.0,) * 2 * MOST), (1.0, *(HALF - 1.0,) * 2 * MOST))
    problem, seed = Problem(2, box, len(rows), budget), PublicRng.from_seed(0)
    session: Any = Session(problem, seed, spoken(rows), noise=NoiseRng.for_tests(noise))
    return worded().cluster(problem, session, seed), session


@pytest.mark.alarm(1e-8)
def test_a_word_of_one_row_alone_is_shown_with_at_most_the_chance_delta(alarm: Alarm) -> None:
    """The adversary: everybody has words of her own in all slots, so that each is alone in her buckets, with noise of
    their own: as many runs against one person as there are rows. She is shown if any word of hers is."""
    own, number, n = list[list[str]](), 0, 20_000
    for _ in range(n):
        words = dict[int, str]()
        while len(words) < MOST:
            word, number = f"w{number:07d}", number + 1
            words.setdefault(slot_of(code_of(word), MOST), word)
        own.append(list(words.values()))
    found, session = asked(frame(np.linspace(-1, 1, n), own), Budget("gaussian", 0.08, delta=0.1), 5)
    (event,) = session.released
    shown = {word for group in found.details["words"]["of"] for word, _, _ in group}
    seen = sum(not shown.isdisjoint(words) for words in own)
    assert 0.04 < event.delta <= 0.05  # half of the budget's
    alarm.fits(stats.binomtest(seen, n, event.delta, alternative="greater").pvalue, of=2)
    alarm.fits(stats.binomtest(seen, n, event.delta / 1.2, alternative="less").pvalue, of=2)


def test_what_many_rows_have_is_shown_with_its_count_within_the_errors_and_nothing_else() -> None:
    rows, off = common(3000), list[float]()
    own = labels(rows[["age"]].to_numpy(), CENTERS)
    kept = Texts("notes", MOST).halves(len(rows), rows["notes"].tolist().__getitem__)
    codes = kept[0::2] * HALF + kept[1::2]
    for noise in range(12):
        result = told(rows, noise, epsilon=2.0)
        for label, first in enumerate(("fever", "fractures")):
            group = words_of(result)[np.argsort(result.centers[:, 0])[label]]
            assert [word.word for word in group] == [first, "cough"]
            assert 1.6 < group[0].lift < 2.4
            for word in group:
                exact = ((codes == code_of(word.word)).any(axis=0) & (own == label)).sum()
                off.append((word.rows - exact) / word.error)
                assert word.rows > result.details["words"]["above"]
    assert np.abs(off).max() < 4
    assert 0.6 < np.std(off) < 1.4


def test_a_result_says_its_words_and_their_price_and_a_profile_shows_them_by_lift(tmp_path: Path) -> None:
    result = told(common(3000))
    (note,) = (note for note in result.privacy.notes if note.startswith("Words:"))
    assert f"if more than {result.details['words']['above']:,} rows of a group have it" in note
    assert "15.0% of the budget counts words of 'notes', at most 4 of a row" in note
    assert result.problem["words"] == {"column": "notes", "most": 4}
    result.save(tmp_path / "r.json")
    profile = profile_of(Result.load(tmp_path / "r.json"))
    assert attrs.asdict(profile)["words"] == attrs.asdict(profile_of(result))["words"]
    lines = [line for line in profile.text().splitlines() if line.startswith("keywords of cluster")]
    assert sorted(line.split(":")[1].split()[0] for line in lines) == ["fever", "fractures"]
    assert set(json.loads(json.dumps(profile.as_dict()))["words"][0][0]) == {"word", "rows", "error", "lift"}
    plain = attrs.evolve(result, details={})
    assert (words_of(plain), profile_of(plain).keyword_lines) == ([], [])


@pytest.mark.parametrize(
    "damage", [{}, {"of": [[]]}, {"of": [[], [["a", 1.0]]]}, {"of": [[], [["a", "b", 1.0]]]}, None]
)
def test_damaged_words_are_said_to_be(damage: Any) -> None:
    with pytest.raises(Damaged, match="the result's words are damaged"):
        words_of(attrs.evolve(told(common(400)), centers=CENTERS, weights=None, details={"words": damage}))


def test_words_and_columns_share_what_is_for_describing() -> None:
    rows, wards = common(3000).assign(ward=["A", "B", "C"] * 1000), {"ward": ["A", "B", "C"]}
    request = request_of(rows=3000, describe=["ward", "age"], describe_share=0.3)
    population = source(rows, columns=["age"], categories=wards, described=["ward", "age", Texts("notes")])
    plan = prepare(request, population.columns, chosen_columns=population.selection)
    spent = [event.spent.amount for round in plan.forecast(PublicRng.from_seed(0)) for event in round.events]
    assert spent[-2:] == pytest.approx([0.15 * plan.budget.amount] * 2)  # columns, words
    result = fit(request, population, noise=NoiseRng.for_tests(0))
    assert {group[0].word for group in words_of(result)} == {"fever", "fractures"}
    for what in ("Description", "Words"):
        assert f"{what}: 15.0% of the budget" in plan.price


@pytest.mark.parametrize(
    "more",
    [
        {"rows": None},
        {"k": (2, 4)},
        {"zoom": "off"},
        {"method": "auto"},
        {"method": "auto", "epsilon": 4.0},
        {"method": "lloyd", "components": {"counts": "discrete-laplace", "sums": "discrete-laplace"}},
        {"bounds": "unknown", "epsilon": 4.0},
    ],
)
def test_words_go_with_every_way_of_a_run(more: dict[str, Any]) -> None:
    """The accountant admits the run, of whatever noise, and the words are there."""
    result = told(common(4000), most=3, **{"epsilon": 2.0} | more)
    assert {group[0].word for group in words_of(result) if group} >= {"fever", "fractures"}


def test_too_many_groups_a_ball_and_counts_without_a_threshold_are_refused() -> None:
    problem = Problem(2, cube(1 + 2 * MOST), 10_000, Budget("gaussian", 1.0, delta=1e-6))
    for why, counts, more in (
        ("k is 735, and words are counted in at most 734 groups", ThresholdedGaussian(), {"k": GROUPS + 1}),
        ("a ball bounds the clustered columns alone", ThresholdedGaussian(), {"domain": Ball((0.0,) * 9, 1.0)}),
        ("words need counts above a threshold", DiscreteGaussian(), {}),
    ):
        with pytest.raises(InvalidInput, match=why):
            attrs.evolve(worded(), counts=counts).opened(attrs.evolve(problem, **more))
    assert max(worded().opened(attrs.evolve(problem, k=GROUPS)).space.sizes) <= 2**62


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"delta": 0.0}, "give delta > 0"),
        ({"trust": "local"}, r"by a curator \(trust central\), and the method as composed is Local"),
        ({"trust": "aggregated", "parties": 3}, "by a curator .* is Aggregated"),
        ({"trust": "local", "method": "given-centers"}, "by a curator .* is Local"),
        ({"bounds": "ball:1"}, "not a ball"),
        ({"describe_words": None}, "not those that the rows are read with"),
        ({"describe_words": "other"}, "not those that the rows are read with"),
        ({"most_words": 5}, "not those that the rows are read with"),
        ({"describe_words": None, "most_words": 3}, "most_words needs a column of words: give --describe-words"),
        ({"rows_per_user": 2}, "no more than one row per user"),
    ],
)
def test_what_cannot_be_promised_or_read_is_refused_before_anything_is_asked(more: dict[str, Any], why: str) -> None:
    population = spoken(common(400), 16)
    with pytest.raises(InvalidInput, match=why):
        fit(request_of(rows=400, **more), population)


def test_a_threshold_that_few_words_exceed_is_warned_of_and_smaller_by_a_larger_share_or_fewer_words() -> None:
    def warned(**more: Any) -> str:
        request = request_of(**{"rows": 1500, "most_words": 16} | more)
        population = spoken(common(1500), request.most_words or 16)
        return " ".join(prepare(request, population.columns, chosen_columns=population.selection).warnings)

    assert "a word is shown if more than" in warned()
    assert "--most-words" in warned()
    for more in ({"describe_share": 0.6}, {"most_words": 2}, {"rows": 20_000}, {"epsilon": 4.0}):
        assert not warned(**more)


def test_rows_in_a_database_have_no_words() -> None:
    ibis = pytest.importorskip("ibis")
    table = ibis.table({"age": "float64", "notes": "string"}, name="people")
    with pytest.raises(InvalidInput, match="words are counted where rows are read by this process"):
        source(table, columns=["age"], described=[Texts("notes")])
