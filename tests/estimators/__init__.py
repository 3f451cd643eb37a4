"""Tests of cloister.estimators."""
