"""``cloister sign``, ``party-key`` and ``test-certificates``: signatures, keys and certificates of a pool."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cloister.commands.common import say, show
from cloister.commands.option_groups import excludes, option_groups
from cloister.commands.pool import MemberOptions, PartyName, PoolFile
from cloister.core.errors import InvalidInput, cause

MOST_DAYS = 36_500
"""Longest life of a test certificate: a hundred years."""


@option_groups
def sign(
    plan: PoolFile,
    party: PartyName,
    member: Annotated[
        MemberOptions, excludes("a signature begins no session", "secret", "journal", "patience", "unsigned")
    ],
) -> None:
    """Sign the plan for a party, which then agrees to it.

    The signature also agrees to every party that the plan lists. Every party needs the signatures of all to join.
    """
    from cloister.federated.plan import SEEDED_WARNING
    from cloister.federated.transport.signatures import folder_of, sign as sign_agreement

    pool = member.plan(plan)
    signature = sign_agreement(pool.agreement, party, member.credentials())
    path = folder_of(plan) / f"party-{pool.agreement.index(party) + 1}.sig"
    try:
        path.parent.mkdir(exist_ok=True)
        path.write_text(signature.to_text())
    except OSError as error:
        raise InvalidInput(f"cannot write {path}: {cause(error)}") from error
    names = ", ".join(member.name for member in pool.agreement.members)
    show(f"'{party}' agrees to pool with {names} under agreement {pool.agreement.hash.hex()[:16]}")
    if pool.test_noise_seed is not None:
        say(SEEDED_WARNING)
    say(f"saved to {path}: send it to the coordinator and all parties")


def party_key(
    file: Annotated[Path, typer.Argument(help="File to make: the pooling key. Keep it secret.")],
    shared: Annotated[
        bool, typer.Option("--shared", help="Make the common secret of all parties, for shared masks, instead.")
    ] = False,
    coordinator: Annotated[bool, typer.Option("--coordinator", help="Make the coordinator's key instead.")] = False,
) -> None:
    """Make a pooling key, and print its public half.

    The public half goes into the plan.
    """
    from cloister.federated.protocol.masking import new_secret
    from cloister.federated.protocol.streams import new_private_key, public_key
    from cloister.federated.transport.certificates import write_secret

    if shared and coordinator:
        raise InvalidInput(
            "--shared makes a secret that the coordinator must lack, --coordinator makes its key: give one of them"
        )
    content = new_secret() if shared else new_private_key()
    write_secret(file, content)
    if shared:
        show("a common secret: give it to every party, never to the coordinator")
    else:
        show(f'{"coordinator_key" if coordinator else "key"} = "{public_key(content).hex()}"')


def make_certificates(
    folder: Annotated[Path, typer.Argument(help="Folder to fill.")],
    party: Annotated[list[str], typer.Option(help="Name of a party. Repeatable.")],
    days: Annotated[int, typer.Option(help="Days that the certificates are valid.")] = 30,
) -> None:
    """Make certificates and pooling keys for a trial.

    One folder gets a test authority and the keys of all members: for trials only, since no machine should hold two
    parties' keys.
    """
    from cloister.federated.protocol.agreement import COORDINATOR_NAME
    from cloister.federated.protocol.streams import new_private_key, public_key
    from cloister.federated.transport.certificates import make_test_certificates, write_secret

    if not 1 <= days <= MOST_DAYS:
        raise InvalidInput(f"--days is {days}: give a number of days from 1 to {MOST_DAYS}")
    make_test_certificates(folder, tuple(party), days)
    public = dict[str, str]()
    for name in (COORDINATOR_NAME, *party):
        private = new_private_key()
        write_secret(folder / f"{name}.pool", private)
        public[name] = public_key(private).hex()
    show(f'coordinator_key = "{public[COORDINATOR_NAME]}"\n')
    for name in party:
        show(f'[[party]]\nname = "{name}"\nkey = "{public[name]}"\n')
    say(f"saved to {folder}; the lines above go into the plan")
