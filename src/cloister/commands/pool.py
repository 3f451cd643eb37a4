"""Options that the members of a pool share: credentials, plan and session."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, final

import attrs
import typer

from cloister.commands.cli_option import SESSION, cli_option
from cloister.commands.common import parse_seconds

if TYPE_CHECKING:
    from cloister.federated.plan import FederatedPlan
    from cloister.federated.transport.certificates import Credentials

PoolFile = Annotated[Path, typer.Argument(help="Plan of the pool: the TOML file that all parties hold.")]
PartyName = Annotated[str, typer.Option("--party", help="This party's name, as in the plan and its certificate.")]


@final
@attrs.frozen(kw_only=True)
class MemberOptions:
    """Credentials of a party or the coordinator, and how it holds a session."""

    cert: Path = cli_option(
        "Certificate of this side. Its key (.key), its pooling key (.pool) and ca.pem are expected beside it.",
        SESSION,
        default=attrs.NOTHING,
    )
    key: Path | None = cli_option("Private key of the certificate, if it is elsewhere.", SESSION)
    ca: Path | None = cli_option("Certificate of the authority, if it is elsewhere.", SESSION)
    secret: Path | None = cli_option(
        "Pooling key of this side, if it is elsewhere; of a party with shared masks, the parties' common secret.",
        SESSION,
    )
    journal: Path | None = cli_option(
        "File that records the session, so that the same command resumes it after a crash. Keep it secret.", SESSION
    )
    patience: float = cli_option(
        "Seconds to wait for the other members.",
        SESSION,
        default=3600.0,
        metavar="<float>",
        parser=parse_seconds,
    )
    unsigned: bool = cli_option(
        "Do not check the parties' signatures of the plan: trust this copy of it.",
        SESSION,
        "--unsigned",
        default=False,
    )
    not_private: bool = cli_option(
        "Accept a plan whose noise can be repeated (test_noise_seed), which protects nobody.",
        SESSION,
        "--not-private",
        default=False,
    )

    def plan(self, path: Path) -> FederatedPlan:
        """Read the plan. Raises: CloisterError."""
        from cloister.federated.plan import read_pool_plan

        return read_pool_plan(path, self.not_private)

    def credentials(self) -> Credentials:
        """Read the certificates and the private key. Raises: CloisterError."""
        from cloister.federated.transport.certificates import Credentials

        return Credentials.read(self.cert, self.key, self.ca)

    def pooling_key(self) -> bytes:
        """Read the pooling key, or the common secret. Raises: CloisterError."""
        from cloister.federated.transport.certificates import read_file

        return read_file(self.secret or self.cert.with_suffix(".pool"), secret=True)

    def signatures(self, plan: FederatedPlan, path: Path, credentials: Credentials) -> dict[str, Any]:
        """Check the parties' signatures; return the ends of their certificates by name, empty with ``unsigned``."""
        from cloister.federated.transport.signatures import check_signatures, folder_of

        return {} if self.unsigned else check_signatures(plan.agreement, folder_of(path), credentials.authority)
