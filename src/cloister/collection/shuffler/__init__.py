"""Shuffler: removes the senders of messages and puts all messages in random order."""
