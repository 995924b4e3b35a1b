# SPDX-License-Identifier: MIT
"""What recording costs in the virtual machine: the same writes bare, with the application's events, with both domains.

    usage: cost.py DIRECTORY...      what tests/vm/workloads left: cost-WAY-ROUND.json of demo-bench

Under software emulation everything is slow, tracing too: the figures compare with each other only.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

WAYS = {"bare": "bare", "application": "application's events", "both": "both domains in one session"}


def main() -> None:
    for folder in map(Path, sys.argv[1:]):
        means_us = {}
        for way in WAYS:
            reports = [json.loads(path.read_text()) for path in sorted(folder.glob(f"cost-{way}-*.json"))]
            if not reports:
                print(f"{folder.name}: the cost was not measured")
                break
            means_us[way] = min(report["latency_ns"]["mean"] for report in reports) / 1000
            how = f"{reports[0]['ops']} writes at queue depth {reports[0]['queue_depth']}, {WAYS[way]}"
            against = f" ({100 * (means_us[way] / means_us['bare'] - 1):+.0f} %)" if way != "bare" else ""
            print(f"{folder.name}: {how}: mean {means_us[way]:.1f} us{against}, best of {len(reports)} runs")


if __name__ == "__main__":
    main()
