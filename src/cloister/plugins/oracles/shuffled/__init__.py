"""Oracles under shuffled trust: a shuffler mixes the users' reports or messages."""
