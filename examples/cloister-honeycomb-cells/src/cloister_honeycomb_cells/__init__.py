"""A partition of two columns into hexagons, as a plugin of cloister."""
