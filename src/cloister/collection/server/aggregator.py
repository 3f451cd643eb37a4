"""Server: turns reports into answers, and answers into the next round or, after the last one, into centres.

    decode("plan/", "reports/")                    # a plan of one round
    advance("plan/", "reports/")                   # closes the open round of a plan of several and publishes the next

The server never sees a row. Closing a round is a pure function of the plan, the published answers and the accepted
reports. It takes effect when the file of its answers gets its name: a process killed before has closed nothing and may
start again; one killed later has closed the round. A round is closed once: after the last, ``advance`` computes the
result from the published answers.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, final

import attrs

from cloister._version import __version__
from cloister.collection.intake.sources import ReportInput
from cloister.collection.intake.validator import Intake
from cloister.collection.plan import bundle_folder
from cloister.collection.plan.plan import CollectionPlan
from cloister.collection.plan.transcript import RoundAnswers, Transcript
from cloister.collection.server.laws import unlikely_reports
from cloister.collection.server.messages import ShuffledMessages
from cloister.collection.server.reports import CollectedReports
from cloister.collection.server.robust import RobustDecoding
from cloister.collection.server.shares import unlikely_shares
from cloister.core.clustering import Clustering
from cloister.core.domains import Ball, Box, plain
from cloister.core.errors import InvalidInput, Refused
from cloister.core.questions import Round
from cloister.core.randomness import NoiseRng
from cloister.core.session import Pending, Session
from cloister.rows.workers.engine import Engine, open_engine
from cloister.run.layers.levels import clustering as clustering_level, facts, levels, notes, recorded
from cloister.run.result import Result


@final
@attrs.frozen(eq=False)
class Decoded:
    """Result of a plan of one round, and counts of accepted and refused reports."""

    result: Result
    intake: Intake


@final
@attrs.frozen(eq=False)
class Advanced:
    """Outcome of ``advance``.

    Attributes:
        transcript: the plan and its published answers.
        intake: counts of accepted and refused reports; None if no round was closed.
        result: the result, once all rounds are closed.
    """

    transcript: Transcript
    intake: Intake | None
    result: Result | None


def decode(
    plan: CollectionPlan | str | os.PathLike[str],
    reports: ReportInput,
    *,
    strict: bool = False,
    accept_shares: bool = False,
    robust: float | None = None,
    progress: Callable[[int], None] | None = None,
    engine: str | Engine = "serial",
    workers: int | None = None,
    scheduler: str | None = None,
) -> Decoded:
    """Cluster the users who have reported under a plan of one round.

    Counts and weights describe the users who reported; the others are missing from them, and have no other effect. If
    half of the planned users report, whoever they are, weights add up to about half of the planned rows, centres are
    those of the users who reported, and noise moves them by sqrt 2 times as much as planned; standard errors of local
    oracles follow the number of reports, and so does significance. If whether a user reports depends on her row, so do
    the centres, and nothing can detect it. If it depends on the questions that her number is asked, it can be detected
    (``server.shares``): users who choose their numbers count for many.

    The result is a pure function of the plan and the accepted reports, so anybody can recompute it.

    Args:
        plan: a plan, or its folder.
        reports: folders, files or patterns; bytes, open binary files; or any number of these, paths first. See
            ``CollectedReports``. Under Shuffled trust, a shuffler's release.
        strict: fail at the first refused file or report.
        accept_shares: decode even if response shares (``server.shares``) or report statistics (``server.laws``) deviate
            from the plan by more than chance; ``intake.doubts`` lists the deviations.
        robust: assume that this share of the reports of every question and level is malicious; see ``robust`` for the
            guarantee and the cost.
        progress: called with the number of reports just read.
        engine: engine that reads files, as for ``fit``; the result is the same, to the last bit.
        workers: as for ``fit``.
        scheduler: as for ``fit``.

    Raises:
        InvalidInput: no usable report, an unreadable file or plan, a plan of several rounds, or a share of malicious
            reports that decoding cannot withstand.
        Damaged, Refused: the plan is not as it was published, or its round comes out differently on this machine;
            something was refused under ``strict``; or shares or statistics deviate by more than chance.
    """
    start = Transcript(plan if isinstance(plan, CollectionPlan) else CollectionPlan.read(plan))
    if start.plan.length > 1:
        raise InvalidInput(
            f"this plan has {start.plan.length} rounds: close one at a time with 'cloister advance', which publishes "
            f"the next one"
        )
    reading = _robust_decoding(start, robust)
    with open_engine(engine, workers, scheduler) as runner:
        collected = _population(start, reports, strict, progress, runner)
        answers, session, clustering = _close_round(start, collected, accept_shares, reading)
    assert clustering is not None  # the only round is closed
    return Decoded(_result(start.extended(answers), session, clustering), collected.intake)


def advance(
    plan: str | os.PathLike[str],
    reports: ReportInput = (),
    *,
    only: int | None = None,
    min_reports: int = 1,
    strict: bool = False,
    accept_shares: bool = False,
    robust: float | None = None,
    progress: Callable[[int], None] | None = None,
    engine: str | Engine = "serial",
    workers: int | None = None,
    scheduler: str | None = None,
) -> Advanced:
    """Close the open round with these reports, and publish its answers, which open the next round.

    If two servers try at once, one publishes and the other is refused unless its answers are the same.

    Args:
        plan: the plan's folder.
        reports: as for ``decode``; files of earlier rounds are skipped.
        only: index of the round to close, from 0; nothing happens if it is closed already. Default: the open round.
        min_reports: minimum number of accepted reports; with fewer, nothing is published.
        strict: as for ``decode``.
        accept_shares: as for ``decode``.
        robust: as for ``decode``; the decoded answers are published.
        progress: as for ``decode``.
        engine: as for ``decode``.
        workers: as for ``decode``.
        scheduler: as for ``decode``.

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
                f"round {transcript.index + 1} of {transcript.plan.length} is open: give its reports (--reports)"
            )
        reading = _robust_decoding(transcript, robust)
        with open_engine(engine, workers, scheduler) as runner:
            collected = _population(transcript, reports, strict, progress, runner)
            answers, _, _ = _close_round(transcript, collected, accept_shares, reading)
        intake = collected.intake
        if intake.accepted < min_reports:
            raise InvalidInput(
                f"{intake.accepted:,} reports count, fewer than {min_reports:,}: nothing was closed or published"
            )
        transcript = bundle_folder.publish(transcript, plan, answers)
    return Advanced(transcript, intake, result_of(transcript) if transcript.done else None)


def result_of(transcript: Transcript) -> Result:
    """Compute the result of a plan whose rounds are all closed, a pure function of the published answers."""
    session, clustering = _run(transcript, None)
    if clustering is None:
        raise Refused(f"there is no result yet: {transcript.plan.length - transcript.index} rounds are not closed")
    return _result(transcript, session, clustering)


def _result(transcript: Transcript, session: Session[Any], clustering: Clustering) -> Result:
    plan = transcript.plan
    columns, composed = plan.names, plan.compose()
    every = levels(composed, plan.problem)
    privacy = plan.statement(session.rounds, tuple(notes(every, plan.column_names, clustering.details)))
    reports = [answers.reports for answers in transcript.closed]
    details = {**clustering.details, "plan": plan.hash, "reports": reports[0] if plan.length == 1 else reports}
    domain, column_facts = clustering_level(every).problem.domain, facts(every, plan.column_names)
    assert isinstance(domain, (Box, Ball))
    used = columns[: domain.dimension]
    if listed := {name: list(v) for name, v in plan.categories.items() if f"{name}={v[0]}" in used}:
        column_facts["categories"] = listed
    problem = {"k": plan.k, "rows": plan.rows, "bounds": plain(domain), **column_facts, "lattice unit": domain.unit}
    return Result(
        clustering.centers, clustering.weights, used, recorded(composed), problem, privacy, details, __version__
    )


def _close_round(
    transcript: Transcript,
    collected: CollectedReports | ShuffledMessages,
    accept_shares: bool,
    reading: RobustDecoding | None,
) -> tuple[RoundAnswers, Session[Any], Clustering | None]:
    """Return the open round's answers, the session they are from, and the clustering after the last round."""
    index, previous = transcript.index, transcript.record()
    session, clustering = _run(transcript, _OpenRound(index, collected, accept_shares), reading)
    if reading is not None:
        collected.intake.withstands, collected.intake.doubts = reading.share, collected.intake.doubts + reading.doubts()
    record = session.record
    following = None if clustering is not None else record.digests[index + 1]
    if (following is None) != (index + 1 == transcript.plan.length):
        raise Refused("the method asks more or fewer rounds than planned: a schedule must not depend on answers")
    answers = RoundAnswers(
        plan=transcript.plan.hash,
        round=index,
        previous=transcript.head,
        digest=previous.digests[index],
        following=following,
        lookups=tuple(record.lookups[len(previous.lookups) :]),
        reports=collected.intake.as_dict(transcript.plan.rows),
    )
    return answers, session, clustering


def _robust_decoding(transcript: Transcript, robust: float | None) -> RobustDecoding | None:
    """Return the decoding of the open round's answers. Raises: InvalidInput: it cannot withstand this share."""
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
class _OpenRound:
    """Population of the reports of the open round, which has this index."""

    index: int
    collected: CollectedReports | ShuffledMessages
    accept_shares: bool

    @property
    def people(self) -> int | None:
        """Number of users who count, once the reports are gathered."""
        return self.collected.people

    def gather(self, round: Round[Any], rng: NoiseRng) -> tuple[Any, ...]:
        """Sum the reports of the open round, and test them against chance.

        Raises:
            Pending: the round is a later one.
            Refused: the round is closed, and its reports may have changed; or the tests reject the reports.
        """
        if round.index > self.index:
            raise Pending(round)
        if round.index < self.index:
            raise Refused(
                f"the method looks again at round {round.index + 1}, which is closed: all lookups in a round must come "
                f"before the next round"
            )
        summaries = self.collected.gather(round, rng)
        intake = self.collected.intake
        deviations = [*unlikely_shares(round, intake.questions, summaries), *unlikely_reports(round, summaries)]
        if deviations and not self.accept_shares:
            raise Refused(
                f"{deviations[0]}: nothing was released. Find out who sends these reports, or accept them with "
                f"--accept-shares"
            )
        intake.doubts = deviations
        return summaries


def _population(
    transcript: Transcript, reports: ReportInput, strict: bool, progress: Callable[[int], None] | None, engine: Engine
) -> CollectedReports | ShuffledMessages:
    kind = ShuffledMessages if transcript.plan.crowd else CollectedReports
    return kind(reports, transcript.head, transcript.plan.rows, strict, progress, transcript.heads[:-1], engine)
