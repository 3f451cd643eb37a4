"""The server's side: reports to answers and centres."""
