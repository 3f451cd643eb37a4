"""Collector: serves a plan over HTTP, accepts reports, and stores those it has acknowledged."""
