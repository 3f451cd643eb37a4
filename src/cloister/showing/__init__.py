"""Pictures of results: first as numbers, then drawn."""
