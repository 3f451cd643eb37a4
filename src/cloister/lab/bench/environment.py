"""Environment variables of entrants: a short list, so that no secret of the caller's reaches them."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

from cloister.lab.bench.entrants import Entrant

KEPT = {"PATH", "LANG", "LC_ALL", "TZ", "SYSTEMROOT"}
KEPT_PREFIXES = ("OPENBLAS_",)

FOR_INSTALL = {"HOME", "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE"}
FOR_INSTALL_PREFIXES = ("PIP_", "UV_", "npm_config_", "NPM_CONFIG_", "http_proxy", "https_proxy", "no_proxy")
"""Variables by which package managers find their index, which only ``install.sh`` gets."""

ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


def run_environment(entrant: Entrant, variables: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a run. Args: variables (``BENCH_*``, and folders of the run)."""
    kept = {name: value for name, value in os.environ.items() if name in KEPT or name.startswith(KEPT_PREFIXES)}
    if entrant.folder is None and "PYTHONPATH" in os.environ:
        kept["PYTHONPATH"] = os.environ["PYTHONPATH"]
    return {**kept, **ONE_THREAD, "BENCH_PYTHON": sys.executable, **variables}


def install_environment(variables: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of ``install.sh``. Args: variables (``BENCH_*``)."""
    names, prefixes = KEPT | FOR_INSTALL, KEPT_PREFIXES + FOR_INSTALL_PREFIXES
    kept = {
        name: value
        for name, value in os.environ.items()
        if name in names or name.startswith(prefixes) or name.lower().startswith(prefixes)
    }
    return {**kept, "BENCH_PYTHON": sys.executable, **variables}
