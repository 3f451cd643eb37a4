"""Client of a plan, on a user's machine. Imports NumPy, attrs and the standard library only."""
