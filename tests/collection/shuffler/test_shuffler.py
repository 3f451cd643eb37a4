"""The shuffler: who counts, what is refused, what is left of senders, and that a killed run neither loses nor
doubles."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cloister.collection.client.encoder import PlanEncoder, State
from cloister.collection.client.records import to_messages
from cloister.collection.plan.plan import CollectionPlan
from cloister.collection.plan.publish import publish
from cloister.collection.server.aggregator import decode
from cloister.collection.shuffler.intake import Senders
from cloister.collection.shuffler.release import Release
from cloister.collection.shuffler.shuffler import shuffle
from cloister.collection.wire import messages
from cloister.collection.wire.messages import Messages
from cloister.core import shuffling
from cloister.core.encoding import absorb, encode_lattice, encode_owned
from cloister.core.errors import InvalidInput, Refused
from cloister.core.randomness import NoiseRng
from cloister.run.request import Request
from tests.collection.recorded import to_records
from tests.collection.shuffled_plans import D, N, folder_of, multiset, released, toy_round, write


def test_what_comes_out_is_what_went_in_without_senders(
    plan: CollectionPlan, theirs: Messages, reports: Path, tmp_path: Path
) -> None:
    done = shuffle(plan, reports, tmp_path / "shuffled")
    out = released(tmp_path / "shuffled", plan)
    assert (done.people, done.messages, done.files) == (N, N, 1)
    assert sum(done.tally.refused.values()) == 0
    assert out.senders is None
    assert multiset(out) == multiset(theirs)
    assert not np.array_equal(out.bodies, theirs.bodies)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["reports", "shuffled"]
    with pytest.raises(InvalidInput, match="a plan is shuffled once"):
        shuffle(plan, reports, tmp_path / "shuffled")


def test_files_tell_nothing_but_the_multiset(
    plan: CollectionPlan, theirs: Messages, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same messages from other people, in other files and another order give files of the same shape; sizes are
    fixed."""
    monkeypatch.setattr("cloister.collection.shuffler.release.GROUP", 64)
    monkeypatch.setattr("cloister.collection.shuffler.release.FILE", 256)
    assert theirs.senders is not None
    turned = theirs.of(np.random.default_rng(0).permutation(N))
    other = Messages(turned.questions, turned.bodies, np.sort(turned.senders))  # type: ignore[type-var]
    shapes = []
    for name, some in (("one", theirs), ("other", other)):
        folder_of(tmp_path / name, plan, some)
        shuffle(plan, tmp_path / name, tmp_path / f"{name}-out", rng=NoiseRng.for_tests(1))
        files = [pq.ParquetFile(path) for path in sorted((tmp_path / f"{name}-out").iterdir())]
        groups = [[f.metadata.row_group(i).num_rows for i in range(f.metadata.num_row_groups)] for f in files]
        assert groups == [[64] * 4] * 3 + [[64, 64, 64, 40]]
        assert all(f.schema_arrow.names[0] == "question" and "sender" not in f.schema_arrow.names for f in files)
        metadata = [dict(f.schema_arrow.metadata) for f in files]
        assert len({m.pop(messages.SHUFFLE_KEY) for m in metadata}) == 1
        shapes.append((metadata, [f.metadata.row_group(0).column(0).statistics for f in files]))
        assert multiset(released(tmp_path / f"{name}-out", plan)) == multiset(theirs)
    assert shapes[0] == shapes[1]


def test_the_server_finds_the_centres_of_shuffled_messages(
    plan: CollectionPlan, theirs: Messages, reports: Path, tmp_path: Path
) -> None:
    shuffle(plan, reports, tmp_path / "shuffled")
    done = decode(plan, tmp_path / "shuffled", strict=True)
    round = plan.round()
    assert (done.intake.accepted, sum(done.intake.questions), sum(done.intake.refused.values())) == (N, N, 0)
    # exact integers: as if the messages had been added up where they were made
    direct = absorb(round, tuple(theirs.report(j, round) for j in range(len(round.parts))))
    found = [round.parts[j].channel.decode(s, NoiseRng.secret()) for j, s in enumerate(direct)]
    shuffled = released(tmp_path / "shuffled", plan)
    again = absorb(round, tuple(shuffled.report(j, round) for j in range(len(round.parts))))
    for j, (table, summary) in enumerate(zip(found, again, strict=True)):
        ids = np.arange(round.parts[j].cells.space.sizes[0])
        np.testing.assert_allclose(round.parts[j].channel.decode(summary, NoiseRng.secret()).at(ids), table.at(ids))
    assert "Shuffled" in done.result.privacy.headline
    assert "honest" in done.result.privacy.text()


def test_below_the_least_number_of_people_nothing_is_released(
    plan: CollectionPlan, theirs: Messages, tmp_path: Path
) -> None:
    assert plan.crowd is not None
    assert plan.crowd.min_honest_users == 0.9 * N
    for people, fine in ((int(0.9 * N) - 1, False), (int(0.9 * N), True)):
        path = write(tmp_path / f"r{people}" / "a.parquet", plan, theirs.of(slice(0, people)))
        if fine:
            assert shuffle(plan, path, tmp_path / "out").people == people
            continue
        # the same people twice are not more people
        write(tmp_path / f"r{people}" / "b.parquet", plan, theirs.of(slice(0, people)))
        with pytest.raises(
            Refused, match=r"899 people .* needs 900: nothing is released.*refused 899 people who have sent"
        ):
            shuffle(plan, path.parent, tmp_path / "out")
        assert sorted(p.name for p in tmp_path.iterdir()) == [f"r{people}"]


def test_what_is_refused_is_counted(plan: CollectionPlan, theirs: Messages, reports: Path, tmp_path: Path) -> None:
    assert theirs.senders is not None
    some = theirs.of(slice(0, 7))
    write(reports / "z-foreign.parquet", plan, some, hash="0" * 64)
    whole = (reports / "0.parquet").read_bytes()
    (reports / "z-cut.parquet").write_bytes(whole[: len(whole) // 2])
    flipped = bytearray(whole)
    flipped[len(whole) // 3] ^= 1
    (reports / "z-flipped.parquet").write_bytes(flipped)
    (reports / "z-other.parquet").write_bytes(b"nothing")
    pq.write_table(pq.read_table(reports / "1.parquet").drop_columns(["question"]), reports / "z-shape.parquet")
    write(reports / "z-twice.parquet", plan, some)  # they have sent messages already
    strangers = attrs.evolve(some, senders=np.arange(N, N + 7, dtype=np.uint64))
    write(reports / "z-strangers.parquet", plan, strangers)
    done = shuffle(plan, reports, tmp_path / "out")
    assert done.tally.refused == Counter(
        {"another plan": 1, "damaged": 3, "no messages": 1, "duplicate": 7, "out of range": 7}
    )
    assert done.people == N
    assert multiset(released(tmp_path / "out", plan)) == multiset(theirs)
    assert len(done.tally.lines()) == 5
    with pytest.raises(Refused, match=r"z-.*: refused"):
        shuffle(plan, reports, tmp_path / "strict", strict=True)
    assert not (tmp_path / "strict").exists()


def test_too_few_or_too_many_messages_are_refused_person_by_person(
    plan: CollectionPlan, theirs: Messages, tmp_path: Path
) -> None:
    assert theirs.senders is not None
    round = plan.round()
    twice = Messages.joined([theirs, theirs.of(slice(3, 4))])  # the fourth sends two
    order = np.argsort(twice.senders, kind="stable")  # type: ignore[arg-type]
    bodies = twice.of(order)
    wrong = bodies.questions.copy()
    wrong[10] = (wrong[10] + 1) % len(
        round.parts
    )  # her number is not asked that; and the columns are another question's
    table = pq.read_table(write(tmp_path / "r" / "a.parquet", plan, bodies))
    table = table.set_column(1, table.schema.field("question"), pa.array(wrong, pa.uint16()))
    pq.write_table(table, tmp_path / "r" / "a.parquet")
    done = shuffle(plan, tmp_path / "r", tmp_path / "out")
    assert done.tally.refused == Counter({"not as asked": 2})
    assert done.people == done.messages == N - 2


def test_a_person_plays_one_role(plan: CollectionPlan, theirs: Messages, tmp_path: Path) -> None:
    """Two messages of hers, each with a number that is asked its question, are two reports: she is refused."""
    first, other = (int(np.flatnonzero(theirs.questions == j)[0]) for j in (0, 2))
    assert theirs.senders is not None
    more = theirs.of(np.array([other]))
    more = attrs.evolve(more, senders=theirs.senders[[first]])
    both = Messages.joined([theirs, more])
    assert both.senders is not None
    both = both.of(np.argsort(both.senders, kind="stable"))
    done = shuffle(plan, write(tmp_path / "r" / "a.parquet", plan, both), tmp_path / "out")
    assert done.tally.refused == Counter({"not as asked": 1})
    assert done.people == done.messages == N - 1


def test_a_private_number_that_is_not_asked_is_refused(plan: CollectionPlan, theirs: Messages, tmp_path: Path) -> None:
    """A message's private number decides her role: one that answers another question cannot be hers."""
    forged = attrs.evolve(theirs, bodies=theirs.bodies.copy())
    mine = np.flatnonzero(forged.questions == 0)[:5]
    theirs_of = np.flatnonzero(forged.questions == 2)[:5]
    forged.bodies[mine, :8] = forged.bodies[theirs_of, :8]
    done = shuffle(plan, write(tmp_path / "r" / "a.parquet", plan, forged), tmp_path / "out")
    assert done.tally.refused == Counter({"not as asked": 5})


def test_persons_who_send_several_messages_are_kept_together_across_batches(
    plan: CollectionPlan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Batches of 7 rows, 3 messages each: nobody is cut in two. One sends 2, one 100, one twice the same slot, one from
    nowhere."""
    monkeypatch.setattr("cloister.collection.wire.files.BATCH", 7)
    round = toy_round()
    rows = round.domain.snap(np.random.default_rng(0).normal(0, 0.3, (50, D)))
    users = np.arange(50, dtype=np.uint64)
    whole = to_messages(
        to_records(
            encode_owned(round, np.random.default_rng(0).normal(0, 0.3, (50, D)), users, NoiseRng.for_tests(0)),
            50,
            round,
        ),
        users,
        round,
    )
    assert np.array_equal(whole.senders, np.repeat(users, 3))
    (direct,) = encode_lattice(round, rows, users, NoiseRng.for_tests(0))
    assert np.array_equal(whole.report(0, round).values, direct.values)
    bad = whole.bodies.copy()
    bad[3 * 20, 0] = 1  # slot 1 twice, slot 0 never
    forged = attrs.evolve(whole, bodies=bad)
    pieces = [forged.of(slice(0, 29)), forged.of(slice(30, 90))]  # the tenth person sends two
    pieces += [forged.of(slice(90, 93))] * 33 + [forged.of(slice(93, None))]  # the 31st sends 99
    senders = Senders(
        write(tmp_path / "r" / "a.parquet", plan, Messages.joined(pieces), round), plan, round, False, lambda n: None
    )
    out = Messages.joined(list(senders.accepted()))
    assert senders.intake.refused == Counter({"not as asked": 2, "impossible": 1})
    assert senders.people == 47
    keep = ~np.isin(whole.senders, [9, 20, 30])  # type: ignore[arg-type]
    assert multiset(out) == multiset(whole.of(keep))
    total = round.parts[0].channel.absorb(out.report(0, round)).total
    assert total == int((rows[:, 0] > 0)[~np.isin(users, [9, 20, 30])].sum())


def test_two_shuffles_of_one_folder_do_not_work_at_once(
    plan: CollectionPlan, reports: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Release.write_all

    def meanwhile(*given: Any) -> None:
        with pytest.raises(Refused, match="another shuffle"):
            shuffle(plan, reports, tmp_path / "out")
        real(*given)

    monkeypatch.setattr(Release, "write_all", meanwhile)
    assert shuffle(plan, reports, tmp_path / "out").people == N


def test_a_state_sends_the_same_messages_again(plan: CollectionPlan, tmp_path: Path) -> None:
    """And each person's are hers: in whatever company she encodes again."""
    rows = np.random.default_rng(1).normal(0, 0.3, (60, D))
    state, encoder = State(tmp_path / "state"), PlanEncoder(plan)
    first = encoder.encode(rows, np.arange(60), state).messages
    again = encoder.encode(rows[::-1][10:20], np.arange(60)[::-1][10:20], state).messages
    assert first.senders is not None
    assert again.senders is not None
    mine = first.of(np.isin(first.senders, again.senders))
    assert np.array_equal(mine.senders, again.senders)  # type: ignore[arg-type]
    assert np.array_equal(mine.bodies, again.bodies)
    assert np.array_equal(mine.questions, again.questions)
    assert state.spent(3) == plan.total.epsilon


def test_nothing_public_of_a_person_is_in_her_message(plan: CollectionPlan) -> None:
    """The same row and number, encoded twice with secret noise: another private number, and now and then another
    role."""
    rows, users = np.zeros((400, D)), np.arange(400)
    one, other = (PlanEncoder(plan).encode(rows, users).messages for _ in range(2))
    assert not (one.bodies[:, :8] == other.bodies[:, :8]).all(axis=1).any()
    assert (one.questions != other.questions).any()  # all alike with probability below 1e-80


def test_a_plan_of_local_trust_is_not_shuffled(tmp_path: Path) -> None:
    local = publish(Request(k=2, method="one-round", epsilon=1.0, bounds="ball:1", rows=N, seed=1), dimension=D)
    with pytest.raises(Refused, match="trust Local"):
        shuffle(local, tmp_path, tmp_path / "out")


def test_two_questions_to_one_share_are_two_messages_of_two_roles(plan: CollectionPlan, tmp_path: Path) -> None:
    """Who is asked the same share's second question is drawn apart: she may have both, one or neither; who has none
    sends nothing."""
    parts = plan.round().parts
    assert shuffling.roles(plan.round()) == ((0, 1, 2, 3),)
    round = attrs.evolve(plan.round(), parts=(*parts[:2], parts[0]))
    assert shuffling.roles(round) == ((0, 1), (2,))
    rows, users = np.random.default_rng(0).normal(0, 0.3, (400, D)), np.arange(400, dtype=np.uint64)
    theirs = to_messages(to_records(encode_owned(round, rows, users, NoiseRng.for_tests(0)), 400, round), users, round)
    assert theirs.senders is not None
    some = len(np.unique(theirs.senders))
    assert some < 400
    assert len(theirs) > some
    senders = Senders(write(tmp_path / "r" / "a.parquet", plan, theirs, round), plan, round, False, lambda n: None)
    assert multiset(Messages.joined(list(senders.accepted()))) == multiset(theirs)
    assert senders.people == some
