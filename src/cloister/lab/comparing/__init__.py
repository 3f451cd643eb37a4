"""Methods beside one another on rows that one holds. **NOT private**: figures are computed from the rows themselves.

For generated or public stand-ins of the rows that matter: to choose a method or a budget by what it costs on secret
rows would itself need a budget.
"""

from __future__ import annotations

from cloister.lab.comparing.comparison import compare
from cloister.lab.comparing.conditions import Contender
from cloister.lab.comparing.study import Study

__all__ = ["Contender", "Study", "compare"]
