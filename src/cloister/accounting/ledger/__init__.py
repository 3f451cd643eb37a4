"""The ledger: a lifetime budget per data set, kept over many runs and processes."""
