"""Papers that can be reproduced, by name."""

from __future__ import annotations

from typing import Final

from cloister.core.errors import UnknownName
from cloister.lab.papers.paper import Paper

NAMES: Final = ("fastlloyd", "chang", "stemmer", "hst", "google", "pe-means", "dpm")
ALL: Final = "all"


def paper_of(name: str) -> Paper:
    """Return a paper. Raises: UnknownName: there is none."""
    if name not in NAMES:
        raise UnknownName("paper", name, [*NAMES, ALL])
    from cloister.lab.papers import chang, dpm, fastlloyd, google, hst, pe_means, stemmer

    modules = (fastlloyd, chang, stemmer, hst, google, pe_means, dpm)
    papers: dict[str, Paper] = {module.PAPER.name: module.PAPER for module in modules}
    return papers[name]
