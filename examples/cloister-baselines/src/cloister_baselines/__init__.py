"""Baselines of private clustering that benchmarks compare with, as a plugin of cloister."""
