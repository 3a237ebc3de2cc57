"""What the system knows of processes on this machine: whether a process is a slot, and its memory."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["is_slot_here", "resident_bytes"]

_SLOT = b"ekorn.slot.slot_main"


def is_slot_here(pid: int) -> bool:
    """Return whether a process of this machine is a slot.

    The process id of a slot on another machine may belong to an unrelated process of this one.
    """
    try:
        return _SLOT in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False


def resident_bytes(pid: int) -> int:
    """Return the resident memory of a process of this machine; 0 if there is no such process."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0
