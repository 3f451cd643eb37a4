"""Clustering algorithms: one file per method, and what several of them share."""
