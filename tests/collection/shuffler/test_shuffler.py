"""The shuffler: who counts, what is refused, what is left of senders, and that a killed run neither loses nor
doubles."""

from __future__ import annotations

import io
import os
from collections import Counter
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pytest

from cloister.collection.client.encoder import Encoded, PlanEncoder
from cloister.collection.plan.plan import CollectionPlan
from cloister.collection.server.aggregator import decode
from cloister.collection.shuffler.intake import Senders
from cloister.collection.shuffler.release import Release
from cloister.collection.shuffler.shuffler import shuffle
from cloister.collection.wire.answers import NOTHING, layout_of
from cloister.collection.wire.batches import BatchForm
from cloister.collection.wire.messages import Messages, ReleaseForm
from cloister.core import shuffling
from cloister.core.errors import InvalidInput, Refused
from cloister.core.randomness import NoiseRng
from tests.collection.server.collected import Apart, written
from tests.collection.shuffled_plans import FEW as N, MIXED, D, folder_of, multiset, released, sent, small_plan


def test_what_comes_out_is_what_went_in_without_senders(
    plan: CollectionPlan, theirs: Encoded, reports: Path, tmp_path: Path
) -> None:
    done = shuffle(plan, reports, tmp_path / "shuffled")
    decoded = decode(plan, tmp_path / "shuffled", strict=True)
    out = released(tmp_path / "shuffled", plan)
    assert (done.people, done.messages, done.files) == (N, N, 1)
    assert done.intake.refused.total() == decoded.intake.refused.total() == 0
    asked = np.bincount(theirs.messages.questions, minlength=len(plan.round().parts))
    assert decoded.intake.questions == asked.tolist()
    assert "Shuffled" in decoded.result.privacy.headline
    assert out.senders is None
    assert multiset(out) == multiset(theirs.messages)
    assert not np.array_equal(out.bodies, theirs.messages.bodies)
    shuffle(plan, reports, tmp_path / "again")
    assert not np.array_equal(released(tmp_path / "again", plan).bodies, out.bodies), "orders cannot be foretold"


def test_files_tell_nothing_but_the_multiset(
    plan: CollectionPlan, theirs: Encoded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same messages from other people, in other files and another order give files of the same shape; sizes are
    fixed."""
    monkeypatch.setattr("cloister.collection.shuffler.release.GROUP", 16)
    monkeypatch.setattr("cloister.collection.shuffler.release.FILE", 64)
    turned = theirs.answers[np.random.default_rng(0).permutation(N)]
    form, shapes, names = ReleaseForm(plan.hash, plan.round()), list[Any](), set[bytes]()
    for name, answers in (("one", theirs.answers), ("other", turned)):
        folder, out = folder_of(tmp_path / name, theirs, answers), tmp_path / f"{name}-out"
        shuffle(plan, folder, out, rng=NoiseRng.for_tests(1))
        contents = [path.read_bytes() for path in sorted(out.iterdir())]
        groups = [[len(records) for records in form.batches(io.BytesIO(content))] for content in contents]
        assert groups == [[16] * 4] * 3 + [[8]]
        places = [form.place(io.BytesIO(content)) for content in contents]
        (own,) = {place.shuffle for place in places}
        names.add(own)
        shapes.append([attrs.evolve(place, shuffle=b"") for place in places] + [list(map(len, contents))])
        assert multiset(released(out, plan)) == multiset(theirs.messages)
    assert shapes[0] == shapes[1]
    assert len(names) == 2


def test_all_others_together_and_whoever_has_two_releases_are_left_with_her_messages(
    plan: CollectionPlan, theirs: Encoded, tmp_path: Path
) -> None:
    """The shuffler counts people, and cannot tell who would show theirs to the server. Where a plan is shuffled again
    with one person more, hers are the difference, and nobody need collude."""
    sent_by = theirs.messages
    assert sent_by.senders is not None
    hers, others = (multiset(sent_by.take(which)) for which in (sent_by.senders == 7, sent_by.senders != 7))
    heaps = list[Counter[bytes]]()
    for name, who in (("without", theirs.users != 7), ("with", slice(None))):
        shuffle(plan, written(tmp_path / name / "a.reports", theirs, who), tmp_path / f"{name}-out")
        heaps.append(multiset(released(tmp_path / f"{name}-out", plan)))
    assert heaps[1] - others == heaps[1] - heaps[0] == hers


def test_below_the_least_number_of_people_nothing_is_released(
    plan: CollectionPlan, theirs: Encoded, tmp_path: Path
) -> None:
    assert plan.crowd is not None
    assert plan.crowd.min_honest_users == 0.9 * N
    enough = int(0.9 * N)
    path = written(tmp_path / "few" / "a.reports", theirs, slice(0, enough - 1))
    written(tmp_path / "few" / "b.reports", theirs, slice(0, enough - 1))  # the same people twice are not more people
    engines: list[Any] = ["serial", Apart()]
    for engine in engines:
        with pytest.raises(
            Refused, match=r"179 people .* needs 180: nothing is released.*refused 179 people who have sent"
        ):
            shuffle(plan, path.parent, tmp_path / "out", engine=engine)
        assert [left.name for left in tmp_path.iterdir()] == ["few"]
    path = written(tmp_path / "enough" / "a.reports", theirs, slice(0, enough))
    assert shuffle(plan, path, tmp_path / "out").people == enough


def test_what_is_refused_is_counted(plan: CollectionPlan, theirs: Encoded, reports: Path, tmp_path: Path) -> None:
    some = slice(0, 7)
    foreign = BatchForm("0" * 64, 1, theirs.form.width)
    (reports / "z-foreign.reports").write_bytes(foreign.batch(theirs.users[some], theirs.answers[some]))
    flipped = bytearray((reports / "0.reports").read_bytes())
    flipped[len(flipped) // 3] ^= 1
    (reports / "z-flipped.reports").write_bytes(flipped)
    (reports / "z-other.reports").write_bytes(b"nothing")
    written(reports / "z-twice.reports", theirs, some)  # they have sent messages already
    written(reports / "z-strangers.reports", attrs.evolve(theirs, users=theirs.users + np.uint64(N)), some)
    done = shuffle(plan, reports, tmp_path / "out")
    assert done.intake.refused == Counter(
        {"another plan": 1, "damaged": 1, "no messages": 1, "duplicate": 7, "out of range": 7}
    )
    assert done.people == N
    assert multiset(released(tmp_path / "out", plan)) == multiset(theirs.messages)
    assert len(done.intake.lines()) == 5
    with pytest.raises(Refused, match=r"z-.*: refused"):
        shuffle(plan, reports, tmp_path / "strict", strict=True)
    assert not (tmp_path / "strict").exists()


def test_answers_of_no_question_and_to_questions_that_are_not_asked_are_refused_person_by_person(
    plan: CollectionPlan, theirs: Encoded, tmp_path: Path
) -> None:
    """A message's private number decides her role: one that answers another question cannot be hers."""
    answers, asked = theirs.answers.copy(), theirs.messages.questions
    forged, others = np.flatnonzero(asked == 0)[:5], np.flatnonzero(asked == 2)[:5]
    answers[forged, 2:10] = answers[others, 2:10]
    question, nothing, unknown = np.flatnonzero(asked == 1)[:3]
    answers[question, 0] = 3
    answers[[nothing, unknown]] = 0
    answers[nothing, :2] = np.frombuffer(np.uint16(NOTHING).tobytes(), np.uint8)
    answers[unknown, :2] = 99
    done = shuffle(plan, written(tmp_path / "r" / "a.reports", theirs, answers=answers), tmp_path / "out")
    assert done.intake.refused == Counter({"not as asked": 8})  # among them an answer to nothing
    assert done.people == done.messages == N - 8


def test_of_persons_who_send_several_messages_all_count_or_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Read in pieces that cut answers anywhere. One sends an answer to nothing, one an impossible message."""
    monkeypatch.setattr("cloister.collection.wire.batches.CHUNK", 100)
    monkeypatch.setattr("cloister.collection.shuffler.intake.BYTES", 70)
    plan = small_plan(rows=40, **MIXED)
    theirs, body = sent(plan), layout_of(plan.round()).bodies[0]
    answers = theirs.answers.copy()
    answers[20, body.start + 1 : body.start + body.bytes : body.bytes // body.messages] ^= 255
    answers[9, :2], answers[9, 2:] = 255, 0
    path = tmp_path / "a.reports"
    path.write_bytes(b"".join(theirs.form.batch(theirs.users[i : i + 1], answers[i : i + 1]) for i in range(40)))
    done, whole = shuffle(plan, path, tmp_path / "out"), theirs.messages
    assert (done.people, done.intake.refused) == (38, Counter({"impossible": 1, "not as asked": 1}))
    assert whole.senders is not None
    assert multiset(released(tmp_path / "out", plan)) == multiset(whole.take(~np.isin(whole.senders, [9, 20])))


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


def test_what_appeared_at_the_target_meanwhile_is_left_and_nothing_is_released_beside_it(
    plan: CollectionPlan, reports: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as the release of another shuffle, to which this one's would be the second."""
    real, target = Release.write_all, tmp_path / "out"

    def meanwhile(*given: Any) -> None:
        real(*given)
        target.mkdir()
        (target / "theirs.messages").write_bytes(b"a release")

    monkeypatch.setattr(Release, "write_all", meanwhile)
    with pytest.raises(InvalidInput, match="a plan is shuffled once"):
        shuffle(plan, reports, target)
    assert [path.name for path in target.iterdir()] == ["theirs.messages"]
    assert (target / "theirs.messages").read_bytes() == b"a release"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "reports"]


def test_while_a_shuffle_runs_nobody_else_reads_its_working_folder(
    plan: CollectionPlan, reports: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It nearly holds the order of arrival, beside a target that everybody may read."""
    real, modes = Release.write_all, list[int]()

    def meanwhile(*given: Any) -> None:
        modes.extend(path.stat().st_mode & 0o777 for path in tmp_path.glob(".out.*.tmp"))
        real(*given)

    monkeypatch.setattr(Release, "write_all", meanwhile)
    before = os.umask(0o022)
    try:
        shuffle(plan, reports, tmp_path / "out")
    finally:
        os.umask(before)
    assert modes == [0o700]


def test_nothing_public_of_a_person_is_in_her_message(plan: CollectionPlan) -> None:
    """The same row and number, encoded twice with secret noise: another private number, and now and then another
    role."""
    rows, users = np.zeros((N, D)), np.arange(N)
    one, other = (PlanEncoder(plan).encode(rows, users).messages for _ in range(2))
    assert not (one.bodies[:, :8] == other.bodies[:, :8]).all(axis=1).any()
    assert (one.questions != other.questions).any()  # all alike with probability below 1e-40


def test_two_questions_to_one_share_are_two_messages_of_two_roles(plan: CollectionPlan, tmp_path: Path) -> None:
    """Who is asked the same share's second question is drawn apart: she may have both, one or neither; who has none
    sends nothing."""
    encoder, parts = PlanEncoder(plan, noise=NoiseRng.for_tests(0)), plan.round().parts
    assert shuffling.roles(plan.round()) == ((0, 1, 2, 3),)
    encoder.round = round = attrs.evolve(plan.round(), parts=(*parts[:2], parts[0]))
    assert shuffling.roles(round) == ((0, 1), (2,))
    theirs = encoder.encode(np.random.default_rng(0).normal(0, 0.3, (N, D)), range(N))
    sent_by = theirs.messages
    assert sent_by.senders is not None
    some = len(np.unique(sent_by.senders))
    assert some < min(N, len(sent_by))
    answers, second = theirs.answers.copy(), layout_of(round).slots[1]
    (both, *_) = np.flatnonzero((answers[:, second.start : second.start + 2] != 255).all(axis=1))
    answers[both, second.start] = 99  # no such question: she counts for neither
    for said, forgers in ((theirs.answers, []), (answers, [both])):
        path = written(tmp_path / "r" / "a.reports", theirs, answers=said)
        senders = Senders(path, plan, round, False, lambda n: None)
        found = multiset(Messages.concatenate(list(senders.accepted())))
        assert found == multiset(sent_by.take(~np.isin(sent_by.senders, forgers)))
        refused = {"not as asked": 1} if forgers else {}
        assert (senders.people, senders.intake.refused) == (some - len(forgers), refused)
