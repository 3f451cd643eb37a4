"""Oracles of parties that pool masked sums."""
