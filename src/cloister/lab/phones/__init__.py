"""Demonstration of Local trust: a page that acts as a phone, simulated phones, and the collector they report to."""
