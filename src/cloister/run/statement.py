"""Privacy statement of a run, as data and as text. Written from the session's rounds, never by the method."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import groupby
from typing import Any, get_type_hints

import attrs

from cloister.accounting.users import of_user
from cloister.core.questions import Round
from cloister.core.registry.components import fits
from cloister.core.shuffling import min_honest_users
from cloister.core.trust import TRUSTS
from cloister.run.estimates import promise

UNITS = {"pure": "epsilon", "gaussian": "mu^2", "zcdp": "rho", "exact": "unlimited"}


CHECK = "The check for missing or infinite cells tells"
CHECKS = {
    "Aggregated": "The check for missing or infinite cells and for more rows than most_rows, before a party joins, "
    "tells"
}
"""What the validation covers under trust models where it is more than missing cells."""

MEASURED = {"gaussian": "Gaussian differential privacy", "zcdp": "zero-concentrated differential privacy"}
"""Definition of privacy behind each unit other than epsilon."""


LARGE = 0.1
"""Fraction of 1 / rows above which a delta is warned of."""


BRIEF = 8
"""Lines of a brief statement."""

FEW_PARTS = 4
"""Different parts of the budget that a brief statement lists."""


@attrs.frozen
class Spend:
    """Line of the budget.

    Args:
        round: counted from 0.
        question: position and kind.
        mechanism: the oracle's.
        measure: unit of the amount.
        amount: spent.
        users: share of the users who were asked.
        delta: the mechanism's own.
    """

    round: int
    question: str
    mechanism: str
    measure: str
    amount: float
    users: float = 1.0
    delta: float = 0.0


ONE_USER = "add-or-remove one user with all rows of theirs"
"""Neighbouring data sets of a guarantee for users."""


@attrs.frozen
class PrivacyStatement:
    """Privacy statement: the guarantee, who learns what, and the budget's lines.

    Args:
        trust: name of the trust model.
        epsilon, delta: of the whole run, for one row, under the trust model's neighbouring relation; or for one user.
        spends: every question of every round.
        rows: the public number of rows; where users have several, of those kept.
        seeded: the noise can be repeated: nobody is protected.
        private: False if an oracle added no noise.
        simulated: the rows were in one place, although the trust model says that they are not.
        min_honest_users: honest people that the guarantee needs (Shuffled).
        epsilon_without_shuffler: epsilon that remains without an honest shuffler or those people (Shuffled); None: no
            guarantee remains.
        count_share: share of the budget that paid for counting the rows; 0 if their number was given.
        rows_per_user: most rows kept of each user, in a guarantee for users; None: the guarantee is for rows.
        notes: further sentences, from released and public figures.
    """

    trust: str
    epsilon: float
    delta: float
    spends: tuple[Spend, ...]
    rows: int
    seeded: bool = False
    private: bool = True
    simulated: bool = False
    min_honest_users: int = 0
    epsilon_without_shuffler: float | None = None
    count_share: float = 0.0
    rows_per_user: int | None = None
    notes: tuple[str, ...] = ()

    @property
    def relation(self) -> str:
        """Neighbouring relation."""
        return TRUSTS[self.trust].relation if self.rows_per_user is None else ONE_USER

    @property
    def protects(self) -> bool:
        """True if there is a guarantee: noise was added, and nobody can repeat it."""
        return self.private and not self.seeded

    @property
    def headline(self) -> str:
        """Guarantee in one line."""
        if not self.private:
            return "NOT PRIVATE: exact answers were released"
        if self.seeded:
            return "not private: seeded (the noise can be repeated)"
        delta = f", delta = {self.delta:g}" if self.delta else ""
        return f"({self.relation}) epsilon = {self.epsilon:g}{delta}, {self.trust} trust"

    def text(self, brief: bool = False) -> str:
        """Return the statement for people: at most ``BRIEF`` short lines if brief, else all of it."""
        return "\n".join(self._summary() if brief else self._whole())

    def _summary(self) -> list[str]:
        """Return the guarantee, warnings (all of them), and as many notes as fit."""
        lines = [self.headline]
        if self.protects:
            lines += [TRUSTS[self.trust].promise if self.rows_per_user is None else self.promised()[0]]
        if self.protects and self.trust == "Shuffled":
            lines.append(f"It needs an honest shuffler and {self.min_honest_users:,} honest people.")
        if self.simulated:
            lines.append("SIMULATED: the rows were all in one place, and whoever ran this could see them.")
        if caution := large_delta(self.delta, self.rows):
            lines.append(f"WARNING: {caution}.")
        warnings = [note for note in self.notes if note.startswith("WARNING")]
        lines += [_first_sentence(note) for note in warnings]
        notes = [] if self.rows_per_user is None else [f"At most {self.rows_per_user:,} rows of each user were kept."]
        if self.count_share:
            notes.append(f"{self.rows:,} rows: a noisy count, for {self.count_share:.0%} of the budget.")
        notes.append("Rows outside the public bounds were clipped to them.")
        notes += [_first_sentence(note) for note in self.notes if note not in warnings]
        shown = notes[: max(0, BRIEF - 1 - len(lines))]
        hidden = len(notes) - len(shown)
        tail = f" ({hidden} more {'note' if hidden == 1 else 'notes'})" if hidden else ""
        return [*lines, *shown, f"{_in_a_line(self.spends)} The whole statement{tail}: --verbose, or the saved result."]

    def _whole(self) -> list[str]:
        lines = [self.headline]
        if self.protects:
            lines += self.promised()
        if self.protects and self.trust == "Shuffled":
            lines += self.without()
        if self.simulated:
            lines.append(
                "SIMULATED: the rows were all in one place. Whoever ran this could see them; only the result is as "
                "promised."
            )
        if self.count_share:
            lines.append(
                f"The number of rows was not given: {self.rows:,} is a noisy count, the first round, for "
                f"{self.count_share:.0%} of the budget."
            )
        if caution := large_delta(self.delta, self.rows):
            lines.append(f"WARNING: {caution}.")
        lines += [
            f"Rows outside the public bounds were clipped to them. {CHECKS.get(self.trust, CHECK)} only the data "
            f"holder go or refuse; it is outside the guarantee, as are running times, and whatever was done to the "
            f"rows beforehand: scaling them by their own means, say, or choosing columns by what is in them.",
            *self.notes,
            "Budget, by round and question:",
            *_budget(self.spends),
        ]
        for measure in sorted({s.measure for s in self.spends} & set(MEASURED)):
            lines.append(
                f"{UNITS[measure]} measures {MEASURED[measure]}: epsilon and delta above follow from all lines "
                f"together."
            )
        return lines

    def promised(self) -> list[str]:
        """Return sentences on whom the guarantee protects, and from whom."""
        covered = "All rounds' answers are covered, not only the last."
        promise = TRUSTS[self.trust].promise
        if self.rows_per_user is None:
            return [promise, f"One row is one person unless you know otherwise. {covered}"]
        rows = "row" if self.rows_per_user == 1 else "rows"
        return [
            promise.replace("any one row was there", "any one user was there, with all rows of theirs"),
            f"At most {self.rows_per_user:,} {rows} of each user were kept, chosen by public coins and by nothing "
            f"but that user's own rows; the public number of rows is of those kept. One name in the user column is one "
            f"person unless you know otherwise. {covered}",
        ]

    def without(self) -> list[str]:
        """Return the assumptions of the guarantee under Shuffled trust, and what remains without them."""
        lines = [
            f"It holds if the shuffler is honest (it mixes all messages and forgets who sent them) and at least "
            f"{self.min_honest_users:,} people, whoever they are, follow the protocol and keep their messages to "
            f"themselves; fewer reports are not released.",
        ]
        if self.epsilon_without_shuffler is None:
            return [
                *lines,
                "Without that nothing holds: whoever sees who sent which messages can add a person's up to her answer.",
            ]
        return [
            *lines,
            f"Without that each person's messages alone still cost her at most epsilon = "
            f"{self.epsilon_without_shuffler:.4g}, delta = 0.",
        ]

    def _repr_html_(self) -> str:
        """Return HTML for notebooks."""
        simulated = " (SIMULATED: the rows were all in one place)" if self.simulated else ""
        return promise(self.headline + simulated, self.text(), alarm=not self.protects)

    def as_dict(self) -> dict[str, Any]:
        """Return plain data, with the derived sentences for readers of JSON."""
        spends = [attrs.asdict(spend) for spend in self.spends]
        derived = {"relation": self.relation, "headline": self.headline}
        return {**attrs.asdict(self), "spends": spends, "notes": list(self.notes), **derived}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> PrivacyStatement:
        """Read the output of ``as_dict``. Raises KeyError, TypeError or ValueError for anything else."""
        facts = {field.name: data[field.name] for field in attrs.fields(cls)}
        spends = tuple(Spend(**spend) for spend in data["spends"])
        statement = cls(**{**facts, "spends": spends, "notes": tuple(data["notes"])})
        for record in (statement, *spends):
            _check_kinds(record)
        if statement.trust not in TRUSTS or not all(s.measure in UNITS for s in spends):
            raise ValueError("no such trust or measure")
        if not all(isinstance(note, str) for note in statement.notes):
            raise TypeError("notes are text")
        return statement


def _check_kinds(facts: Any) -> None:
    """Raise TypeError for values of another type, and ValueError for negative numbers, NaN, and integers from 2^63."""
    for name, hint in get_type_hints(type(facts)).items():
        value = getattr(facts, name)
        if not fits(value, hint):
            raise TypeError(f"{name} is of another type")
        number = isinstance(value, int | float)
        if number and (not value >= 0 or (isinstance(value, int) and value >= 2**63)):
            raise ValueError(f"{name} is out of range")


def large_delta(delta: float, rows: int) -> str:
    """Return a warning if delta is not well below 1 / rows; else an empty text."""
    if delta * rows <= LARGE:
        return ""
    well = "" if delta * rows >= 1 else "well "
    return f"delta is not {well}below 1 / rows ({1 / rows:.2g}): it permits releasing some rows outright"


def alike(spends: Sequence[Spend]) -> list[tuple[Spend, list[str]]]:
    """Return the budget's lines in order, each with all questions of its round that read alike."""
    lines = dict[tuple[Any, ...], tuple[Spend, list[str]]]()
    for s in spends:
        key = s.round, _kind(s), s.mechanism, _cost(s)
        lines.setdefault(key, (s, []))[1].append(s.question)
    return list(lines.values())


def _budget(spends: Sequence[Spend]) -> list[str]:
    """Return a line per question, in order; questions of a round that read alike share one."""
    return [
        f"  round {s.round + 1}, {questions[0]}: {s.mechanism}, {_cost(s)}"
        if len(questions) == 1
        else f"  round {s.round + 1}, {len(questions)} questions ({_kind(s)}: {s.mechanism}, each {_cost(s)}"
        for s, questions in alike(spends)
    ]


def _first_sentence(note: str) -> str:
    """Return a note's first sentence, up to a semicolon: notes begin with what happened."""
    sentence = note.partition(". ")[0].partition("; ")[0]
    return sentence if sentence.endswith(".") else f"{sentence}."


def _in_a_line(spends: Sequence[Spend]) -> str:
    """Return each round's part of the budget, or just the number of questions if parts are many or do not add up."""
    if not spends:
        return "Budget: nothing was asked."
    rounds = len({s.round for s in spends})
    count = f"Budget: {len(spends)} questions in {rounds} {'round' if rounds == 1 else 'rounds'}."
    if len({s.measure for s in spends}) != 1 or any(s.delta or s.users != 1.0 for s in spends):
        return count
    parts = [sum(s.amount for s in spends if s.round == r) for r in sorted({s.round for s in spends})]
    runs = [(text, len(list(same))) for text, same in groupby(f"{part:.3g}" for part in parts)]
    shown = ", ".join(text if times == 1 else f"{times} times {text}" for text, times in runs)
    return f"Budget by round ({UNITS[spends[0].measure]}): {shown}." if len(runs) <= FEW_PARTS else count


def _kind(spend: Spend) -> str:
    return spend.question.partition(" (")[2]


def _cost(spend: Spend) -> str:
    delta = f", delta {spend.delta:.3g}" if spend.delta else ""
    users = "" if spend.users == 1.0 else f" of {spend.users:.1%} of the users"
    return f"{UNITS[spend.measure]} {spend.amount:.6g}{delta}{users}"


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
    epsilon_without_shuffler: float = math.inf,
    count_share: float = 0.0,
    rows_per_user: int | None = None,
    notes: tuple[str, ...] = (),
) -> PrivacyStatement:
    """Return the statement of a run whose rounds an accountant has bounded by (epsilon, delta).

    The arguments are the statement's fields; ``epsilon_without_shuffler`` is the accountant's sum over all events.
    """
    spends = []
    for round in rounds:
        for number, part in enumerate(round.parts):
            kind = "counts" if part.vectors is None else "sums"
            for event in part.channel.events:
                amount = of_user(event, rows_per_user).spent.amount
                spends.append(
                    Spend(
                        round.index,
                        f"question {number + 1} ({kind})",
                        event.mechanism,
                        event.spent.measure,
                        amount,
                        part.fraction,
                        event.delta,
                    )
                )
    needed = max((min_honest_users(round) for round in rounds), default=0)
    remaining_epsilon = epsilon_without_shuffler if math.isfinite(epsilon_without_shuffler) else None
    return PrivacyStatement(
        trust,
        epsilon,
        delta,
        tuple(spends),
        rows,
        seeded,
        private,
        simulated,
        needed,
        remaining_epsilon if needed else None,
        count_share,
        rows_per_user,
        notes,
    )
