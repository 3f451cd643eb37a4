"""The conformance kit's checks, by what they look at."""
