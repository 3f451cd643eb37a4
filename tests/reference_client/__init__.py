"""A client of one device written from the specification alone (docs/reference/format.md): plain numbers, one row at a
time, no NumPy and nothing of cloister's. Tests hold it against what cloister does."""
