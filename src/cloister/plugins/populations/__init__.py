"""Populations: the holders of rows."""
