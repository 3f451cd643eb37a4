"""Public trees: partitions of a domain that are fixed before any row is read."""
