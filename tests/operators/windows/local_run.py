"""Runs programs on the local engine, epoch by epoch, with crashes where a test wants them."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ekorn.checkpoint.metadata import assemble
from ekorn.checkpoint.restore_plan import plan_restore
from ekorn.clock import ManualClock
from ekorn.common import Configuration, WatermarkStrategy
from ekorn.common.watermark_strategy import WatermarkGenerator
from ekorn.config.settings.rocksdb_settings import RocksDBSettings
from ekorn.datastream import DataStream, RuntimeExecutionMode, StreamExecutionEnvironment
from ekorn.graph.job_graph import JobGraph
from ekorn.operators.epoch import EpochOrder
from ekorn.slot_protocol.deployment import Deployment
from ekorn.slot_protocol.slot_events import SnapshotWritten
from ekorn.state.snapshots import RestorePlan
from ekorn.testing.drawn_job import drawn_job
from ekorn.testing.local_engine import LocalEngine

# A cache of a few entries, so that most state goes through RocksDB; on a file system in memory where there is one.
SMALL = RocksDBSettings(
    write_buffer_bytes=1 << 16,
    cache_bytes=1000,
    transfer_threads=1,
    local_directories=("/dev/shm",) if os.access("/dev/shm", os.W_OK) else (),
)

Event = tuple[Any, int, int | None]
"""A value, its timestamp, and the watermark that follows it, or None."""


class _AfterRecords(WatermarkGenerator):
    """Emits the watermark in the last field of a record."""

    def on_event(self, event: Any, event_timestamp: int, output: Any) -> None:
        if event[2] is not None:
            output.emit_watermark(event[2])

    def on_periodic_emit(self, output: Any) -> None:
        pass


def timed(env: StreamExecutionEnvironment, events: Sequence[Event]) -> DataStream:
    """Return a stream of values with their timestamps, and watermarks exactly where the events have them."""
    strategy = WatermarkStrategy.for_generator(lambda _: _AfterRecords()).with_timestamp_assigner(lambda e, _: e[1])
    stream = env.from_collection(events).assign_timestamps_and_watermarks(strategy).set_parallelism(1)
    return stream.map(lambda e: e[0]).set_parallelism(1)


@dataclass
class Run:
    """A job on the local engine."""

    graph: JobGraph
    clock: ManualClock = field(default_factory=ManualClock)
    directory: str | None = None
    state_backend: str = "hashmap"

    def __post_init__(self) -> None:
        self.engine = LocalEngine(self.graph, self.clock)
        self.attempt = 0
        self.epoch = 0
        self.records: list[Any] = []
        self.finished = False
        self.acks: list[Any] = []

    def deploy(self, restore: RestorePlan | None = None, graph: JobGraph | None = None) -> None:
        deployment = Deployment(
            "0" * 32,
            graph or self.graph,
            self.attempt,
            checkpoint_directory=self.directory,
            state_backend=self.state_backend,
            rocksdb=SMALL,
            restore=restore,
        )
        failure = self.engine.deploy(deployment)
        if failure is not None:
            raise failure.error

    def step(self, max_records: int = 1 << 30, checkpoint_id: int | None = None) -> list[Any]:
        """Run one epoch and return its output."""
        result = self.engine.run_epoch(EpochOrder(self.epoch, max_records=max_records, checkpoint_id=checkpoint_id))
        self.epoch += 1
        if result.failure is not None:
            raise result.failure.error
        self.acks = result.acks
        found = [r for ack in result.acks for run in ack.collected for r in run.records()]
        self.records += found
        self.finished = all(a.finished for a in result.acks)
        return found

    def checkpoint(self, checkpoint_id: int, max_records: int = 1 << 30) -> RestorePlan:
        """Run an epoch that carries a checkpoint, wait for its files, and return the plan that restores it."""
        self.step(max_records, checkpoint_id)
        wanted = sum(v.parallelism for v in self.graph.vertices)
        snapshots: list[Any] = []
        while len(snapshots) < wanted:
            self.engine.wait(5.0)
            for event in self.engine.events():
                assert isinstance(event, SnapshotWritten), event
                snapshots.append(event.snapshot)
        metadata = assemble(
            self.graph,
            job_id="0" * 32,
            checkpoint_id=checkpoint_id,
            timestamp_ms=0,
            snapshots=tuple(snapshots),
            finished=frozenset(),
        )
        self.engine.notify_completed(checkpoint_id)
        self.metadata = metadata
        return plan_restore(self.graph, metadata, self.directory or "", allow_non_restored_state=False)

    def close(self) -> None:
        failure = self.engine.close_subtasks()
        self.engine.shutdown()
        if failure is not None:
            raise failure.error


def environment(
    parallelism: int = 1, *, batch: bool = False, checkpoints: bool = False, linger: str = "0 ms"
) -> StreamExecutionEnvironment:
    """Return an environment whose epochs do not wait for asynchronous requests, unless `linger` says so."""
    configuration = Configuration().set_string("ekorn.async-io.linger", linger)
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    env.set_parallelism(parallelism)
    if batch:
        env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    if checkpoints:
        env.enable_checkpointing(1000)
    return env


def graph_of(stream: DataStream) -> JobGraph:
    """Return the job that collects a stream."""
    return drawn_job(stream, "test").graph


def collected(stream: DataStream, *, max_records: int = 1 << 30, state_backend: str = "hashmap") -> list[Any]:
    """Run the job of a stream to the end and return its output."""
    run = Run(graph_of(stream), state_backend=state_backend)
    run.deploy()
    while not run.finished:
        run.step(max_records)
    run.close()
    return run.records


def collected_with_crashes(
    build: Callable[[StreamExecutionEnvironment], DataStream],
    *,
    max_records: int,
    crash_after: set[int],
    parallelism: int = 1,
    state_backends: tuple[str, ...] = ("hashmap",),
) -> list[Any]:
    """Run a job to the end with a checkpoint in every epoch, and crash and restart it after some of them.

    After the checkpoint one more epoch runs, whose output is lost with the attempt. Attempts alternate the backends.
    """
    with tempfile.TemporaryDirectory() as directory:
        run = Run(graph_of(build(environment(parallelism, checkpoints=True))), directory=directory)
        run.state_backend = state_backends[0]
        run.deploy()
        checkpoint_id = 0
        while not run.finished:
            checkpoint_id += 1
            plan = run.checkpoint(checkpoint_id, max_records)
            if checkpoint_id in crash_after and not run.finished:
                kept = len(run.records)
                run.step(max_records)
                del run.records[kept:]
                run.attempt += 1
                run.state_backend = state_backends[run.attempt % len(state_backends)]
                run.finished = False
                run.deploy(plan)
        run.close()
        return run.records
