"""Collector of reports: parse, check and store the reports of a request.

A request with a malformed part is refused whole (``RequestRejected``). Otherwise each report counts by itself: the
first one of each user. Whether an encoder could have sent the answer is check when decoding, not here: whoever may
use a user number can as well send a possible lie, so a check here would protect nobody, at the cost of a summary per
batch. An impossible report therefore uses up its number.

A plan's folder only grows. When the server has closed a round (``cloister advance``), the file of its answers is there
and the next round is open: its name, and the form of its reports, follow from the plan and these answers.
"""

from __future__ import annotations

import asyncio
import errno
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import ExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any, final

import attrs
import numpy as np

from cloister.collection.plan.plan import CollectionPlan
from cloister.collection.plan.transcript import Transcript, name
from cloister.collection.service.committing import Committer, DiskFailed
from cloister.collection.service.limits import DEFAULT, REASONS, Limits, PendingBytes, Rates, ServiceCounts, retry_after
from cloister.collection.service.segments import Segments, locked_folder
from cloister.collection.service.tickets import Issuer
from cloister.collection.wire.batches import BATCH, PREFIX, REPORT, STAMP, TICKETED, BatchForm, Parsed, form_of
from cloister.core.errors import CloisterError, Damaged, InvalidInput, Refused, transient_errors
from cloister.core.types import Bools, Ints

LOOK = 1.0
"""Seconds between two checks of the plan's folder."""

STALE = 300.0
"""Seconds without a check after which the folder counts as unwatched: it is unreadable, or its file system hangs."""

AT_ONCE = 16
"""Tickets of a request that are check on the event loop.

If none of them is valid, the request is refused, so that a sender without a ticket costs no more. Further ones are
check in a thread, one request at a time (some thousands per second).
"""

SHORT = 2**16
"""Largest request, in bytes, that is parsed on the event loop.

Longer ones are parsed in a thread, one at a time: with many tiny batches one takes a second.
"""

_STATUS = {"duplicate": 409, "out of range": 400, "ticket": 401}


@final
@attrs.frozen(eq=False)
class OpenRound:
    """Open round of a plan.

    Attributes:
        plan: the plan's hash.
        users: planned number of users.
        form: form of the round's reports.
        earlier: stamps of the closed rounds, hex.
        next: file that exists once this round is closed.
    """

    plan: str
    users: int
    form: BatchForm
    earlier: frozenset[str]
    next: Path


def open_round(folder: Path, tickets: bool, last: OpenRound | None = None) -> OpenRound | None:
    """Read the open round from a plan's folder.

    Args:
        folder: the plan's folder.
        tickets: whether reports have tickets.
        last: the round that was open before.

    Returns:
        The round, or None after the last.

    Raises:
        Damaged, Refused, InvalidInput: the plan cannot be used, its round comes out differently on this machine, or
            does not follow the last one.
    """
    transcript = Transcript.read(folder)
    if last is not None and last.form.head not in transcript.heads:
        raise Damaged(
            f"{folder} holds another plan, or other answers, than when round {last.form.round} was opened: restore them"
        )
    if transcript.done:
        return None
    plan, number = transcript.plan, transcript.index + 1
    form = form_of(transcript.head, transcript.round(), tickets)
    earlier = frozenset(head[: 2 * STAMP] for head in transcript.heads[:-1])
    return OpenRound(plan.hash, plan.rows, form, earlier, folder / name(number))


def check_trust(plan: CollectionPlan, shuffle: bool) -> None:
    """Raise Refused unless ``shuffle`` agrees with the plan's trust model."""
    if shuffle and plan.crowd is None:
        raise Refused("this plan has trust Local: its reports need no shuffler, so collect them without --shuffle")
    if not shuffle and plan.crowd is not None:
        raise Refused(
            "this plan has trust Shuffled: only its shuffler may see who sent what. Collect on the shuffler's machine, "
            "with --shuffle"
        )


def check_separate(plan: Path, out: Path) -> None:
    """Raise InvalidInput if the folder of reports and the plan's, which is public, are not disjoint."""
    public, reports = plan.resolve(), out.resolve()
    if public.is_relative_to(reports) or reports.is_relative_to(public):
        raise InvalidInput(
            f"{out} contains the plan's folder or is inside it: reports must stay apart from public files. Choose "
            f"another --out, beside {plan}"
        )


class RequestRejected(Exception):
    """Request that is refused whole, with an HTTP status and a reason (one of ``REASONS``)."""

    def __init__(self, status: int, reason: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(REASONS[reason])
        self.status, self.reason, self.headers = status, reason, headers or {}


@final
@attrs.frozen
class Receipt:
    """Outcome of a request: HTTP status, number of reports stored, and of reports refused, per reason."""

    status: int
    accepted: int
    refused: Counter[str]


@final
class Collector:
    """Collector of one plan, without its HTTP.

    Args:
        plan: the plan's folder.
        out: folder of the reports.
        shuffle: whether this is the shuffler, for a plan of trust Shuffled.
        issuer: issuer whose tickets reports need; None: no tickets.
        limits: rates and sizes allowed.
        on_event: callback for events: rounds, and a disk that fails or works again.

    Attributes:
        opened: the open round; None between two rounds and after the last.
        done: whether all rounds are closed.
        waiting: why the next round cannot be opened yet; None if nothing prevents it.

    Raises:
        Refused: another trust model, no open round, or another collector.
        Damaged, InvalidInput: the plan or the folder cannot be used.
        Unavailable: there is no plan (yet).
    """

    def __init__(
        self,
        plan: Path,
        out: Path,
        *,
        shuffle: bool = False,
        issuer: Issuer | None = None,
        limits: Limits = DEFAULT,
        on_event: Callable[[dict[str, Any]], None] = lambda event: None,
    ) -> None:
        with transient_errors(errno.ENOENT):  # the file system may not be mounted yet
            self.plan = CollectionPlan.read(plan)
        check_trust(self.plan, shuffle)
        check_separate(plan, out)
        self.opened = open_round(plan, issuer is not None)
        if self.opened is None:
            raise Refused("all rounds of this plan are closed: there is nothing to collect")
        self.limits, self.counts, self.rates, self.done = limits, ServiceCounts(), Rates(limits.rate), False
        self._folder, self._out, self._issuer, self._on_event = plan, out, issuer, on_event
        self.pending = PendingBytes(limits, self.counts)
        self.waiting: str | None = None
        self._last = self.opened
        self._committer: Committer | None = None
        self._last_look = time.monotonic()
        self._reading, self._checking = asyncio.Lock(), asyncio.Lock()
        with ExitStack() as stack:
            stack.enter_context(locked_folder(out, private=shuffle))
            self._segments = self._files(self.opened)
            self._resources = stack.pop_all()

    @property
    def reports(self) -> int:
        """Number of the open round's reports on the disk."""
        return self._segments.seen.count

    @property
    def damaged(self) -> int:
        """Number of batches in the round's earlier files that cannot be read."""
        return self._segments.damaged

    @property
    def trouble(self) -> str | None:
        """Reason why the disk fails at the moment; None if it works."""
        return None if self._committer is None else self._committer.trouble

    @property
    def taking(self) -> bool:
        """Whether a round is open for reports."""
        return self.opened is not None and self._committer is not None

    @property
    def watching(self) -> bool:
        """Whether the plan's folder was check lately, so that a next round will be noticed."""
        return time.monotonic() - self._last_look < STALE

    @property
    def state(self) -> str:
        """State: "taking reports", "waiting" for the next round, or "closed" after the last."""
        return "closed" if self.done else "taking reports" if self.taking else "waiting"

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Accept reports for as long as the block runs, then write those that wait."""
        self._committer, self._last_look = self._writer(), time.monotonic()
        watching = asyncio.get_running_loop().create_task(self._watch())
        try:
            yield
        finally:
            watching.cancel()
            with suppress(asyncio.CancelledError):
                await watching
            if self._committer is not None:
                await self._committer.close()
            self._resources.close()

    async def receive(self, body: bytes) -> Receipt:
        """Store the reports of a request. Raises: RequestRejected."""
        opened, committer = self.opened, self._committer
        if opened is None or committer is None:
            raise (
                RequestRejected(410, "closed")
                if self.done
                else RequestRejected(503, "between rounds", retry_after(LOOK))
            )
        self.counts.requests += 1
        parsed = await self._read(opened, body)
        eligible, refused = parsed.users < opened.users, Counter[str]()
        refused["out of range"] = len(eligible) - int(eligible.sum())
        if self._issuer is not None:
            valid = await self._check_tickets(self._issuer, opened, parsed, eligible)
            refused["ticket"] = int((eligible & ~valid).sum())
            eligible &= valid
        accepted, sent = 0, int(eligible.sum())
        if sent:
            try:
                accepted = await committer.add(parsed.users[eligible], parsed.answers[eligible])
            except DiskFailed:
                raise RequestRejected(
                    503, "disk" if self.opened is opened else "between rounds", retry_after(5)
                ) from None
        refused["duplicate"] = sent - accepted
        refused = +refused
        self.counts.refused += refused
        single = body[0] in (REPORT, REPORT + TICKETED) and len(eligible) == 1
        status = (201 if accepted else _STATUS[next(iter(refused))]) if single else 200
        return Receipt(status, accepted, refused)

    async def _read(self, opened: OpenRound, body: bytes) -> Parsed:
        if len(body) <= SHORT:
            return self._parse(opened, body)
        async with self._reading:
            return await asyncio.to_thread(self._parse, opened, body)

    def _parse(self, opened: OpenRound, body: bytes) -> Parsed:
        """Parse a request. Raises: RequestRejected: it is damaged, or not of the open round."""
        plain = body[:1] in (bytes([REPORT]), bytes([BATCH]))
        if opened.form.tickets and plain:
            raise RequestRejected(401, "ticket")
        parsed = opened.form.parse(body)
        if not body or parsed.error is not None:
            old = body[1:PREFIX][: len(opened.form.stamp)].hex() in opened.earlier
            raise RequestRejected(400, "another round" if old else parsed.error or "no reports")
        if parsed.damaged or parsed.end < len(body):
            raise RequestRejected(400, "damaged")
        return parsed

    async def _check_tickets(self, issuer: Issuer, opened: OpenRound, parsed: Parsed, eligible: Bools) -> Bools:
        """Return which of the ``eligible`` reports have a valid ticket. Raises: RequestRejected."""
        assert parsed.tickets is not None
        if len(eligible) > self.limits.tickets:
            raise RequestRejected(413, "too large")
        users, tickets, rows = parsed.users, parsed.tickets, np.flatnonzero(eligible)

        def check(candidates: Ints) -> list[bool]:
            return issuer.valid(opened.plan, ((int(users[row]), tickets[row].tobytes()) for row in candidates.tolist()))

        answers = check(rows[:AT_ONCE])
        if len(rows) > AT_ONCE:
            if not any(answers):
                raise RequestRejected(401, "ticket")
            async with self._checking:
                answers += await asyncio.to_thread(check, rows[AT_ONCE:])
        valid = np.zeros(len(eligible), bool)
        valid[rows] = answers
        return valid

    async def _watch(self) -> None:
        """Open the next round when the plan's folder has the answers of this one."""
        while True:  # no error ends the watch, or all later rounds would stay unopened
            await asyncio.sleep(LOOK)
            try:
                await self._look()
            except CloisterError as error:
                self._report_waiting(str(error))
                if self.opened is not None:  # the folder or its plan is gone
                    continue
            except Exception as error:
                self._report_waiting(f"{type(error).__name__}: {error}")
                continue
            else:
                self.waiting = None
            self._last_look = time.monotonic()  # also if the folder was read, but its content cannot be used yet

    async def _look(self) -> None:
        """Forget idle addresses, and open the next round if there is one; any exception may be raised."""
        self.rates.forget()
        if self.opened is not None:
            closed = await asyncio.to_thread(self.opened.next.exists)
            # the plan is checked last, or answers of another plan put there meanwhile would count
            await asyncio.to_thread(self._check_plan)
            if closed:
                self._last, self.opened = self.opened, None
        if self.opened is None and not self.done:
            await self._next()

    def _check_plan(self) -> None:
        """Raise Damaged or InvalidInput if the folder does not hold this plan any more."""
        if CollectionPlan.read(self._folder).hash != self.plan.hash:
            raise Damaged(
                f"{self._folder} now holds another plan than {self.plan.hash[:16]}, which is being collected: restore "
                f"it, or end this collector and start one for the new plan, with another --out"
            )

    async def _next(self) -> None:
        if self._committer is not None:
            await self._committer.close()
            self._committer = None
        opened = await asyncio.to_thread(open_round, self._folder, self._issuer is not None, self._last)
        if opened is not None:
            self._segments = await asyncio.to_thread(self._files, opened)
            self._committer = self._writer()
        self.opened, self.done = opened, opened is None
        self.say("closed" if opened is None else "round", round=opened.form.round if opened else self.plan.length)

    def _report_waiting(self, why: str) -> None:
        """Report once why the next round cannot be opened, or the folder not be read."""
        if why != self.waiting:
            self.waiting = why
            self.say("waiting", why=why)

    def _files(self, opened: OpenRound) -> Segments:
        return Segments(self._out, attrs.evolve(opened.form, tickets=False), opened.users)

    def _writer(self) -> Committer:
        return Committer(
            self._segments, self.counts, lambda why: self.say("disk works" if why is None else "disk", why=why)
        )

    def say(self, event: str, **facts: Any) -> None:
        """Report an event."""
        with suppress(Exception):  # a closed output must not stop the collection
            self._on_event({"event": event, **{name: value for name, value in facts.items() if value is not None}})
