"""Who takes the senders off, and puts all messages in random order."""
