"""The README as an index of packages shows it, which holds none of our files: the build asks for it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface


class Readme(MetadataHookInterface):
    """Links lead to the repository that ``[project.urls]`` calls ``Source``, at the version's tag, and pictures come
    from there. Without such an address they stay as they are."""

    def update(self, metadata: dict[str, Any]) -> None:
        text = Path(self.root, "README.md").read_text("utf-8")
        home = metadata.get("urls", {}).get("Source", "").rstrip("/")
        if home:
            tag = f"v{metadata['version']}/"
            text = re.sub(r'(<img src="|!\[[^]]*\]\()(?!https?:)', rf"\g<1>{home}/raw/{tag}", text)
            text = re.sub(r"(?<!\!)(\[[^]]*\]\()(?!https?:|#)", rf"\g<1>{home}/blob/{tag}", text)
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
