"""Statement of every mode: who learns what under which collusion, in the words of the paper's section 3.

"Semi-honest" parties follow the protocol and try to learn what they can from what they see (Diaa et al. 2024, section
3). A party that lies about its rows, or leaves out a share of noise that it promised, is outside every mode's
guarantee. No mode draws noise jointly inside a secure computation (the paper's appendix C.1, Wu et al. 2016): shares of
noise need none. Without a vector of every party nothing is unmasked: a dropout stops the run and releases nothing.
``docs/explanation/threat_model.md`` says the same line by line, with the tests that play each line.
"""

from __future__ import annotations

from cloister.federated.protocol.agreement import Masks

OUTPUT = (
    "Every party sees all private iterates and the guarantee covers them; whoever sees only messages sees uniform "
    "numbers, the number of rounds and the shapes."
)

READER = (
    "Every message carries a mask that the coordinator alone takes off: a party that reads the wire learns nothing "
    "more than one that does not."
)

PUBLISHED = (
    "The coordinator draws this plan's noise and knows it: the result must be kept from whoever runs the coordinator. "
    "Published, shown or leaked to it, the result minus that noise gives it the exact, un-noised counts and sums: no "
    "privacy at all. With oracle = 'skellam' nobody knows the noise, and the result may be published."
)


def statement(masks: Masks, shares: int, colluding: int) -> tuple[str, ...]:
    """Return the statement in sentences for people.

    Args:
        masks: how messages are hidden.
        shares: 1 if the coordinator draws the noise, else the number of parties that draw a share.
        colluding: t, for noise in shares.
    """
    noise: tuple[str, ...]
    if shares == 1:
        noise = (
            "The coordinator draws the noise. It sees neither rows, sums nor results. Semi-honest adversary who "
            "controls at most a single party or the coordinator, and does not show the coordinator the result: the "
            "stated guarantee.",
            "The coordinator together with any one party: no privacy, since it takes its noise off what the party "
            "unmasks.",
            PUBLISHED,
        )
    else:
        noise = (
            "Every party draws a share of the noise, and nobody knows all of it. Semi-honest adversary who controls "
            f"the coordinator and at most {colluding} of {shares} parties: the stated guarantee, also if the result "
            f"is published.",
            f"More than {colluding} colluding parties: less than the stated guarantee, and none once all others' "
            f"shares are known.",
        )
    return (*noise, READER, _together(masks, shares), OUTPUT)


def _together(masks: Masks, shares: int) -> str:
    """Return what the coordinator and a party together see of the others, before noise that neither knows."""
    if masks == "shared":
        visible = "without any noise" if shares == 1 else "with that party's own share of the noise alone"
        return (
            "One secret masks all messages: the coordinator and any party, or whoever got the secret, unmask together "
            f"each other party's own sums, {visible}."
        )
    return (
        "Pairwise keys hide each party's message from the coordinator and all parties that lack the key of one of its "
        "pairs: together they see the sum of the parties that do not collude. The coordinator and all parties but one "
        "see that one's sums exactly (less its own share of noise): any protocol that gives sums would give them those."
    )
