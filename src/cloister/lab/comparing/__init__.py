"""Comparison of methods on rows at hand. **NOT private**: figures are computed from the rows themselves.

Use generated or public rows that resemble the secret ones: choosing a method or a budget by its cost on secret rows
would itself need a budget.
"""

from __future__ import annotations

from cloister.lab.comparing.comparison import compare
from cloister.lab.comparing.contenders import Contender
from cloister.lab.comparing.study import Study
from cloister.lab.comparing.terms import Terms

__all__ = ["Contender", "Study", "Terms", "compare"]
