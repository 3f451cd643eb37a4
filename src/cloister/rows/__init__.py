"""Tables of rows: files, memory, databases, and the workers that read them."""
