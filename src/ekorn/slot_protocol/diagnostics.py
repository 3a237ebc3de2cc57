"""Diagnostics of a slot as values: samples of its stacks, what it has logged and printed, what its process uses."""

from __future__ import annotations

from typing import NamedTuple

from ekorn.graph.addresses import SubtaskId

__all__ = ["SamplingPlan", "SlotLog", "SlotLogs", "SlotVitals", "StackSample", "StateSize"]


class SamplingPlan(NamedTuple):
    """How many samples are taken, how far apart, and how many of the innermost frames are kept."""

    samples: int
    delay_ms: int
    depth: int


class StackSample(NamedTuple):
    """A stack that was seen.

    Attributes:
        subtask: The subtask that ran; None if none did.
        on_cpu: Whether its thread could have used a core for most of the time since the sample before.
        frames: The frames as `module.function:line`, the outermost first.
        times: How often it was seen.
    """

    subtask: SubtaskId | None
    on_cpu: bool
    frames: tuple[str, ...]
    times: int


class SlotLog(NamedTuple):
    """The last lines, and when the last one was written, in milliseconds since 1970; 0 if there is none."""

    text: str
    last_ms: int


class SlotLogs(NamedTuple):
    """What a slot has logged, and what the user's code has printed in it."""

    log: SlotLog
    output: SlotLog


class StateSize(NamedTuple):
    """The memory of one state in a slot, or of an object that a function keeps, estimated from some of its entries."""

    name: str
    operator_name: str
    operator_id: str
    size_bytes: int
    entries: int
    is_state: bool = True


class SlotVitals(NamedTuple):
    """What the process of a slot uses, as the process itself reports it.

    Attributes:
        host: The name of its machine.
        pid: Its number on that machine.
        resident_bytes: Its memory.
        rocksdb_cache_bytes: The part of it that is RocksDB's block cache; None if no operator keeps state in RocksDB.
        threads: How many threads it has.
        cpu_ms: How much time it has had on cores.
        limit_bytes: The memory at which the slot fails; None if it is not bounded.
        managed_bytes: The memory that RocksDB may use of it; None if it is not bounded.
        states: The states on the heap, and the objects that functions keep, the largest first.
    """

    host: str
    pid: int
    resident_bytes: int
    rocksdb_cache_bytes: int | None
    threads: int
    cpu_ms: int
    limit_bytes: int | None = None
    managed_bytes: int | None = None
    states: tuple[StateSize, ...] = ()
