"""The demonstration of phones: a page that is one, a crowd of simulated ones, and the collector that they report to."""
