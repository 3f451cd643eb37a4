"""Intake of untrusted files: what counts, and what is refused."""
