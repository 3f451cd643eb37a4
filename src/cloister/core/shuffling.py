"""Rules of Shuffled trust: messages carry nothing public about a person, and enough people hide each other.

*Fresh numbers.* Every user draws a private uniform 64-bit number v for each *drawing*: a set of questions that share
the users, no two of which go to one user (``budget.drawings``; a second question to the same share is of another set),
or one question that is put to all users. v replaces the public user number: the user's role among the questions
(``Share.holds``), level, hashes and coins all come from v, and v is sent along. v does not depend on the row and, given
v, the answer is eps0-private; so the whole report, role included, is one eps0-private randomiser, for which
amplification by shuffling is proved. Users with another role hide this one as well. Numbers of two drawings, and of two
rounds, are independent, so that neither messages nor roles can be linked, and the costs of drawings add up. Two
messages with one number would be one report at the sum of their eps0, which n people hide far worse than two reports.
"""

from __future__ import annotations

from typing import Any, Protocol, cast

from cloister.core.budget import drawings
from cloister.core.errors import Refused
from cloister.core.questions import OpenedQuestion, Round
from cloister.core.randomness import NoiseRng
from cloister.core.trust import Shuffled
from cloister.core.types import Bools, Ids


class MultiMessageChannel(Protocol):
    """Shuffled channel of several messages per user, only the multiset of which carries information.

    It is recognised by its ``pooled``. It asks all users, never a share of them, since each owes a share of the noise
    whatever their role.

    Laws: a report has ``messages`` entries for every user, those of one user together and in the order of users; its
    ``columns()`` have no "users". ``absorb`` takes messages in any order and any split, and refuses those that no
    encoder sends; ``decode`` refuses a summary with part of a user's messages. Whatever the row is, any two messages of
    a user are independent, except for the public part of their places (which slot, which level): nothing links them to
    one user. No kind of message, by any combination of its fields, is sent only by users in some bucket: each is hidden
    among those of ``min_honest_users`` others.
    """

    @property
    def messages(self) -> int:
        """Number of messages that every user sends."""
        ...

    def pooled(self, items: Any, users: Ids, rng: NoiseRng) -> Any:
        """Draw from the law of the summary that ``absorb`` makes of these users' shuffled messages.

        This is the ideal functionality. If the noise of a sum can be drawn at once too, the summary may leave it to
        ``decode``.
        """
        ...

    def whole(self, report: Any) -> Bools:
        """Return a mask (n,) of the users who could have sent their messages, of which the report has n x ``messages``.

        Entries come user by user, in any order within a user. A shuffler checks this before it forgets the senders,
        since a part of a user's messages would spoil the sum. It is optional.

        Raises:
            Refused: users cannot be told apart; the shuffler then asks about fewer.
        """
        ...


def in_messages(channel: object) -> MultiMessageChannel | None:
    """Return the channel, if users send it several messages each; else None."""
    return cast(MultiMessageChannel, channel) if hasattr(channel, "pooled") else None


def user_numbers(round: Round[Any], users: Ids, rng: NoiseRng) -> list[Ids]:
    """Return each question's user numbers (n,): fresh private ones under Shuffled trust, else the public ones."""
    if round.trust is not Shuffled:
        return [users] * len(round.parts)
    by_question = dict[int, Ids]()
    for drawing in roles(round):
        drawn = rng.child("number", round.index, drawing[0]).words(users, 1)[:, 0]
        by_question.update(dict.fromkeys(drawing, drawn))
    return [by_question[at] for at in range(len(round.parts))]


def roles(round: Round[Any]) -> tuple[tuple[int, ...], ...]:
    """Return the questions (by position) of each drawing, of which a user answers at most one, by first question."""
    shares = [part.user_share for part in round.parts]
    groups = dict[object, list[int]]()
    for at, (share, drawing) in enumerate(zip(shares, drawings(shares), strict=True)):
        groups.setdefault(at if share is None else (share.rng, drawing), []).append(at)
    return tuple(tuple(drawing) for drawing in groups.values())


def selected_users(round: Round[Any], user_numbers: list[Ids]) -> list[Bools | None]:
    """Return a mask (n,) of the users that each question asks, by their numbers for it (n,); None for all."""
    return [
        None if part.user_share is None else part.user_share.holds(users)
        for part, users in zip(round.parts, user_numbers, strict=True)
    ]


def messages(part: OpenedQuestion) -> int:
    """Return the number of messages that a user sends who is asked this question."""
    channel = in_messages(part.channel)
    return 1 if channel is None else channel.messages


def min_honest_users(round: Round[Any]) -> int:
    """Return the fewest people whose shuffled reports may be released; 0 if no question needs others."""
    return max((min_honest_users_of(part.channel) or 0 for part in round.parts), default=0)


def min_honest_users_of(channel: object) -> int | None:
    """Return the number of people that a Shuffled channel's guarantee needs, its attribute ``min_honest_users``.

    Laws: its events hold if at least so many people, the user included, follow the protocol and their messages are
    shuffled together, whoever else takes part. An event's ``epsilon_without_shuffler`` holds otherwise.
    """
    needed: int | None = getattr(channel, "min_honest_users", None)
    return needed


def check_enough_people(round: Round[Any], population: object, gathered: bool = False) -> None:
    """Refuse a round of too few people: the only such check, for every kind of population.

    It runs before the round is charged, if the number of people is known by then (under replace-one it is public), and
    again once it is gathered, before anything is decoded. With fewer people, oracles that share the noise among them
    would draw too little, and those whose people hide each other would hide too few.

    Args:
        round: the opened questions.
        population: their answerer.
        gathered: whether the round's answers are in, so that the population must know its number of people.

    Raises:
        Refused: fewer people than ``min_honest_users``, or a population that cannot say how many.
    """
    needed = min_honest_users(round)
    if not needed:
        return
    people: int | None = getattr(population, "people", None)
    if people is None and gathered:
        raise Refused(
            f"a {type(population).__name__} has no number of people who answered (attribute people), and the guarantee "
            f"under trust Shuffled needs at least {needed:,}: nothing is released"
        )
    if people is not None and people < needed:
        raise Refused(
            f"there are {people:,} people, and the guarantee needs at least {needed:,} who hide each other: nothing "
            f"is released. Wait for more, or plan for as many as there are (--rows {people}; under trust Shuffled "
            f"their number is public)"
        )


def check_shuffled(part: OpenedQuestion) -> None:
    """Check an opened question of Shuffled trust.

    Its events may have deltas of their own: these add up beside every measure (``cloister.accounting.composition``).

    Raises:
        Refused: the number of people that it needs is missing, or it needs noise from every user but asks only some.
    """
    name = ", ".join(event.mechanism for event in part.channel.events)
    if min_honest_users_of(part.channel) is None:
        raise Refused(f"'{name}' is Shuffled: say how many people its guarantee needs (attribute min_honest_users)")
    if in_messages(part.channel) is not None and part.user_share is not None:
        raise Refused(
            f"'{name}' needs messages and a share of the noise from every user: split the budget, not the users (--set "
            f"share=budget)"
        )
