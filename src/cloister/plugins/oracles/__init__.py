"""Oracles: how an answer is made private."""
