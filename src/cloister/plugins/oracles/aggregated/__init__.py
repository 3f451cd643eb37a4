"""Oracles under aggregated trust: parties pool masked sums."""
