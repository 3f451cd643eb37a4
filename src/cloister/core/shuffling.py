"""What Shuffled trust asks of a round: nothing public about a person stands in her messages, and enough people hide
each other.

*Fresh numbers.* Every person draws a private uniform 64-bit number v for each *drawing*: a set of questions that share
the users, no two of which go to one person (``budget.drawings``; a second question to the same share is of another
set), or one question that is put to everybody. v takes the place of her public number: her role among the questions
(``Share.holds``), her level, her hashes and coins all come from v, and v is sent along. v does not depend on her row
and, given v, her answer is eps0-private; so her whole report, role included, is one eps0-private randomiser, which is
what amplification by shuffling is proved for. People with another role hide her as well. Numbers of two drawings, and
of two rounds, are independent, so that neither messages nor roles can be linked, and what each drawing costs adds up.
Two messages of one number would be one report at the sum of their eps0, which n people hide far worse than two.
"""

from __future__ import annotations

from typing import Any

from cloister.core.budget import drawings
from cloister.core.capabilities import Counted, MultiMessageChannel, NeedsHonestUsers
from cloister.core.errors import Refused
from cloister.core.questions import OpenedQuestion, Round
from cloister.core.randomness import NoiseRng
from cloister.core.trust import Shuffled
from cloister.core.types import Bools, Ids


def numbers(round: Round[Any], users: Ids, rng: NoiseRng) -> list[Ids]:
    """The numbers (n,) of users (n,) that each question goes by: fresh private ones under Shuffled trust, else their
    own."""
    if round.trust is not Shuffled:
        return [users] * len(round.parts)
    found = dict[int, Ids]()
    for drawing in roles(round):
        drawn = rng.child("number", round.index, drawing[0]).words(users, 1)[:, 0]
        found.update(dict.fromkeys(drawing, drawn))
    return [found[at] for at in range(len(round.parts))]


def roles(round: Round[Any]) -> tuple[tuple[int, ...], ...]:
    """The questions, by position, that each drawing is among: a person answers one of them, at most. In the order of
    the first ones."""
    shares = [part.user_share for part in round.parts]
    found = dict[object, list[int]]()
    for at, (share, drawing) in enumerate(zip(shares, drawings(shares), strict=True)):
        found.setdefault(at if share is None else (share.rng, drawing), []).append(at)
    return tuple(tuple(drawing) for drawing in found.values())


def asked(round: Round[Any], numbers: list[Ids]) -> list[Bools | None]:
    """Whom each question is asked of, by their numbers (n,); None for everybody."""
    return [
        None if part.user_share is None else part.user_share.holds(them)
        for part, them in zip(round.parts, numbers, strict=True)
    ]


def messages(part: OpenedQuestion) -> int:
    """How many messages a person who is asked this question sends."""
    return part.channel.messages if isinstance(part.channel, MultiMessageChannel) else 1


def min_honest_users(round: Round[Any]) -> int:
    """The fewest people whose shuffled reports may be released; 0 where nobody needs others to hide her."""
    return max(
        (part.channel.min_honest_users for part in round.parts if isinstance(part.channel, NeedsHonestUsers)), default=0
    )


def refuse_few(round: Round[Any], population: object, gathered: bool = False) -> None:
    """The one place where a round of too few people stops, wherever they are: before it is charged, if their number is
    known by then (under replace-one it is public), and again when it is gathered, before anything is decoded. Oracles
    whose people share the noise would draw too little of it, and those whose people hide each other would hide too few.

    Args:
        gathered: whether the round's answers are in, so that the population must know.

    Raises:
        Refused: fewer people than ``min_honest_users``, or a population that cannot say how many.
    """
    needed = min_honest_users(round)
    if not needed:
        return
    people = population.people if isinstance(population, Counted) else None
    if people is None and gathered:
        raise Refused(
            f"a {type(population).__name__} does not say of how many people its answers are (attribute people), and a "
            f"guarantee of trust Shuffled needs at least {needed:,} of them: nothing is released"
        )
    if people is not None and people < needed:
        raise Refused(
            f"there are {people:,} people, and the guarantee needs at least {needed:,} who hide each other: nothing "
            f"is released. Wait for more, or plan for as many as there are (--rows {people}; under trust Shuffled "
            f"their number is public)"
        )


def check_shuffled(part: OpenedQuestion) -> None:
    """The rules of an opened question of trust Shuffled.

    Deltas of their own add up beside every measure (see ``cloister.accounting.composition``).

    Raises:
        Refused: it does not say how many people it needs; it needs a share of the noise from everybody, and asks some.
    """
    name = ", ".join(event.mechanism for event in part.channel.events)
    if not isinstance(part.channel, NeedsHonestUsers):
        raise Refused(f"'{name}' is Shuffled and does not say how many people its guarantee needs (attribute least)")
    if isinstance(part.channel, MultiMessageChannel) and part.user_share is not None:
        raise Refused(
            f"'{name}' asks everybody for messages and a share of the noise: split the budget, not the users (--set "
            f"share=budget)"
        )
