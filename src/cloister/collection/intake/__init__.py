"""Files that anybody may have sent: what counts, and what is refused."""
