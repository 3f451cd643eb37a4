"""One run in one process: bounds, fit, result, statement."""
