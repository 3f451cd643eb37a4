"""The names that ``cloister.accounting`` exports."""

from cloister.accounting.accountant import (
    Accountant as Accountant,
)
from cloister.accounting.amplification import (
    delta_of_shuffled as delta_of_shuffled,
    epsilon_of_shuffled as epsilon_of_shuffled,
    local_of_shuffled as local_of_shuffled,
)
from cloister.accounting.composition import (
    Spent as Spent,
    compose as compose,
)
from cloister.accounting.conversions import (
    delta_of_mu as delta_of_mu,
    delta_of_rho as delta_of_rho,
    epsilon_of_mu as epsilon_of_mu,
    epsilon_of_rho as epsilon_of_rho,
    mu_of as mu_of,
    rho_of as rho_of,
    rho_of_pure as rho_of_pure,
)
from cloister.accounting.discrete import (
    epsilon_of_discrete as epsilon_of_discrete,
    eta as eta,
)
from cloister.accounting.ledger.database import (
    DatasetStatus as DatasetStatus,
    RunStatus as RunStatus,
)
from cloister.accounting.ledger.ledger import (
    Ledger as Ledger,
)
from cloister.accounting.ledger.privacy_filter import (
    Composition as Composition,
    Cost as Cost,
    Lifetime as Lifetime,
)
from cloister.accounting.ledger.run import (
    Run as Run,
)
from cloister.accounting.privacy_target import (
    PrivacyTarget as PrivacyTarget,
)
