"""The command line: `windrow run | check | explain | demo`."""

from __future__ import annotations


def main() -> None:
    """Entry point of the `windrow` command."""
    raise SystemExit("not yet")
