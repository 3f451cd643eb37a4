"""Users, shuffler and server on different machines: Local and Shuffled trust."""
