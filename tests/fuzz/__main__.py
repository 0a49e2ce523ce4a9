"""`make fuzz`: changed packets for every codec in both roles; exit 1 if any misbehaved."""

import argparse
import sys
import time

from tests.fuzz.codecs import all_findings


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--packets", type=int, default=1_000_000, help="packets for each codec")
    parser.add_argument("--seed", type=int, default=1, help="another one gives other packets")
    parser.add_argument("--only", default="", help="models whose key begins so")
    options = parser.parse_args()
    wrong = 0
    for target, found in all_findings(options.packets, options.seed, only=options.only):
        sys.stdout.write(
            f"{target.name:<28} {found.packets:>9} packets, {found.violations} refused, "
            f"{found.messages} messages, slowest {found.slowest_s * 1000:.1f} ms, "
            f"{found.held_bytes // 1024} KiB held at the end\n"
        )
        for problem in found.problems:
            sys.stdout.write(f"    {problem}\n")
        sys.stdout.flush()
        wrong += bool(found.problems)
    return 1 if wrong else 0


if __name__ == "__main__":
    began = time.monotonic()
    code = main()
    sys.stdout.write(f"{time.monotonic() - began:.0f} s\n")
    sys.exit(code)
