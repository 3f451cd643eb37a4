"""A person's side of a plan, under its short name: ``from cloister.encoder import encode, read``."""

from cloister.collection.client.encoder import (
    Encoded,
    Encoder,
    PrivacyWarning,
    PublishedPlan,
    State,
    Transcript,
    cautions,
    encode,
    opened,
    read,
)

__all__ = [
    "Encoded", "Encoder", "PrivacyWarning", "PublishedPlan", "State", "Transcript", "cautions", "encode", "opened", "read",
]  # fmt: skip
