"""Rows that are not secret, public or generated, and comparisons and demonstrations on them."""
