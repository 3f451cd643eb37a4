"""Who learns what if whom colludes with whom: the statement of every mode, in the words of the paper's section 3.

"Semi-honest" parties follow the protocol and try to learn what they can from what they see (Diaa et al. 2024, section 3). A party
that lies about its rows, or leaves out a share of noise that it promised, is outside every mode's guarantee.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

Masks: TypeAlias = Literal["shared", "pairwise"]
"""``shared``: as in the paper, one secret among the parties. ``pairwise``: also cancelling masks from X25519 keys."""

OUTPUT = (
    "Every party sees all private iterates and the guarantee covers them; whoever sees only messages sees uniform numbers, the number of "
    "rounds and the shapes."
)


def statement(masks: Masks, shares: int, colluding: int) -> tuple[str, ...]:
    """Sentences for people.

    Args:
        masks: how messages are hidden.
        shares: 1 if the coordinator draws the noise, else the number of parties that draw a share.
        colluding: t, for noise in shares.
    """
    if shares == 1:
        noise = (
            "The coordinator draws the noise. It sees neither rows, sums nor results. Semi-honest adversary who controls at most a "
            "single party or the coordinator: the stated guarantee.",
            "The coordinator together with any one party: no privacy, since it takes its noise off what the party unmasks.",
        )
    else:
        noise = (
            "Every party draws a share of the noise, and nobody knows all of it. Semi-honest adversary who controls the coordinator and "
            f"at most {colluding} of {shares} parties: the stated guarantee.",
            f"More than {colluding} colluding parties: less than the stated guarantee, and none once all others' shares are known.",
        )
    if masks == "shared":
        left = "without any noise" if shares == 1 else "with that party's own share of the noise alone"
        reader = (
            "One secret masks all messages. Any party, or whoever got the secret, who also reads another party's messages (on the wire, or "
            f"with the coordinator's help) unmasks that party's own sums, {left}."
        )
    else:
        reader = (
            "Pairwise keys hide every party's message from every other party, even one that reads the wire: a message is uniform to all who "
            "lack the key of one pair with an honest party. The coordinator and all parties but one together see that one's masked sums "
            "exactly (less its own share of noise): any protocol that gives sums would give them those."
        )
    return (*noise, reader, OUTPUT)
