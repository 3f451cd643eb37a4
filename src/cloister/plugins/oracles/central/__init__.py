"""Oracles of a curator."""
