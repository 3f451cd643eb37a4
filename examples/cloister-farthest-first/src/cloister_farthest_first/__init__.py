"""k-means of released points from heavy points far apart, as a plugin of cloister."""
