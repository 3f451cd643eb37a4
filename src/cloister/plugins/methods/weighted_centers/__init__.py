"""Stemmer's locally private k-means and k-median: the paper's blocks, each a small public object, and its method.

Source: Stemmer: Locally private k-means clustering (2021), with the corrections that each block's docstring names.
"""
