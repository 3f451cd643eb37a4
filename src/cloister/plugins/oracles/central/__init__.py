"""Oracles under central trust: a curator adds the noise."""
