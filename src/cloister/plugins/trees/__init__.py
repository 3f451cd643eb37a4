"""Public trees: partitions of a domain that do not depend on the rows."""
