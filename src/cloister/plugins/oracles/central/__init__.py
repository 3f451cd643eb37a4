"""Oracles of a curator, and the kit of additive ones."""
