"""Privacy accounting: the cost of noise, the budget of a run, and the lifetime budget of a data set.

It trusts what mechanisms declare (``core.budget.Event``), knows no mechanism and sees no rows. Every conversion is
conservative: it may overstate the privacy that was spent, never understate it.

``__init__.pyi``, beside this file, lists the names. Each is imported on first use: a device that asks for a conversion
loads no ledger.
"""

from cloister._lazy import attach

__getattr__, __dir__ = attach(__name__, __file__)
