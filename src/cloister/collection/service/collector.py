"""What a collector does with the bytes of a request: it parses, checks and keeps the reports, and answers by a status.

A request is refused whole (``RequestRejected``) if its form is wrong anywhere. Otherwise each report counts by
itself, and a
user's first one counts. Whether an answer is one that an encoder sends is for whoever decodes: who may use a number can
send a possible lie for it as well, so a check at the door protects nobody, and it costs a summary per batch. So an
impossible report uses its number up.

A plan's folder only grows. When a server has closed a round (``cloister advance``), the file of its answers stands
there, and the next round is open: its name, and the form of its reports, come from the plan and these answers.
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
from cloister.collection.service.limits import DEFAULT, REASONS, HeldBytes, Limits, Rates, ServiceCounts, retry_after
from cloister.collection.service.segments import Segments, collecting
from cloister.collection.service.tickets import Issuer
from cloister.collection.wire.batches import BATCH, PREFIX, REPORT, STAMP, TICKETED, BatchForm, Parsed, form_of
from cloister.core.errors import CloisterError, Damaged, InvalidInput, Refused, transient_errors
from cloister.core.types import Bools, Ints

LOOK = 1.0
"""Seconds between two looks into the plan's folder."""

STALE = 300.0
"""Seconds without a look after which nobody watches the folder: it cannot be read, or its file system hangs."""

AT_ONCE = 16
"""Tickets of a request that are checked on the event loop. If none of them is valid, the request is refused: who has no
ticket costs no more. Further ones are checked in a thread, of one request at a time: a second has room for some
thousands."""

SHORT = 2**16
"""Largest request, in bytes, that is parsed on the event loop. Longer ones are parsed in a thread, one at a time: many
tiny batches in one take a second."""

_STATUS = {"duplicate": 409, "out of range": 400, "ticket": 401}


@final
@attrs.frozen(eq=False)
class OpenRound:
    """The open round of a plan. Args: plan (its hash), users (planned), form (of the round's reports), earlier
    (stamps of the closed rounds, hex), next (file that will stand there when this one is closed)."""

    plan: str
    users: int
    form: BatchForm
    earlier: frozenset[str]
    next: Path


def open_round(folder: Path, tickets: bool, last: OpenRound | None = None) -> OpenRound | None:
    """The open round of a plan's folder; None after the last. Args: tickets (whether its reports have one), last (the
    round that was open before). Raises: Damaged, Refused, InvalidInput: the plan cannot be used, its round comes out
    differently here, or it does not follow the last one."""
    transcript = Transcript.read(folder)
    if last is not None and last.form.head not in transcript.heads:
        raise Damaged(
            f"{folder} has another plan, or other answers, than those that round {last.form.round} was opened with: "
            f"put back what was there"
        )
    if transcript.done:
        return None
    plan, number = transcript.plan, transcript.index + 1
    form = form_of(transcript.head, transcript.round(), tickets)
    earlier = frozenset(head[: 2 * STAMP] for head in transcript.heads[:-1])
    return OpenRound(plan.hash, plan.rows, form, earlier, folder / name(number))


def check_trust(plan: CollectionPlan, shuffle: bool) -> None:
    """Raises: Refused: the plan's messages are for a shuffler, or its reports are not."""
    if shuffle and plan.crowd is None:
        raise Refused("this plan has trust Local: its reports need no shuffler, so collect them without --shuffle")
    if not shuffle and plan.crowd is not None:
        raise Refused(
            "this plan has trust Shuffled: only its shuffler may see who sent what. Collect on the shuffler's machine, "
            "with --shuffle"
        )


def check_apart(plan: Path, out: Path) -> None:
    """Raises: InvalidInput: the folder of a plan, which is given to everybody, and that of reports are one, or one of
    them is inside the other."""
    public, kept = plan.resolve(), out.resolve()
    if public.is_relative_to(kept) or kept.is_relative_to(public):
        raise InvalidInput(
            f"{out} holds the plan's folder, or is in it: reports are kept apart from what everybody is given. Choose "
            f"another --out, beside {plan}"
        )


class RequestRejected(Exception):
    """A request that is refused whole. Args: status (of HTTP), reason (one of ``REASONS``), headers."""

    def __init__(self, status: int, reason: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(REASONS[reason])
        self.status, self.reason, self.headers = status, reason, headers or {}


@final
@attrs.frozen
class Receipt:
    """What became of a request. Args: status (of HTTP), accepted (reports on the disk), refused (reports, per
    reason)."""

    status: int
    accepted: int
    refused: Counter[str]


@final
class Collector:
    """The collector of one plan, without its HTTP.

    Args:
        plan: its folder.
        out: folder of the reports.
        shuffle: whether this is the shuffler, for a plan of trust Shuffled.
        issuer: whose tickets are needed; None: none are.
        limits: what is allowed.
        told: called with events: of rounds, of a disk that fails or works again.

    Attributes:
        opened: the open round; None between two rounds and after the last.
        done: whether all rounds are closed.
        waiting: why the next round cannot be opened yet; None if nothing prevents it.

    Raises: Refused: another trust model, no open round, or another collector. Damaged, InvalidInput: the plan or the
        folder cannot be used. Unavailable: there is no plan (yet).
    """

    def __init__(
        self,
        plan: Path,
        out: Path,
        *,
        shuffle: bool = False,
        issuer: Issuer | None = None,
        limits: Limits = DEFAULT,
        told: Callable[[dict[str, Any]], None] = lambda event: None,
    ) -> None:
        with transient_errors(errno.ENOENT):  # a file system that is not mounted yet
            self.plan = CollectionPlan.read(plan)
        check_trust(self.plan, shuffle)
        check_apart(plan, out)
        self.opened = open_round(plan, issuer is not None)
        if self.opened is None:
            raise Refused("all rounds of this plan are closed: there is nothing to collect")
        self.limits, self.counts, self.rates, self.done = limits, ServiceCounts(), Rates(limits.rate), False
        self._folder, self._out, self._issuer, self._told = plan, out, issuer, told
        self.held = HeldBytes(limits, self.counts)
        self.waiting: str | None = None
        self._last = self.opened
        self._committer: Committer | None = None
        self._looked = time.monotonic()
        self._reading, self._checking = asyncio.Lock(), asyncio.Lock()
        with ExitStack() as stack:
            stack.enter_context(collecting(out, private=shuffle))
            self._segments = self._files(self.opened)
            self._held = stack.pop_all()

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
        """Why the disk takes nothing at the moment; None if it works."""
        return None if self._committer is None else self._committer.trouble

    @property
    def taking(self) -> bool:
        """Whether a round is open for reports."""
        return self.opened is not None and self._committer is not None

    @property
    def watching(self) -> bool:
        """Whether the plan's folder was looked into lately, so that a next round will be seen."""
        return time.monotonic() - self._looked < STALE

    @property
    def state(self) -> str:
        """What the collector does: "taking reports", "waiting" for the next round, or "closed" after the last."""
        return "closed" if self.done else "taking reports" if self.taking else "waiting"

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Take reports for as long as the block runs. At its end, what waits is written."""
        self._committer, self._looked = self._writer(), time.monotonic()
        watching = asyncio.get_running_loop().create_task(self._watch())
        try:
            yield
        finally:
            watching.cancel()
            with suppress(asyncio.CancelledError):
                await watching
            if self._committer is not None:
                await self._committer.close()
            self._held.close()

    async def receive(self, body: bytes) -> Receipt:
        """Keep the reports of a request. Raises: Turned."""
        opened, committer = self.opened, self._committer
        if opened is None or committer is None:
            raise (
                RequestRejected(410, "closed")
                if self.done
                else RequestRejected(503, "between rounds", retry_after(LOOK))
            )
        self.counts.requests += 1
        found = await self._read(opened, body)
        fine, refused = found.users < opened.users, Counter[str]()
        refused["out of range"] = len(fine) - int(fine.sum())
        if self._issuer is not None:
            valid = await self._valid(self._issuer, opened, found, fine)
            refused["ticket"] = int((fine & ~valid).sum())
            fine &= valid
        accepted, sent = 0, int(fine.sum())
        if sent:
            try:
                accepted = await committer.add(found.users[fine], found.answers[fine])
            except DiskFailed:
                raise RequestRejected(
                    503, "disk" if self.opened is opened else "between rounds", retry_after(5)
                ) from None
        refused["duplicate"] = sent - accepted
        refused = +refused
        self.counts.refused += refused
        single = body[0] in (REPORT, REPORT + TICKETED) and len(fine) == 1
        status = (201 if accepted else _STATUS[next(iter(refused))]) if single else 200
        return Receipt(status, accepted, refused)

    async def _read(self, opened: OpenRound, body: bytes) -> Parsed:
        if len(body) <= SHORT:
            return self._parsed(opened, body)
        async with self._reading:
            return await asyncio.to_thread(self._parsed, opened, body)

    def _parsed(self, opened: OpenRound, body: bytes) -> Parsed:
        """A request's reports. Raises: Turned: it is not whole, or not of the open round."""
        plain = body[:1] in (bytes([REPORT]), bytes([BATCH]))
        if opened.form.tickets and plain:
            raise RequestRejected(401, "ticket")
        found = opened.form.parse(body)
        if not body or found.wrong is not None:
            old = body[1:PREFIX][: len(opened.form.stamp)].hex() in opened.earlier
            raise RequestRejected(400, "another round" if old else found.wrong or "no reports")
        if found.damaged or found.end < len(body):
            raise RequestRejected(400, "damaged")
        return found

    async def _valid(self, issuer: Issuer, opened: OpenRound, found: Parsed, fine: Bools) -> Bools:
        """Which reports have a valid ticket, among those that are fine so far. Raises: Turned."""
        assert found.tickets is not None
        if len(fine) > self.limits.tickets:
            raise RequestRejected(413, "too large")
        users, tickets, rows = found.users, found.tickets, np.flatnonzero(fine)

        def checked(some: Ints) -> list[bool]:
            return issuer.valid(opened.plan, ((int(users[row]), tickets[row].tobytes()) for row in some.tolist()))

        answers = checked(rows[:AT_ONCE])
        if len(rows) > AT_ONCE:
            if not any(answers):
                raise RequestRejected(401, "ticket")
            async with self._checking:
                answers += await asyncio.to_thread(checked, rows[AT_ONCE:])
        valid = np.zeros(len(fine), bool)
        valid[rows] = answers
        return valid

    async def _watch(self) -> None:
        """Open the next round when the plan's folder has the answers of this one. Whatever a look meets, the next one
        may not: a watch that ended would leave all later rounds unopened."""
        while True:
            await asyncio.sleep(LOOK)
            try:
                await self._look()
            except CloisterError as error:
                self._wait(str(error))
                if self.opened is not None:  # the folder, or the plan in it, is gone
                    continue
            except Exception as error:
                self._wait(f"{type(error).__name__}: {error}")
                continue
            else:
                self.waiting = None
            self._looked = time.monotonic()  # also where it was read, and what it has cannot be used yet

    async def _look(self) -> None:
        """Forget addresses, and open the next round if there is one. Raises: any exception: not possible now."""
        self.rates.forget()
        if self.opened is not None:
            closed = await asyncio.to_thread(self.opened.next.exists)
            await asyncio.to_thread(
                self._check_plan
            )  # afterwards: the answers may be another plan's, put here meanwhile
            if closed:
                self._last, self.opened = self.opened, None
        if self.opened is None and not self.done:
            await self._next()

    def _check_plan(self) -> None:
        """Raises: Damaged, InvalidInput: the folder does not have this plan any more."""
        if CollectionPlan.read(self._folder).hash != self.plan.hash:
            raise Damaged(
                f"{self._folder} has another plan now, and reports are taken for plan {self.plan.hash[:16]}: put that "
                f"one back, or end this collector and start one of the other plan, with another --out"
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

    def _wait(self, why: str) -> None:
        """Say once why the next round cannot be opened, or the folder not be looked into."""
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
        """Tell of an event. Who cannot be told, such as an output that was closed, stops nothing."""
        with suppress(Exception):
            self._told({"event": event, **{name: value for name, value in facts.items() if value is not None}})
