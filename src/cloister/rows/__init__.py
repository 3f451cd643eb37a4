"""Where rows are and how they are read: tables, files, memory, databases, and the workers that share a pass."""
