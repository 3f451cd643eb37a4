"""The server's side of a plan: reports to answers, next rounds and centres."""
