"""What the process of a slot uses: memory, threads, time on cores. The page of slots shows it to people."""

from __future__ import annotations

import os
import socket
import threading
import time

from ekorn.metrics.process_memory import resident_bytes
from ekorn.slot_protocol.diagnostics import SlotVitals
from ekorn.state.rocksdb.store_options import block_cache_bytes

__all__ = ["own_vitals"]


def own_vitals() -> SlotVitals:
    """Return what this process uses now."""
    return SlotVitals(
        host=socket.gethostname(),
        pid=os.getpid(),
        resident_bytes=resident_bytes(os.getpid()),
        rocksdb_cache_bytes=block_cache_bytes(),
        threads=threading.active_count(),
        cpu_ms=round(time.process_time() * 1000),
    )
