"""Stemmer's locally private k-means and k-median (2021): the method, and the blocks that it is made of."""
