"""A user's side of a plan. Imports NumPy, attrs and the standard library only."""
