"""What a collector knows of its plan: the open round, and the public files that it gives out.

A plan's folder only grows. When a server has closed a round (``cloister advance``), the file of its answers stands
there, and the next round is open: its name, and the form of its reports, come from the plan and these answers.
"""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path
from typing import Any, final

import attrs

from cloister.collection.plan.plan import CollectionPlan
from cloister.collection.plan.transcript import Transcript, name
from cloister.collection.wire.answers import form_of
from cloister.collection.wire.batches import STAMP, BatchForm
from cloister.core.errors import InvalidInput, Refused

_PUBLIC = re.compile(r"plan\.json|README\.txt|round-[1-9][0-9]*\.json|bundle-[1-9][0-9]*\.(?:json|bin)")


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


def open_round(folder: Path, tickets: bool) -> OpenRound | None:
    """The open round of a plan's folder; None after the last. Args: tickets (whether its reports have one). Raises:
    Damaged, Refused, InvalidInput: the plan cannot be used, or its round comes out differently here."""
    transcript = Transcript.read(folder)
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


@final
class PublicFiles:
    """A plan's public files, by name. Those that were read are kept: they never change. Args: folder."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._kept = folder, dict[str, bytes]()

    def get(self, name: str) -> bytes | None:
        """A file's content; None if there is no such file, or it is not public."""
        if name not in self._kept and _PUBLIC.fullmatch(name):
            try:
                self._kept[name] = (self._folder / name).read_bytes()
            except OSError:
                return None
        return self._kept.get(name)

    def bundle(self, round: int) -> dict[str, Any]:
        """Where a round's bundle is, and the hash of its file; both None while there is none."""
        file = f"bundle-{round}.json"
        content = self.get(file)
        if content is None or not os.path.exists(self._folder / f"bundle-{round}.bin"):
            return {"bundle": None, "sha256": None}
        return {"bundle": f"/{file}", "sha256": hashlib.sha256(content).hexdigest()}
