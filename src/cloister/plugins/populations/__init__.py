"""Populations: where the rows are."""
