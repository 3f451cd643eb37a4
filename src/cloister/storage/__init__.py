"""Files that survive crashes and that processes share, independent of their contents."""
