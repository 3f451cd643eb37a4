"""A person's side of a plan, under its short name: ``from cloister.encoder import encode, read``."""

from cloister.collection.client.encoder import *  # noqa: F403
from cloister.collection.client.encoder import __all__ as __all__
