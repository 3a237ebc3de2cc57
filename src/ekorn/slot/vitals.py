"""What the process of a slot uses: memory, threads, time on cores. The page of slots shows it to people."""

from __future__ import annotations

import os
import socket
import threading
import time

from ekorn.metrics.process_memory import resident_bytes
from ekorn.slot.host import SlotHost
from ekorn.slot.memory.function_objects import kept_in_memory
from ekorn.slot_protocol.diagnostics import SlotVitals
from ekorn.state.rocksdb.store_options import block_cache_bytes

__all__ = ["own_vitals"]

_STATES = 10  # the largest ones


def own_vitals(host: SlotHost) -> SlotVitals:
    """Return what this process uses now, and what it may use."""
    return SlotVitals(
        host=socket.gethostname(),
        pid=os.getpid(),
        resident_bytes=resident_bytes(os.getpid()),
        rocksdb_cache_bytes=block_cache_bytes(),
        threads=threading.active_count(),
        cpu_ms=round(time.process_time() * 1000),
        limit_bytes=host.memory.process_bytes,
        managed_bytes=host.memory.managed_bytes,
        states=tuple(kept_in_memory(host.subtasks.values())[:_STATES]),
    )
