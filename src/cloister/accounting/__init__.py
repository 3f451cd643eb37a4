"""Privacy accounting: the cost of noise, the budget of a run, and the lifetime budget of a data set.

It trusts what mechanisms declare (``core.budget.Event``), knows no mechanism and sees no rows. Every conversion is
conservative: it may overstate the privacy that was spent, never understate it.
"""

from cloister.accounting.accountant import Accountant
from cloister.accounting.amplification import delta_of_shuffled, epsilon_of_shuffled, local_of_shuffled
from cloister.accounting.composition import Spent, compose
from cloister.accounting.conversions import (
    delta_of_mu,
    delta_of_rho,
    epsilon_of_mu,
    epsilon_of_rho,
    mu_of,
    rho_of,
    rho_of_pure,
)
from cloister.accounting.discrete import epsilon_of_discrete, eta
from cloister.accounting.ledger.database import DatasetStatus, RunStatus
from cloister.accounting.ledger.ledger import Ledger
from cloister.accounting.ledger.privacy_filter import Composition, Cost, Lifetime
from cloister.accounting.ledger.run import Run
from cloister.accounting.privacy_target import PrivacyTarget

__all__ = [
    "Accountant",
    "Composition",
    "Cost",
    "DatasetStatus",
    "Ledger",
    "Lifetime",
    "Run",
    "RunStatus",
    "Spent",
    "PrivacyTarget",
    "compose",
    "delta_of_mu",
    "delta_of_rho",
    "delta_of_shuffled",
    "epsilon_of_discrete",
    "epsilon_of_mu",
    "epsilon_of_rho",
    "epsilon_of_shuffled",
    "eta",
    "local_of_shuffled",
    "mu_of",
    "rho_of",
    "rho_of_pure",
]
