"""Reports and messages as bytes: the one form in which they are sent, kept and read."""
