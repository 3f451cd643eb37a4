"""Groups that zoom loses: rows of many shapes, and the intervals that its noisy counts lead to, over and over.

    python benchmarks/zoom_groups.py                 1,000 runs of every shape and setting
    python benchmarks/zoom_groups.py --runs 200 --methods hst-means

A line per shape and setting: the share that is stated before the run (no group of so many has its middle outside an
interval, but in one run of 1,000), and in how many runs an end was cut at all, a group of at least that share had its
median or mean outside, or more rows than promised lay beyond an end; and the first column's interval, in its bounds.
40,000 rows; delta 1e-6; the noise is simulated, the counts are exact.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.plugins.methods.zoom_shapes import SETTINGS, SHAPES, repeated


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--methods", default="hst-means,radius-means")
    parser.add_argument("--runs", type=int, default=1000)
    given = parser.parse_args()
    for method in given.methods.split(","):
        print(f"\n| {method} | setting | stated | cut | lost | beyond | width |\n|---|---|---|---|---|---|---|")
        for shape in SHAPES:
            for setting, (epsilon, per_user) in SETTINGS.items():
                found = repeated(shape, method, epsilon, per_user, given.runs)
                figures = (
                    f"{found.share:.1%} | {found.cut} | {found.lost} | {found.beyond} | {found.width:.3f}"
                    if found
                    else "nothing asked | 0 | 0 | 0 | 1"
                )
                print(f"| {shape.__name__} | {setting} | {figures} |", flush=True)


if __name__ == "__main__":
    main()
