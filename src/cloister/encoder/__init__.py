"""A person's side of a plan, under its short name: ``from cloister.encoder import encode, read``."""

from cloister.collection.client.encoder import Encoder, encode, opened, read

__all__ = ["Encoder", "encode", "opened", "read"]
