"""All checks of an audit, in order, with the command that repeats each."""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, final

import attrs

from cloister.core.errors import UnknownName
from cloister.lab.bench.audit import attack as attacking
from cloister.lab.bench.audit.attack import attack
from cloister.lab.bench.audit.form import empty_cluster, neighbours, outside
from cloister.lab.bench.audit.noise import budget, equal_seeds
from cloister.lab.bench.audit.scenarios import COUNT, scenarios
from cloister.lab.bench.audit.subject import Subject
from cloister.lab.bench.audit.verdicts import Verdict, badge
from cloister.lab.bench.entrants import Entrant
from cloister.lab.bench.running import RunFailure

CHECKS: dict[str, Callable[[Subject], Verdict]] = {
    "empty cluster": empty_cluster,
    "neighbours": neighbours,
    "outside": outside,
    "equal seeds": equal_seeds,
    "budget": budget,
}
"""Checks of a few runs each, by name. The attack is the last one."""

NAMES = (*CHECKS, attacking.NAME)

STEPS = len(CHECKS) + 2 * (COUNT + len(attacking.MULTIPLES))
"""Steps of an audit: the checks, and each table of the attack."""

RELEASES, QUICK_RELEASES, FEWEST = 4000, 200, 60
"""Releases of each table of the attack: the usual number, that of a quick audit, and the least."""

SECONDS, QUICK_SECONDS = 600.0, 30.0
"""Time that the attack may take; a slow entrant is asked for fewer releases."""

TRIED = 40
"""Releases by which the time of one is measured."""

TIMEOUT = 120.0
"""Seconds of one run."""


@final
@attrs.frozen
class Audit:
    """Audit of an entrant. Args: entrant, verdicts (in order)."""

    entrant: Entrant
    verdicts: tuple[Verdict, ...]

    @property
    def badge(self) -> str:
        """The badge, in a few words."""
        return badge(self.entrant.facts.private, self.verdicts)

    @property
    def faults(self) -> list[str]:
        """Names of the failed checks."""
        return [verdict.check for verdict in self.verdicts if verdict.state == "failed"]

    def as_dict(self) -> dict[str, Any]:
        """Return plain data, ready for JSON."""
        return {
            "entrant": self.entrant.name,
            "facts": self.entrant.facts.as_dict(),
            "digest": self.entrant.digest,
            "badge": self.badge,
            "checks": [verdict.as_dict() for verdict in self.verdicts],
        }


def audit(
    entrant: Entrant,
    environment: Path,
    *,
    only: Sequence[str] = (),
    releases: int | None = None,
    quick: bool = False,
    workers: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Audit:
    """Audit an installed entrant.

    Args:
        entrant: to test.
        environment: the folder that ``install`` returned.
        only: names of checks; empty: all.
        releases: of each table of the attack; None: as many as its time allows.
        quick: fewer releases, less time, and no measurement of the attack's power.
        workers: number of processes at once; None: one per core.
        progress: called with the numbers of steps done and in total.

    Raises: UnknownName: there is no such check.
    """
    for name in only:
        if name not in NAMES:
            raise UnknownName("check", name, NAMES)
    at_once = workers or os.cpu_count() or 1
    subject = Subject(entrant=entrant, environment=environment, timeout=TIMEOUT, workers=at_once)
    done, verdicts = 0, list[Verdict]()

    def step() -> None:
        nonlocal done
        done += 1
        (progress or (lambda done, total: None))(done, STEPS)

    for name, check in CHECKS.items():
        if not only or name in only:
            verdicts.append(_with_command(check(subject), entrant))
        step()
    if not only or attacking.NAME in only:
        count = _affordable(subject, quick) if releases is None else releases
        verdicts.append(
            _with_command(attack(subject, count, step, measured=not quick), entrant, ["--releases", str(count)])
        )
    (progress or (lambda done, total: None))(STEPS, STEPS)
    return Audit(entrant, tuple(verdicts))


def _affordable(subject: Subject, quick: bool) -> int:
    """Return the number of releases of each table for which the time is enough."""
    most, seconds = (QUICK_RELEASES, QUICK_SECONDS) if quick else (RELEASES, SECONDS)
    if not subject.entrant.facts.private:
        return most
    sample, times = next(scenarios(subject.entrant.facts.relation)).having, list[float]()
    for count in (1, 1 + TRIED):
        started = time.perf_counter()
        if isinstance(subject.releases(sample, 1.0, count), RunFailure):
            return FEWEST
        times.append(time.perf_counter() - started)
    start, each = times[0], max(times[1] - times[0], 1e-6) / TRIED
    left = seconds / (2 * (COUNT + len(attacking.MULTIPLES))) - start
    return int(min(max(left / each, FEWEST), most))


def _with_command(verdict: Verdict, entrant: Entrant, options: Sequence[str] = ()) -> Verdict:
    words = ["cloister", "bench", "audit", entrant.argument, "--only", verdict.check, *options]
    return attrs.evolve(verdict, command=shlex.join(words))
