"""`StateBackend`: where a job keeps its working state."""

from ekorn.config.state_backend import (
    EmbeddedRocksDBStateBackend,
    HashMapStateBackend,
    PredefinedOptions,
    StateBackend,
)
from ekorn.legacy.state_backends import FsStateBackend, MemoryStateBackend, RocksDBStateBackend

__all__ = [
    "EmbeddedRocksDBStateBackend",
    "FsStateBackend",
    "HashMapStateBackend",
    "MemoryStateBackend",
    "PredefinedOptions",
    "RocksDBStateBackend",
    "StateBackend",
]
