"""Everything swappable. The built-ins are found through the same hook as a stranger's plugin."""
