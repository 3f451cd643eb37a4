"""Files of rows, read a piece at a time."""
