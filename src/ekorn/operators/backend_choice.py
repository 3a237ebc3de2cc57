"""Chooses the keyed state backend of an operator."""

from __future__ import annotations

from ekorn.config.settings.rocksdb_settings import RocksDBSettings
from ekorn.keygroups import key_group_range
from ekorn.operators.environment import SubtaskEnvironment
from ekorn.state.heap.heap_backend import HeapStateBackend
from ekorn.state.keyed_backend import KeyedStateBackend
from ekorn.state.rocksdb.local_folder import local_folder
from ekorn.state.rocksdb.rocksdb_backend import RocksDBKeyedBackend


def make_backend(environment: SubtaskEnvironment) -> KeyedStateBackend:
    """Make a keyed state backend of the kind that the job is configured with."""
    tracked = environment.graph.settings.checkpointing
    if environment.on_rocksdb:
        return _make_rocksdb(environment, tracked=tracked)
    return HeapStateBackend(
        tracked=tracked, incremental=environment.incremental, clock=environment.clock, read=environment.read_tables
    )


def _make_rocksdb(environment: SubtaskEnvironment, *, tracked: bool) -> KeyedStateBackend:
    settings = environment.rocksdb or RocksDBSettings()
    folder = local_folder(settings.local_directories or (environment.scratch_root(),), environment.index)
    vertex = environment.vertex
    return RocksDBKeyedBackend(
        folder.path,
        on_close=folder.close,
        max_parallelism=vertex.max_parallelism,
        key_groups=key_group_range(vertex.max_parallelism, vertex.parallelism, environment.index),
        settings=settings,
        tracked=tracked,
        incremental=environment.incremental,
        clock=environment.clock,
        reuses_restored=environment.reuses_restored,
    )
