"""What a run promises, in data and in words. Written from the session's rounds, never by the method."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import attrs

from cloister.core.questions import Round
from cloister.core.roles import Hiding
from cloister.core.trust import TRUSTS, Shuffled

UNITS = {"pure": "epsilon", "gaussian": "mu^2", "zcdp": "rho", "exact": "unlimited"}


@attrs.frozen
class Spend:
    """One line of the budget. Args: round, question (position and kind), mechanism, measure, amount, users (their share), delta (the
    mechanism's own), alone (epsilon of a message by itself, where a shuffler is not honest; None: nothing holds, or there is no shuffler), least
    (how many people must report honestly; 0: the guarantee needs none)."""

    round: int
    question: str
    mechanism: str
    measure: str
    amount: float
    users: float = 1.0
    delta: float = 0.0
    alone: float | None = None
    least: int = 0


@attrs.frozen
class PrivacyStatement:
    """Who learns what, and how that was paid for.

    Args:
        trust: name of the trust marker.
        epsilon, delta: of the whole run, for one row, under the marker's neighbouring relation.
        spends: every question of every round.
        rows: the public number of rows.
        seeded: noise that can be repeated: nobody is protected.
        private: False when an oracle added no noise.
        simulated: the rows were in one place, where the trust model says that they are not.
    """

    trust: str
    epsilon: float
    delta: float
    spends: tuple[Spend, ...]
    rows: int
    seeded: bool = False
    private: bool = True
    simulated: bool = False

    @property
    def relation(self) -> str:
        return TRUSTS[self.trust].relation

    @property
    def headline(self) -> str:
        """The guarantee in one line."""
        if not self.private:
            return "NOT PRIVATE: exact answers were released"
        if self.seeded:
            return "not private: seeded (the noise can be repeated)"
        delta = f", delta = {self.delta:g}" if self.delta else ""
        return f"({self.relation}) epsilon = {self.epsilon:g}{delta}, {self.trust} trust"

    def text(self) -> str:
        """The whole statement, for people."""
        lines = [self.headline]
        if self.private and not self.seeded:
            lines += [
                TRUSTS[self.trust].promise,
                "One row is one person unless you know otherwise. All rounds' answers are covered, not only the last.",
            ]
        if self.trust == Shuffled.__name__:
            lines.append(self.crowd())
        if self.simulated:
            lines.append(
                "SIMULATED: the rows were all in one place. Whoever ran this could see them; only the result is as promised."
            )
        if self.delta * self.rows >= 1:
            lines.append(
                f"WARNING: delta is not below 1 / rows ({1 / self.rows:.2g}): it allows to release some rows outright."
            )
        lines += [
            "Rows outside the public bounds were clipped to them. The check for missing or infinite cells tells only the data holder "
            "go or refuse; it is outside the guarantee, as are running times.",
            "Budget, by round and question:",
        ]
        for s in self.spends:
            users = "" if s.users == 1.0 else f" of {s.users:.1%} of the users"
            own = f", delta {s.delta:.3g}" if s.delta else ""
            lines.append(
                f"  round {s.round + 1}, {s.question}: {s.mechanism}, {UNITS[s.measure]} {s.amount:.6g}{own}{users}"
            )
        return "\n".join(lines)

    def crowd(self) -> str:
        """What a shuffled run's guarantee needs, and what is left without it."""
        needed = f"It needs a shuffler that is honest, and the reports of at least {max(s.least for s in self.spends):,} honest people."
        without = "Without them nothing is promised."
        if all(s.alone is not None for s in self.spends):
            most = max(s.alone for s in self.spends if s.alone is not None)
            without = f"Without them a message by itself costs its person up to epsilon = {most:.4g}."
        return f"{needed} {without}"

    def as_dict(self) -> dict[str, Any]:
        """Plain data, with the derived sentences for readers of JSON."""
        spends = [attrs.asdict(s) for s in self.spends]
        return {**attrs.asdict(self), "spends": spends, "relation": self.relation, "headline": self.headline}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> PrivacyStatement:
        """The statement that ``as_dict`` wrote."""
        spends = tuple(Spend(**s) for s in data["spends"])
        return cls(
            data["trust"],
            data["epsilon"],
            data["delta"],
            spends,
            data["rows"],
            data["seeded"],
            data["private"],
            data["simulated"],
        )


def state(
    rounds: Sequence[Round[Any]],
    epsilon: float,
    delta: float,
    *,
    trust: str,
    rows: int,
    seeded: bool,
    private: bool,
    simulated: bool = False,
) -> PrivacyStatement:
    """The statement of a run with these rounds, whose events an accountant has found to be within (epsilon, delta)."""
    spends = []
    for round in rounds:
        for number, part in enumerate(round.parts):
            kind = "counts" if part.vectors is None else "sums"
            users = part.among.fraction if part.among else 1.0
            for event in part.channel.events:
                amount = event.spent.amount
                spends.append(
                    Spend(
                        round.index,
                        f"question {number + 1} ({kind})",
                        event.mechanism,
                        event.spent.measure,
                        amount,
                        users,
                        event.delta,
                        event.alone if math.isfinite(event.alone) else None,
                        part.channel.least if isinstance(part.channel, Hiding) else 0,
                    )
                )
    return PrivacyStatement(trust, epsilon, delta, tuple(spends), rows, seeded, private, simulated)
