"""The roles, and what holds them together: no algorithm, no noise law, no place where rows are."""
