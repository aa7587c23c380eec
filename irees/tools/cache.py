"""`irees cache`: shows, verifies, prunes or clears the cache of compiled code."""

from __future__ import annotations

import argparse
import json
import re

from irees.errors import ArgumentError
from irees.runtime.cache import default_cache

_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags of this command."""
    actions = "print sizes, check entries, remove the oldest, or remove all"
    parser.add_argument("action", choices=("stats", "verify", "prune", "clear"), help=actions)
    parser.add_argument("--max-size", default="1G", help="for prune: bytes, or 100M, 2G")
    parser.add_argument("--json", action="store_true", help="for stats")


def run(arguments: argparse.Namespace) -> int:
    """Runs the action; returns 1 if verify found damage. Raises ArgumentError for a bad size."""
    store = default_cache()
    if arguments.action == "stats":
        stats = store.stats()
        lines = [f"{name}: {value}" for name, value in stats.items()]
        print(json.dumps(stats) if arguments.json else "\n".join(lines))
        return 0
    if arguments.action == "verify":
        damaged = store.verify()
        for path in damaged:
            print(f"removed {path}: damaged")
        print(f"{sum(1 for _ in store.entries())} entries are whole")
        return 1 if damaged else 0
    if arguments.action == "prune":
        print(f"removed {store.prune(_size(arguments.max_size))} entries")
    else:
        print(f"removed {store.clear()} entries")
    return 0


def _size(text: str) -> int:
    if (found := re.fullmatch(r"(\d{1,15})([KMG]?)B?", text.upper())) is None:
        raise ArgumentError(f"--max-size={text} is not a size", hint="write 100M or 2G")
    return int(found[1]) * _UNITS[found[2]]
