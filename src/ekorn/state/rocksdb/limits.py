"""Sizes and counts that bound each piece of work on a RocksDB instance. They are no options: one choice fits all."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RocksLimits:
    """The limits of one instance. Tests choose smaller ones."""

    settle_bytes: int = 128 << 20
    """Larger instances are left to RocksDB before the first checkpoint, because the job waits for the merge."""

    few_deletions: int = 10_000
    """With fewer deleted entries no merge is started."""

    swept_entries: int = 10_000
    """The entries of a state with a time to live that one epoch checks."""

    swept_range_cost: int = 10
    """Starting with a key group costs as much as checking so many entries; there may be thousands of groups."""

    piece_bytes: int = 16 << 20
    """A larger file is written to a checkpoint in pieces of this size."""
