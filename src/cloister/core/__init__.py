"""The roles and their shared machinery: no algorithm, no noise law, no population."""
