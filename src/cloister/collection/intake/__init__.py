"""Intake of untrusted files."""
