"""A person's side of a plan, under its short name: ``from cloister.encoder import encode, read``."""

from cloister.collection.client.encoder import (
    CollectionPlan,
    Encoded,
    PlanEncoder,
    PrivacyWarning,
    State,
    Transcript,
    cautions,
    encode,
    read,
    transcript_of,
)

__all__ = [
    "CollectionPlan",
    "Encoded",
    "PlanEncoder",
    "PrivacyWarning",
    "State",
    "Transcript",
    "cautions",
    "encode",
    "read",
    "transcript_of",
]  # fmt: skip
