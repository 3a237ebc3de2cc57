"""The keyed state backends of the conformance tests in this folder. Add a new backend to `BACKENDS`.

`make(groups, clock)` creates a backend for a range of key groups.
"""

import atexit
import os
import shutil
import tempfile

from ekorn.config.settings.rocksdb_settings import RocksDBSettings
from ekorn.keygroups import KeyGroupRange
from ekorn.state.heap.heap_backend import HeapStateBackend
from ekorn.state.rocksdb.rocksdb_backend import RocksDBKeyedBackend

GROUPS = 16
EVERYTHING = KeyGroupRange(0, GROUPS - 1)
# In memory if the machine has such a file system, because RocksDB waits for the disk with every file.
SCRATCH = tempfile.mkdtemp(prefix="ekorn-test-rocksdb-", dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None)
atexit.register(shutil.rmtree, SCRATCH, ignore_errors=True)

SMALL = RocksDBSettings(
    write_buffer_bytes=1 << 16,
    block_cache_bytes=1 << 20,
    write_batch_bytes=512,
    transfer_threads=1,
    cache_bytes=1 << 24,
)
# One entry in use per state and a few timers, all others on disk.
CRAMPED = RocksDBSettings(**{**SMALL.__dict__, "cache_bytes": 1, "timer_cache_count": 1})
TIMERS_ON_HEAP = RocksDBSettings(**{**SMALL.__dict__, "timer_factory": "HEAP"})


def heap(groups=EVERYTHING, clock=None, *, incremental=True):
    return HeapStateBackend(tracked=True, incremental=incremental, clock=clock)


def rocksdb(groups=EVERYTHING, clock=None, *, tracked=True, incremental=True, settings=SMALL, **more):
    folder = tempfile.mkdtemp(dir=SCRATCH)
    return RocksDBKeyedBackend(
        folder,
        max_parallelism=GROUPS,
        key_groups=groups,
        settings=settings,
        tracked=tracked,
        incremental=incremental,
        clock=clock,
        **more,
    )


def cramped(groups=EVERYTHING, clock=None, *, incremental=True):
    return rocksdb(groups, clock, incremental=incremental, settings=CRAMPED)


def timers_on_heap(groups=EVERYTHING, clock=None):
    return rocksdb(groups, clock, settings=TIMERS_ON_HEAP)


BACKENDS = {
    "heap": heap,
    "heap, whole snapshots": lambda groups=EVERYTHING, clock=None: heap(groups, clock, incremental=False),
    "rocksdb": rocksdb,
    "rocksdb, whole snapshots": lambda groups=EVERYTHING, clock=None: rocksdb(groups, clock, incremental=False),
    "rocksdb, cramped": cramped,
    "rocksdb, timers on the heap": timers_on_heap,
}
