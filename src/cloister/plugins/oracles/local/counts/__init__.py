"""Counts under local trust."""
