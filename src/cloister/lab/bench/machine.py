"""Machine and versions that figures were measured on."""

from __future__ import annotations

import hashlib
import json
import os
import platform
from pathlib import Path
from typing import Any

from cloister._version import __version__


def machine_facts() -> dict[str, Any]:
    """Return processor, cores, memory, system and versions; ``id`` is the same for the same facts."""
    import numpy
    import scipy
    import sklearn

    facts = {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "system": f"{platform.system()} {platform.machine()}",
        "versions": {
            "cloister": __version__,
            "Python": platform.python_version(),
            "NumPy": numpy.__version__,
            "SciPy": scipy.__version__,
            "scikit-learn": sklearn.__version__,
        },
    }
    return {"id": hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:8], **facts}


def machine_text(facts: dict[str, Any]) -> str:
    """Return the facts in a line."""
    versions = ", ".join(f"{name} {version}" for name, version in facts["versions"].items())
    return f"{facts['processor']}, {facts['cores']} cores, {facts['memory_gb']} GB, {facts['system']}; {versions}"


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    for line in info.read_text().splitlines() if info.exists() else ():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
