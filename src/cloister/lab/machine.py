"""Description of the machine that a figure was measured on."""

from __future__ import annotations

import os
import platform
from pathlib import Path


def machine() -> str:
    """Return processor, cores and versions of the libraries, in a line."""
    import numpy
    import scipy
    import sklearn
    from threadpoolctl import threadpool_info

    name = platform.processor() or platform.machine()
    for text in Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else ():
        if text.startswith("model name"):
            name = text.partition(":")[2].strip()
            break
    libraries = {
        f"{pool['internal_api']} {pool['version']} ({pool.get('architecture')})"
        for pool in threadpool_info()
        if pool["user_api"] == "blas"
    }
    return (
        f"{name}, {os.cpu_count()} cores; Python {platform.python_version()}, NumPy {numpy.__version__}, SciPy "
        f"{scipy.__version__}, scikit-learn {sklearn.__version__}, {', '.join(sorted(libraries))}"
    )
