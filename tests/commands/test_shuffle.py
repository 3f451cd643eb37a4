"""Plans of trust Shuffled and the programs: ``cloister plan``, ``encode``, ``shuffle`` and ``decode``, as people run
them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pyarrow.parquet as pq
import pytest

from cloister.collection.client.encoder import read
from cloister.collection.plan.plan import CollectionPlan
from cloister.collection.plan.publish import publish, words
from cloister.collection.server.aggregator import decode
from cloister.collection.shuffler.shuffler import shuffle
from cloister.core.errors import InvalidInput, Refused
from cloister.run.request import Request
from tests.collection.shuffled_plans import WIRES, D, N, folder_of, sent, small_plan, write
from tests.in_process import cloister

WANTED = ("-k", "2", "--epsilon", "1", "--delta", "1e-6", "--rows", str(N), "--bounds", "ball:1", "--seed", "1")
WITH = tuple(part for slot, name in WIRES.items() for part in ("--with", f"{slot}={name}"))


@pytest.fixture(scope="module")
def plan() -> CollectionPlan:
    return small_plan()


def test_from_rows_to_centres(tmp_path: Path) -> None:
    rows = np.repeat([[0.6, 0, 0, 0, 0], [-0.6, 0, 0, 0, 0]], N // 2, axis=0)
    np.save(tmp_path / "mine.npy", rows + np.random.default_rng(0).normal(0, 0.02, (N, D)))
    done = cloister("plan", *WANTED, *WITH, "--dimension", D, "--out", "plan", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    for said in ("epsilon = 1, delta = 1e-06, Shuffled trust", "900 people", "one message at most", "messages alone"):
        assert said in done.stdout
    facts = json.loads((tmp_path / "plan" / "plan.json").read_text())
    assert facts["trust"] == "Shuffled"
    assert facts["crowd"]["least honest people"] == 900
    assert 1 < facts["crowd"]["epsilon alone"] < 10
    assert facts["crowd"]["messages per user"] == 1
    encode = ("encode", "plan", "mine.npy", "--columns", "0,1,2,3,4", "--state", "mine.state", "--out")
    done = cloister(*encode, "reports", folder=tmp_path)
    assert done.stdout.startswith("messages of 1,000 people under plan")
    assert "for the shuffler" in done.stdout
    assert cloister(*encode, "again", folder=tmp_path).returncode == 0
    one, other = (pq.read_table(next((tmp_path / name).iterdir())) for name in ("reports", "again"))
    assert one.equals(other)
    done = cloister("shuffle", "plan", "reports", "again", "--out", "shuffled", "--json", folder=tmp_path)
    said = json.loads(done.stdout)
    assert (said["people"], said["messages"], said["refused"]["duplicate"]) == (N, N, N)
    assert "refused 1,000 people who have sent messages already" in done.stderr
    done = cloister("shuffle", "plan", "reports", "--out", "shuffled", folder=tmp_path)
    assert done.returncode == 2
    assert "a plan is shuffled once" in done.stderr
    done = cloister("shuffle", "plan", "reports", "--out", "more", folder=tmp_path)
    assert done.stdout.startswith("1,000 messages of 1,000 people under plan")
    done = cloister("decode", "plan", "shuffled", "--json", folder=tmp_path)
    found = json.loads(done.stdout)
    assert found["details"]["reports"]["accepted"] == N
    assert np.shape(found["centers"]) == (2, D)
    done = cloister("decode", "plan", "shuffled", "more", folder=tmp_path)
    assert "different shuffles" in done.stderr
    assert "no file of shuffled messages" in cloister("decode", "plan", "reports", folder=tmp_path).stderr


def test_all_files_of_one_shuffle_or_none(
    plan: CollectionPlan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that is missing, there twice, or damaged is found: nothing is lost or doubled between the shuffler and the
    server."""
    monkeypatch.setattr("cloister.collection.shuffler.release.GROUP", 64)
    monkeypatch.setattr("cloister.collection.shuffler.release.FILE", 256)
    shuffle(plan, folder_of(tmp_path / "reports", plan, sent(plan)), tmp_path / "out")
    files = sorted((tmp_path / "out").iterdir())
    assert len(files) == 4
    assert decode(plan, files[::-1]).intake.accepted == N
    with pytest.raises(InvalidInput, match="these are 3 of the 4 files"):
        decode(plan, files[1:])
    (tmp_path / "copy.parquet").write_bytes(files[2].read_bytes())
    with pytest.raises(InvalidInput, match="one file twice"):
        decode(plan, [*files, tmp_path / "copy.parquet"])
    with pytest.raises(InvalidInput, match="of another plan"):
        decode(small_plan(seed=2), files)
    flipped, column = bytearray(files[2].read_bytes()), pq.ParquetFile(files[2]).metadata.row_group(0).column(0)
    flipped[column.data_page_offset + column.total_compressed_size - 1] ^= 1  # in a page, which has a checksum
    files[2].write_bytes(flipped)
    with pytest.raises(InvalidInput, match="damaged or cut short"):
        decode(plan, files)


def test_an_impossible_message_is_refused_alone(plan: CollectionPlan, tmp_path: Path) -> None:
    """A stamp of another question: the server finds those among all, and counts the others."""
    theirs = sent(plan)
    some = np.flatnonzero(theirs.questions == 0)[:3]
    theirs.bodies[some, 8:16] ^= 1
    shuffle(plan, folder_of(tmp_path / "reports", plan, theirs), tmp_path / "out")
    done = decode(plan, tmp_path / "out")
    assert done.intake.accepted == N - 3
    assert done.intake.refused["impossible"] == 3
    with pytest.raises(Refused, match="that no encoder of this plan sends"):
        decode(plan, tmp_path / "out", strict=True)


SPLIT = {"counts": "split-and-mix-counts", "sums": "split-and-mix"}


def split_plan(**changes: Any) -> CollectionPlan:
    given = {
        "k": 2,
        "epsilon": 1.0,
        "delta": 1e-6,
        "bounds": "ball:1",
        "rows": 100,
        "seed": 1,
        "components": SPLIT,
        "options": {"grid_up_to": 0, "tree.cells": 2},
    }
    return publish(Request(**{"method": "one-round", **given, **changes}), dimension=2)


def test_shares_of_a_sum_come_back_together(tmp_path: Path) -> None:
    plan = split_plan()
    assert plan.crowd is not None
    assert plan.crowd.epsilon_without_shuffler == np.inf
    theirs = sent_of(plan, 100)
    assert len(theirs) == 100 * plan.crowd.messages
    done = shuffle(plan, folder_of(tmp_path / "reports", plan, theirs), tmp_path / "out")
    assert (done.people, done.messages) == (100, len(theirs))
    assert decode(plan, tmp_path / "out").intake.accepted == 100
    # one share too few: the person is refused, and nobody else
    again = folder_of(tmp_path / "short", plan, theirs.of(np.arange(len(theirs)) != 7))
    done = shuffle(plan, again, tmp_path / "less")
    assert (done.people, done.tally.refused["not as asked"]) == (99, 1)
    assert decode(plan, tmp_path / "less").intake.accepted == 99


@pytest.mark.parametrize("frequencies", ["split-and-mix-counts", "blanket-histogram"])
@pytest.mark.parametrize("which", ["some", "all"])
def test_messages_under_a_foreign_stamp_are_refused_with_their_sender_alone(
    tmp_path: Path, frequencies: str, which: str
) -> None:
    """Her messages spoil nobody else's: neither the shuffler nor the server stops for her."""
    plan = split_plan(components={"counts": frequencies, "sums": "split-and-mix"})
    theirs = sent_of(plan, 100)
    assert theirs.senders is not None
    bodies = theirs.bodies.copy()
    for person in (7, 42):
        hers = np.flatnonzero(theirs.senders == person)
        bodies[hers[:3] if which == "some" else hers, 0] ^= 1  # question comes first in a message
    folder = tmp_path / "reports"
    bad = attrs.evolve(theirs, bodies=bodies)
    folder_of(folder, plan, bad.of(theirs.senders != 42))
    write(folder / "hers.parquet", plan, bad.of(theirs.senders == 42))
    done = shuffle(plan, folder, tmp_path / "out")
    assert (done.people, dict(done.tally.refused)) == (98, {"impossible": 2})
    assert decode(plan, tmp_path / "out").intake.accepted == 98


def sent_of(plan: CollectionPlan, people: int) -> Any:
    from cloister.collection.client.encoder import PlanEncoder
    from cloister.core.randomness import NoiseRng

    rows = np.random.default_rng(0).normal(0, 0.3, (people, plan.dimension))
    return PlanEncoder(plan, noise=NoiseRng.for_tests(0)).encode(rows, np.arange(people)).messages


def test_a_plan_asks_for_a_bounded_number_of_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cloister.collection.plan.costs.MAX_MESSAGES", 20)
    with pytest.raises(
        InvalidInput, match=r"every person would send .* messages of .* bytes in all; a plan asks for at most 20"
    ):
        split_plan()


def test_a_shuffled_plan_has_one_round() -> None:
    components = {"counts": "amplified-counts", "sums": "amplified-vectors"}
    request = Request(
        k=2,
        method="fastlloyd",
        options={"rounds": "2"},
        epsilon=1.0,
        delta=1e-6,
        bounds="ball:1",
        rows=N,
        seed=1,
        components=components,
    )
    with pytest.raises(InvalidInput, match="a plan of trust Shuffled holds one"):
        publish(request, dimension=2)


CHANGES: dict[str, Callable[[Any], Any]] = {
    "fewer people": lambda crowd: attrs.evolve(crowd, min_honest_users=2),
    "less alone": lambda crowd: attrs.evolve(crowd, epsilon_without_shuffler=0.5),
    "fewer messages": lambda crowd: attrs.evolve(crowd, bytes=1),
    "local": lambda crowd: None,
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_plan_that_says_something_else_of_its_crowd_is_refused(
    plan: CollectionPlan, tmp_path: Path, change: str
) -> None:
    attrs.evolve(plan, crowd=CHANGES[change](plan.crowd)).write(tmp_path / "plan", "")
    with pytest.raises(Refused):
        read(tmp_path / "plan").round()


def test_a_plan_of_a_crowd_survives_its_file(plan: CollectionPlan, tmp_path: Path) -> None:
    plan.write(tmp_path / "plan", words(plan, plan.rounds()))
    found = read(tmp_path / "plan")
    assert (found.hash, found.crowd, found.trust) == (plan.hash, plan.crowd, "Shuffled")
    assert found.round().digest() == plan.digest
