"""k-means in two rounds, as a plugin of cloister."""
