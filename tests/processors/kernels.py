"""Other processors, on this one: the kernels of OpenBLAS, NumPy and the C library that others would take."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from numpy._core import _multiarray_umath as numpy_core

ROOT = Path(__file__).parents[2]
PLAIN = {
    "NPY_DISABLE_CPU_FEATURES": " ".join(numpy_core.__cpu_dispatch__),
    "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX2,-FMA,-FMA4,-AVX512F,-AVX512VL,-AVX",
}
"""NumPy without anything beyond its baseline, and the C library's exp and log without fused products."""

KERNELS: dict[str, dict[str, str]] = {
    "Prescott": {"OPENBLAS_CORETYPE": "Prescott"},
    "Haswell": {"OPENBLAS_CORETYPE": "Haswell"},
    "SkylakeX": {"OPENBLAS_CORETYPE": "SkylakeX"},
    "Zen": {"OPENBLAS_CORETYPE": "Zen"},
    "plain": {"OPENBLAS_CORETYPE": "Prescott", **PLAIN},
}


def runnable(kernel: str) -> bool:
    """Whether this processor has the instructions of a kernel."""
    features: Any = numpy_core.__cpu_features__
    return bool(features.get({"SkylakeX": "AVX512F", "Haswell": "AVX2", "Zen": "AVX2"}.get(kernel, "SSE3"), True))


def environment(kernel: str) -> dict[str, str]:
    """Of a process under a kernel."""
    ours = {name: value for name, value in os.environ.items() if name not in {"OPENBLAS_CORETYPE", *PLAIN}}
    path = os.pathsep.join([str(ROOT), *filter(None, [ours.get("PYTHONPATH")])])
    return {**ours, **KERNELS[kernel], "PYTHONPATH": path, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}


def run(kernel: str, *arguments: str) -> str:
    """What Python prints in a process under a kernel."""
    done = subprocess.run(
        [sys.executable, *arguments], env=environment(kernel), cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def choices(kernel: str, folder: Path, cases: Sequence[str]) -> dict[str, dict[str, str]]:
    """What ``choices`` prints of the cases in a process under a kernel. Args: folder (of records)."""
    found: dict[str, dict[str, str]] = json.loads(
        run(kernel, "-m", "tests.processors.choices", str(folder), *cases).splitlines()[-1]
    )
    return found
