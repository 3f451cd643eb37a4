"""Oracles of trust Shuffled whose users send several messages each."""
