"""Solvers: k-means and its kin on released points."""
