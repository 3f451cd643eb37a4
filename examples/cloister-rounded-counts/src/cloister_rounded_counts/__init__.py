"""Counts as multiples of a public step, as a plugin of cloister."""
