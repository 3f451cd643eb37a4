"""The server's side of a plan: it turns reports into answers, answers into the next round or, after the last one, into
centres. It never sees a row.

    decode("plan/", "reports/")                    # a plan of one round
    advance("plan/", "reports/")                   # closes the open round of a plan of several and publishes the next

Closing a round is a pure function of the plan, the published answers and the accepted reports. It takes effect at one
moment, when the file of its answers gets its name: a process killed before has closed nothing and may start again; one
killed later has closed the round. A round is closed once: after the last, ``advance`` computes the result from what is
published.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, final

import attrs

from cloister._version import __version__
from cloister.collection.intake.sources import Given
from cloister.collection.intake.validator import Intake
from cloister.collection.plan import bundle
from cloister.collection.plan.plan import CollectionPlan
from cloister.collection.plan.transcript import RoundAnswers, Transcript
from cloister.collection.server.laws import doubts, unlikely
from cloister.collection.server.messages import ShuffledMessages
from cloister.collection.server.reports import Collected
from cloister.collection.server.robust import RobustDecoding
from cloister.core.clustering import Clustering
from cloister.core.domains import Ball, Box, plain
from cloister.core.errors import InvalidInput, Refused
from cloister.core.questions import Round
from cloister.core.randomness import NoiseRng
from cloister.core.session import Pending, Session
from cloister.rows.workers.engine import Engine, open_engine
from cloister.run.layers.levels import clustering, facts, levels, notes, recorded
from cloister.run.result import Result


@final
@attrs.frozen(eq=False)
class Decoded:
    """The result of a plan of one round. Args: result, intake (how many reports were accepted and refused)."""

    result: Result
    intake: Intake


@final
@attrs.frozen(eq=False)
class Advanced:
    """A plan after ``advance``. Args: transcript (the plan and its published answers), intake (how many reports were
    accepted and refused; None if no round was closed), result (once all rounds are closed)."""

    transcript: Transcript
    intake: Intake | None
    result: Result | None


def decode(
    plan: CollectionPlan | str | os.PathLike[str],
    reports: Given,
    *,
    strict: bool = False,
    accept_shares: bool = False,
    robust: float | None = None,
    progress: Callable[[int], None] | None = None,
    engine: str | Engine = "serial",
    workers: int | None = None,
    scheduler: str | None = None,
) -> Decoded:
    """Cluster the users who have reported under a plan of one round. Under Shuffled trust, ``reports`` is what the
    shuffler released.

    Counts and weights describe the users who reported; the others are missing from them, and have no other effect. If
    half of the planned users report, whoever they are, weights add up to about half of the planned rows, centres are
    those of the users who reported, and noise moves them by sqrt 2 times as much as planned; standard errors of local
    oracles follow the number of reports, so significance does too. If whether a user reports depends on her row, so do
    the centres, and nothing can detect it. If it depends on the questions that her number is asked, it can be detected:
    users who chose their numbers count for many (``collection.server.laws``).

    The result is a pure function of the plan and the accepted reports, so anybody can recompute it.

    Args:
        plan: a plan, or its folder.
        reports: folders, files or patterns; bytes, binary files that are open; or any number of these, paths first.
            See ``Collected``.
        strict: fail at the first refused file or report.
        accept_shares: go on even if the share of users who answered a question or a level differs from the planned
            share by more than chance explains, or what they say from what encoders make (``collection.server.laws``);
            ``intake.doubts`` says so.
        robust: read the answers as if so large a share of the reports of every question and level lied: see
            ``robust``, which says what this promises and costs.
        progress: called with the number of reports just read.
        engine, workers, scheduler: where files are read, as for ``fit``; the result is the same, to the last bit.

    Raises:
        InvalidInput: no usable report, an unreadable file or plan, a plan of several rounds, or a share of liars that
            nothing withstands.
        Damaged, Refused: the plan is not as it was published, or its round comes out differently here; something was
            refused under ``strict``; or users chose their numbers, or send what no encoder made.
    """
    start = Transcript(plan if isinstance(plan, CollectionPlan) else CollectionPlan.read(plan))
    if start.plan.length > 1:
        raise InvalidInput(
            f"this plan has {start.plan.length} rounds: 'cloister advance' closes one at a time and publishes what "
            f"the next one asks"
        )
    reading = _reading(start, robust)
    with open_engine(engine, workers, scheduler) as runner:
        collected = _collected(start, reports, strict, progress, runner)
        answers, session, found = _closed(start, collected, accept_shares, reading)
    assert found is not None  # a plan of one round has no open one left
    return Decoded(_result(start.grown(answers), session, found), collected.intake)


def advance(
    plan: str | os.PathLike[str],
    reports: Given = (),
    *,
    only: int | None = None,
    least: int = 1,
    strict: bool = False,
    accept_shares: bool = False,
    robust: float | None = None,
    progress: Callable[[int], None] | None = None,
    engine: str | Engine = "serial",
    workers: int | None = None,
    scheduler: str | None = None,
) -> Advanced:
    """Close the open round with these reports, and publish its answers, which open the next round.

    If two servers try at once, one publishes and the other is refused unless its answers are the very same.

    Args:
        plan: the folder.
        reports: as for ``decode``; files of earlier rounds are skipped.
        only: index of the round to close, from 0; a closed one is left as it is. Default: the open round.
        least: least number of accepted reports; with fewer, nothing is published.
        strict, accept_shares, robust, progress, engine, workers, scheduler: as for ``decode``. What is published is
            what was read.

    Raises:
        InvalidInput: too few reports, or a file that cannot be read or written. Nothing was published.
        Damaged, Refused: as for ``decode``; or the method makes another lookup in a closed round.
    """
    transcript, intake = Transcript.read(plan), None
    if only is not None and not 0 <= only <= min(transcript.index, transcript.plan.length - 1):
        raise InvalidInput(f"round {only + 1} is not open: the open one is {transcript.index + 1}")
    if not transcript.done and only in (None, transcript.index):
        if not isinstance(reports, (str, os.PathLike)) and not reports:
            raise InvalidInput(
                f"round {transcript.index + 1} of {transcript.plan.length} is open: give the reports that close it "
                f"(--reports)"
            )
        reading = _reading(transcript, robust)
        with open_engine(engine, workers, scheduler) as runner:
            collected = _collected(transcript, reports, strict, progress, runner)
            answers, _, _ = _closed(transcript, collected, accept_shares, reading)
        intake = collected.intake
        if intake.accepted < least:
            raise InvalidInput(
                f"{intake.accepted:,} reports count, at least {least:,} are wanted: nothing was closed or published"
            )
        transcript = bundle.publish(transcript, plan, answers)
    return Advanced(transcript, intake, result_of(transcript) if transcript.done else None)


def result_of(transcript: Transcript) -> Result:
    """The result of a plan whose rounds are all closed: a pure function of what is published."""
    session, found = _run(transcript, None)
    if found is None:
        raise Refused(f"{transcript.plan.length - transcript.index} rounds are not closed yet: there is no result")
    return _result(transcript, session, found)


def _result(transcript: Transcript, session: Session[Any], found: Clustering) -> Result:
    plan = transcript.plan
    columns, composed = plan.names, plan.compose()
    every = levels(composed, plan.problem)
    privacy = plan.statement(session.rounds, tuple(notes(every, plan.column_names, found.details)))
    reports = [answers.reports for answers in transcript.closed]
    details = {**found.details, "plan": plan.hash, "reports": reports[0] if plan.length == 1 else reports}
    domain, more = clustering(every).problem.domain, facts(every, plan.column_names)
    assert isinstance(domain, (Box, Ball))
    used = columns[: domain.dimension]
    if listed := {name: list(v) for name, v in plan.categories.items() if f"{name}={v[0]}" in used}:
        more["categories"] = listed
    problem = {"k": plan.k, "rows": plan.rows, "bounds": plain(domain), **more, "lattice unit": domain.unit}
    return Result(found.centers, found.weights, used, recorded(composed), problem, privacy, details, __version__)


def _closed(
    transcript: Transcript, collected: Collected | ShuffledMessages, accept_shares: bool, reading: RobustDecoding | None
) -> tuple[RoundAnswers, Session[Any], Clustering | None]:
    """The answers of the open round from its reports, the session that found them, and the clustering after the last
    round."""
    index, before = transcript.index, transcript.record()
    session, found = _run(transcript, _Open(index, collected, accept_shares), reading)
    if reading is not None:
        collected.intake.withstands, collected.intake.doubts = reading.share, collected.intake.doubts + reading.doubts()
    record = session.record
    following = None if found is not None else record.digests[index + 1]
    if (following is None) != (index + 1 == transcript.plan.length):
        raise Refused("the method asks another number of rounds than planned: a schedule must not depend on answers")
    answers = RoundAnswers(
        plan=transcript.plan.hash,
        round=index,
        previous=transcript.head,
        digest=before.digests[index],
        following=following,
        lookups=tuple(record.lookups[len(before.lookups) :]),
        reports=collected.intake.as_dict(transcript.plan.rows),
    )
    return answers, session, found


def _reading(transcript: Transcript, robust: float | None) -> RobustDecoding | None:
    """How the open round's answers are read. Raises: InvalidInput: it cannot withstand that share of liars."""
    if robust is None:
        return None
    reading = RobustDecoding(robust, transcript.plan.k)
    reading.check(transcript.plan.rounds()[transcript.index])
    return reading


def _run(
    transcript: Transcript, population: Any, reading: RobustDecoding | None = None
) -> tuple[Session[Any], Clustering | None]:
    """Run the method from the start, to its next unanswered round or to its end."""
    plan, composed = transcript.plan, transcript.plan.compose()
    session: Session[Any] = Session(
        plan.problem,
        plan.seed,
        population,
        accountant=plan.accountant(composed),
        record=transcript.record(),
        reading=reading,
    )
    try:
        return session, composed.value.cluster(plan.problem, session, plan.seed.child("method"))
    except Pending:
        return session, None


@final
@attrs.frozen
class _Open:
    """A population of the open round's reports. Args: index (of the round), collected, accept_shares (as for
    ``decode``)."""

    index: int
    collected: Collected | ShuffledMessages
    accept_shares: bool

    @property
    def people(self) -> int | None:
        """Number of users who count, once the reports are gathered."""
        return self.collected.people

    def gather(self, round: Round[Any], rng: NoiseRng) -> tuple[Any, ...]:
        """Raises: Pending: a later round. Refused: an earlier round, whose reports may have changed; or users chose
        their numbers, or send what no encoder made."""
        if round.index > self.index:
            raise Pending(round)
        if round.index < self.index:
            raise Refused(
                f"the method looks further at round {round.index + 1}, which is closed: all lookups in a round must "
                f"come before the method asks the next one"
            )
        summaries = self.collected.gather(round, rng)
        found = [*doubts(round, self.collected.intake.questions, summaries), *unlikely(round, summaries)]
        if found and not self.accept_shares:
            raise Refused(
                f"{found[0]}: nothing was released. Find out who sends these reports, or take them as they are "
                f"(--accept-shares)"
            )
        self.collected.intake.doubts = found
        return summaries


def _collected(
    transcript: Transcript, reports: Given, strict: bool, progress: Callable[[int], None] | None, engine: Engine
) -> Collected | ShuffledMessages:
    kind = ShuffledMessages if transcript.plan.crowd else Collected
    return kind(reports, transcript.head, transcript.plan.rows, strict, progress, transcript.heads[:-1], engine)
