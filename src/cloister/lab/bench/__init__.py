"""Benchmark of private clustering that anyone can enter. **NOT private**: its rows are public or generated.

An *entrant* is a program that clusters rows (``entrants``), a *benchmark* says on which rows and with which budgets
(``benchmark``), and a *badge* says which faults an audit looked for and found (``audit``).
"""
